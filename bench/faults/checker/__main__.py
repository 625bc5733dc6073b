"""`python -m bench.faults.checker DIRECTORY`: check a saved history again."""

import argparse
import sys
from pathlib import Path

from bench.faults.checker.check import check_directory


def main() -> int:
    """Print every violation; return 0 without any, else 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.faults.checker", description=__doc__)
    parser.add_argument("directory", type=Path)
    report = check_directory(parser.parse_args().directory)
    print(report.text())
    return 1 if report.violations else 0


if __name__ == "__main__":
    sys.exit(main())
