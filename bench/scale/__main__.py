"""Measures what a deployment costs at rest: `python -m bench.scale` (make bench-scale).

Real servers count commands, documents and CPU time while nothing is requested. Each quantity has
two sizes, with one process and with three, so that a cost that grows with a product shows. The
counts are reliable on a machine that others use; the CPU shares are not.
"""

import argparse
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from bench.comparison.servers import running_servers
from bench.comparison.targets.apps import TargetAppError
from bench.machine import load_warning, machine_summary
from bench.scale import report
from bench.scale.cases import LARGE, PAIRS, SMALL, Case, run
from slotlock.devserver.binaries import ServerStartError

PROCESSES = (SMALL["processes"], LARGE["processes"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rates of each deployment, what each unit adds, and what a large one comes to."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    names = [pair.quantity for pair in PAIRS]
    parser.add_argument("--only", nargs="*", choices=names, default=names, help="these quantities")
    args = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(machine_summary())
    if warning := load_warning():
        print(warning)
    first_day = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    print(report.header(), flush=True)
    growths = []
    try:
        with running_servers() as servers:
            idle = {}
            for processes in PROCESSES:
                idle[processes] = run(Case(processes), servers, first_day)
                print(report.rates_line(f"{processes} process(es)", idle[processes]), flush=True)
            for pair in PAIRS:
                if pair.quantity not in args.only:
                    continue
                rates = {}
                for processes in PROCESSES:
                    for size in pair.sizes:
                        rates[processes, size] = run(pair.case(processes, size), servers, first_day)
                        title = f"{processes} process(es), {size:,} {pair.quantity}"
                        print(report.rates_line(title, rates[processes, size]), flush=True)
                growths.append(report.Growth(pair, rates))
    except (ServerStartError, TargetAppError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    print("\n".join(["", *report.growth_lines(idle, growths), ""]))
    print("\n".join(report.memory_lines(growths)), end="\n\n")
    print("\n".join(report.plan_lines(idle, growths)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
