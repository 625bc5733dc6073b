"""The command of the soak run: `python -m bench.soak --minutes 10 --seed N`."""

import argparse
import asyncio
import random
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from bench.soak.processes.servers import SoakError
from bench.soak.run import save_logs, soak
from slotlock.devserver.binaries import ServerStartError

LOGS_FOLDER = Path(__file__).parent.parent.parent / ".bench" / "soak"


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 if every promise held, 1 if one was broken, 2 if the run is impossible here."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, metavar="M", help="default 10")
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(10**6), help="default random"
    )
    args = parser.parse_args(arguments)
    # An exception on SIGTERM lets the context managers stop the servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"seed {args.seed}, {args.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="slotlock-soak-") as folder:
        try:
            code = asyncio.run(soak(args.seed, args.minutes, Path(folder)))
        except (SoakError, ServerStartError) as error:
            print(f"soak: {error}", file=sys.stderr)
            code = 2
        except KeyboardInterrupt:
            return 130
        if code:
            with suppress(OSError):
                save_logs(Path(folder), LOGS_FOLDER)
                print("the logs of the app are in .bench/soak")
    return code


if __name__ == "__main__":
    sys.exit(main())
