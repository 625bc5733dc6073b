"""The command of the long run: `python -m bench.soak --minutes 10 --seed N`."""

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
    """0 when everything held, 1 when something did not, 2 when it cannot run here."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, metavar="M")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    asked = parser.parse_args(arguments)
    # Leave by the front door, where what was started is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"seed {asked.seed}, {asked.minutes:g} minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="slotlock-soak-") as folder:
        try:
            code = asyncio.run(soak(asked.seed, asked.minutes, Path(folder)))
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
