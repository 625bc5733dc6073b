"""The app with access tokens that expire soon, as a variant of the module `slotlock`."""

import sys
from datetime import timedelta

from slotlock.auth import sessions
from slotlock.cli.main import main

ACCESS_TOKEN_TTL = timedelta(seconds=2)

if __name__ == "__main__":
    sessions.ACCESS_TOKEN_TTL = ACCESS_TOKEN_TTL  # type: ignore[attr-defined]
    sys.exit(main(sys.argv[1:]))
