"""`python -m slotlock` is the same as `slotlock`."""

import sys

from slotlock.api.cli import main

sys.exit(main())
