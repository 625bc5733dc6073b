"""Runs the command line: `python -m slotlock` is the same as `slotlock`."""

import sys

from slotlock.cli.main import main

sys.exit(main())
