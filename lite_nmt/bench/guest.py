"""What runs inside the emulator: an engine translates sentences one by one, with a mark around each pass.

``python -m lite_nmt.bench.guest MODULE:FUNCTION PASSES ARGUMENT...`` calls ``FUNCTION(ARGUMENT...)``, which gives
back what translates one line. Sentences come as JSON on stdin, translations go as JSON to stdout.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import importlib
import json
import os
import sys
from collections.abc import Callable

MARK = 0x6C6D74  # as in icount.c


def mark(number: int) -> None:
    """Have the plugin write its counters down. The kernel refuses the call and nothing else happens."""
    with contextlib.suppress(OSError):
        os.getpriority(MARK, number)


def subject(kind: str, path: str, beam: str | None = None) -> Callable[[str], str]:
    """One of ``worker.py``'s engines, with one thread; ``beam`` is a number, the model's own if None."""
    from lite_nmt.bench.worker import KINDS, texts

    engine = KINDS[kind](path, 1)
    decode = engine.config.decode
    if beam is not None:
        decode = dataclasses.replace(decode, beam=int(beam))
    return lambda line: texts(engine, [line], 1, decode)[0]


def main() -> None:
    """One pass to warm up, then those that count."""
    engine, passes, *arguments = sys.argv[1:]
    module, _, function = engine.partition(":")
    mark(0)
    translate: Callable[[str], str] = getattr(importlib.import_module(module), function)(*arguments)
    lines: list[str] = json.load(sys.stdin)
    translations: list[str] = []
    gc.collect()
    gc.disable()  # or a collection falls into one pass and not into another
    for number in range(int(passes) + 1):
        mark(number + 1)
        translations = [translate(line) for line in lines]
    mark(int(passes) + 2)
    json.dump(translations, sys.stdout)


if __name__ == "__main__":
    main()
