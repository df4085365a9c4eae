"""``python -m lite_nmt``."""

import sys

from lite_nmt.cli.main import main

sys.exit(main())
