"""`slotlock simulate`: its arguments, which are checked before anything is done, and its run."""

import argparse
import asyncio
import importlib.util
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path

from slotlock.simulation.model.plan import (
    BookingMode,
    MissingPackagesError,
    SimulationConfig,
    SimulationError,
    SimulationTarget,
)

REQUIRED_PACKAGES = ("aiohttp", "matplotlib")
# By the lock file: no index has slotlock, and somebody may register its name.
MISSING_PACKAGES = (
    "the packages of the extra `simulate`: "
    "pip install --require-hashes -r requirements-simulate.lock"
)
EXIT_INVARIANT_BROKEN, EXIT_NOT_COMPLETED = 1, 2
PLOT_SUFFIXES = (".svg", ".png")
MODES_TEXT = "lock, wait, queue or draw"
DRAW_MODE = "draw"


def define_simulate(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `slotlock simulate`."""
    parser.add_argument(
        "--url", type=_parse_url, help="the server; default: `make run`, SLOTLOCK_HOST and PORT"
    )
    parser.add_argument(
        "--users", type=_bounded_int(1, 20_000), default=8, metavar="N", help="users, default 8"
    )
    parser.add_argument(
        "--campaign",
        metavar="ID",
        help="rehearse a campaign with a copy, which is removed; with its slots and places",
    )
    parser.add_argument(
        "--slots", type=_bounded_int(1, 500), default=4, metavar="N", help="slots, default 4"
    )
    parser.add_argument(
        "--places",
        type=_bounded_int(1, 1_000),
        default=1,
        metavar="N",
        help="places in each slot, default 1",
    )
    parser.add_argument(
        "--attempts",
        type=_bounded_int(1, 500),
        metavar="N",
        help="slots that each user requests, default 1",
    )
    parser.add_argument(
        "--mode",
        type=_parse_mode,
        default=BookingMode.LOCK,
        metavar="MODE",
        help=f"how users book: {MODES_TEXT}, default lock; draw compares ways to give places, "
        "without a server, with 12 wishes or --attempts",
    )
    parser.add_argument(
        "--results", type=_parse_output_path, metavar="FILE", help="write the results as JSON"
    )
    parser.add_argument(
        "--plot",
        type=_parse_plot_path,
        metavar="FILE",
        help="draw responses and places left over time: .svg or .png",
    )
    parser.add_argument(
        "--seed",
        type=_bounded_int(0, 2**32 - 1),
        metavar="N",
        help="the order of the requests, default random",
    )
    # Only the parser can report an error that two arguments cause together.
    parser.set_defaults(usage_error=parser.error)


def run_simulate_command(
    args: argparse.Namespace, find_target: Callable[[], SimulationTarget]
) -> int:
    """Run a simulation and return its exit code.

    `find_target` names the server and the organizer; it may raise SimulationError.

    Raises:
        MissingPackagesError: The extra `simulate` is not installed.
    """
    args.attempts = args.attempts or 1
    if args.attempts > args.slots and args.campaign is None:
        args.usage_error("argument --attempts: at most as many as there are --slots")
    if not all(_is_installed(name) for name in REQUIRED_PACKAGES):
        raise MissingPackagesError(f"simulate needs {MISSING_PACKAGES}")
    try:
        return _run_simulation(args, find_target())
    except SimulationError as error:
        for line in str(error).splitlines():
            print(f"slotlock: {line}", file=sys.stderr)
    return EXIT_NOT_COMPLETED


def _run_simulation(args: argparse.Namespace, target: SimulationTarget) -> int:
    # These modules need the packages of the extra.
    from slotlock.simulation.report.json_results import to_json
    from slotlock.simulation.report.summary import format_summary
    from slotlock.simulation.run import simulate

    config = SimulationConfig(
        url=args.url or target.url,
        users=args.users,
        slots=args.slots,
        places=args.places,
        attempts=args.attempts,
        mode=args.mode,
        seed=secrets.randbits(32) if args.seed is None else args.seed,
        campaign=args.campaign,
    )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        result = runner.run(simulate(config, target.organizer))
    print(format_summary(result), flush=True)
    try:
        if args.results is not None:
            args.results.write_bytes(to_json(result))
        if args.plot is not None:
            from slotlock.simulation.report.plot import draw_plot  # slow to import

            draw_plot(result, args.plot)
    except OSError as error:
        raise SimulationError(f"the results cannot be written: {error}") from None
    return EXIT_INVARIANT_BROKEN if result.has_broken_invariant else 0


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # the entry in sys.modules is None
        return False


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    if sys.platform == "win32":
        return asyncio.new_event_loop
    import uvloop  # not available on Windows

    return uvloop.new_event_loop


def _bounded_int(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not minimum <= int(text) <= maximum:
            raise argparse.ArgumentTypeError(f"a number from {minimum} to {maximum}")
        return int(text)

    return parse


def _parse_mode(text: str) -> BookingMode | str:
    if text == DRAW_MODE:
        return DRAW_MODE
    try:
        return BookingMode(text)
    except ValueError:
        raise argparse.ArgumentTypeError(MODES_TEXT) from None


def _parse_url(text: str) -> str:
    if not text.startswith(("http://", "https://")) or not text.partition("://")[2].strip("/"):
        raise argparse.ArgumentTypeError("an address like http://127.0.0.1:8000")
    return text.rstrip("/").removesuffix("/graphql")


def _parse_output_path(text: str) -> Path:
    path = Path(text)
    existing = path if path.exists() else path.parent
    if path.is_dir() or not existing.exists() or not os.access(existing, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written")
    return path


def _parse_plot_path(text: str) -> Path:
    if not text.lower().endswith(PLOT_SUFFIXES):
        raise argparse.ArgumentTypeError(f"a file that ends in {' or '.join(PLOT_SUFFIXES)}")
    return _parse_output_path(text)
