"""Runs the tests; runs those that failed once more, alone: `python -m tools.run_tests [TIER]`.

A test that fails twice makes the run red. One that passes when it is alone is printed as
`unsteady: NAME`, and both reports remain in `.tests/`; more than MAX_UNSTEADY of them are red, too.
"""

import argparse
import os
import resource
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.tiers import EVERYDAY

REPORTS = Path(".tests")
MAX_UNSTEADY = 3
# More than this number of failures is one defect, not many unsteady tests.
MAX_REPEATED = 20
PARALLEL = ("-n", "3", "--dist", "loadfile", "--no-loadscope-reorder")
# No option adds what a run needs to be repeated: the order is that of the files.
ALONE = ("-n", "0", "--last-failed", "--last-failed-no-failures", "none")
TIERS = {"test": EVERYDAY, "slow": "slow or hypothesis", "all": ""}
BUSY_LOOP = "while True: pass"
TESTS_FAILED, NO_TESTS = 1, 5  # exit codes of pytest


def run_pytest(name: str, options: Sequence[str], tier: str) -> int:
    """Run pytest, keep its report as `.tests/NAME.xml`, and return its exit code."""
    report = ("--junitxml", str(REPORTS / f"{name}.xml"), "-o", f"cache_dir={REPORTS / 'cache'}")
    marks = ("-m", TIERS[tier]) if TIERS[tier] else ()
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *marks, *report], check=False
    ).returncode


def failed_tests(name: str) -> dict[str, str]:
    """Return the failures in a report of pytest: names of tests and what was reported."""
    failures = {}
    for case in ElementTree.parse(REPORTS / f"{name}.xml").iter("testcase"):
        for child in case:
            if child.tag in ("failure", "error"):
                failures[f"{case.get('classname')}::{case.get('name')}"] = child.text or ""
    return failures


def judge(tier: str) -> int:
    """Run a tier, repeat what failed, print the unsteady tests, and return the exit code."""
    code = run_pytest("first", PARALLEL, tier)
    if code != TESTS_FAILED:
        return code
    first = failed_tests("first")
    if not 0 < len(first) <= MAX_REPEATED:
        return code
    print(f"{len(first)} failed; running them once more, alone")
    code = run_pytest("second", ALONE, tier)
    if code not in (0, TESTS_FAILED):
        return code
    second = failed_tests("second")
    unsteady = sorted(first.keys() - second.keys())
    for name in unsteady:
        print(f"unsteady: {name}")
    for name in sorted(second):
        print(f"failed twice: {name}")
    return int(bool(second) or len(unsteady) > MAX_UNSTEADY)


@contextmanager
def busy_machine(loops: int) -> Iterator[None]:
    """Keep the processors busy with this many endless loops."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def require_steady(tier: str, rounds: int, loops: int) -> int:
    """Run a tier on a busy machine several times, repeat nothing, and print what failed."""
    failures = set[str]()
    with busy_machine(loops):
        for number in range(rounds):
            code = run_pytest(f"steady-{number}", PARALLEL, tier)
            if code not in (0, TESTS_FAILED):
                return code
            failures |= failed_tests(f"steady-{number}").keys()
    for name in sorted(failures):
        print(f"unsteady: {name}")
    return int(bool(failures))


def main() -> int:
    """Run a tier and return the exit code of the process."""
    parser = argparse.ArgumentParser(prog="python -m tools.run_tests", description=__doc__)
    parser.add_argument("tier", choices=TIERS, nargs="?", default="test")
    parser.add_argument("--steady", type=int, default=0, metavar="ROUNDS")
    parser.add_argument("--loops", type=int, default=3 * (os.cpu_count() or 1))
    args = parser.parse_args()
    REPORTS.mkdir(exist_ok=True)
    if args.steady:
        return require_steady(args.tier, args.steady, args.loops)
    code = judge(args.tier)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"processor seconds of the tests and their servers: {used.ru_utime + used.ru_stime:.0f}")
    return code


if __name__ == "__main__":
    sys.exit(main())
