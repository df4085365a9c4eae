"""Fetch all that building and testing the app needs: ``python -m android_demo.tools.prepare``.

Afterwards both work without a network. Where ONNX Runtime's Android library cannot be had, tests take a stand-in.
"""

from __future__ import annotations

import sys

from android_demo.tools.debian import PACKAGES, unpack
from android_demo.tools.fetch import catalogue, fetch
from lite_nmt.errors import LiteNmtError


def main() -> int:
    """The command: 1 if something is missing."""
    failed = 0
    for get, names in ((fetch, catalogue()), (unpack, PACKAGES)):
        for name in names:
            try:
                get(name)
            except LiteNmtError as error:
                print(f"error: {error}", file=sys.stderr)
                failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
