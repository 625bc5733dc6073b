"""`slotlock simulate`: its arguments, looked at before anything is done, and its exit codes."""

import argparse
import asyncio
import importlib.util
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slotlock.api.server.serve import base_url
from slotlock.api.settings.settings import Settings, SettingsError, read_settings
from slotlock.cli.users import CommandError
from slotlock.devserver.dev_secrets import DEFAULT_ADMIN_EMAIL, read_secrets, secrets_path
from slotlock.simulation.model.plan import BookingMode, Organizer, SimulationConfig, SimulationError

REQUIRED_PACKAGES = ("aiohttp", "matplotlib")
EXIT_INVARIANT_BROKEN, EXIT_NOT_COMPLETED = 1, 2
PLOT_SUFFIXES = (".svg", ".png")
MODES_TEXT = "lock, wait or queue"


def add_simulate_command(commands: Any) -> None:
    """Add it to the command line."""
    parser = commands.add_parser(
        "simulate",
        help="let a crowd rush at a running server",
        description="Registers people, opens a campaign, lets them rush, and checks what came of "
        "it. Exit code 0: all invariants hold; 1: one is broken; 2: it was not carried through.",
    )
    parser.add_argument(
        "--url", type=_parse_url, help="of the server; else by SLOTLOCK_HOST and PORT"
    )
    parser.add_argument(
        "--people", type=_bounded_int(1, 20_000), default=8, metavar="N", help="default 8"
    )
    parser.add_argument(
        "--slots", type=_bounded_int(1, 500), default=4, metavar="N", help="default 4"
    )
    parser.add_argument(
        "--places",
        type=_bounded_int(1, 1_000),
        default=1,
        metavar="N",
        help="in each slot, default 1",
    )
    parser.add_argument(
        "--asks",
        type=_bounded_int(1, 500),
        default=1,
        metavar="N",
        help="slots that each person asks for, default 1",
    )
    ways = f"how they ask: {MODES_TEXT}, default lock"
    parser.add_argument(
        "--by", type=_parse_mode, default=BookingMode.LOCK, metavar="WAY", help=ways
    )
    parser.add_argument(
        "--json", type=_parse_output_path, metavar="FILE", help="write the results there"
    )
    parser.add_argument(
        "--plot",
        type=_parse_plot_path,
        metavar="FILE",
        help="draw places left and answers: .svg or .png",
    )
    parser.add_argument(
        "--seed", type=_bounded_int(0, 2**32 - 1), metavar="N", help="of the order; else random"
    )
    # A parser is needed to refuse what only two arguments together make wrong.
    parser.set_defaults(run=run, refuse=parser.error)


def run(args: argparse.Namespace) -> int:
    """0, 1 or 2 as above. Errors: OperatorError when the extra is not installed."""
    if args.asks > args.slots:
        args.refuse("argument --asks: at most as many as there are --slots")
    if not all(_is_installed(name) for name in REQUIRED_PACKAGES):
        raise CommandError("simulate needs what the extra brings: pip install 'slotlock[simulate]'")
    try:
        return _run_simulation(args)
    except (SimulationError, SettingsError) as error:
        for line in str(error).splitlines():
            print(f"slotlock: {line}", file=sys.stderr)
    return EXIT_NOT_COMPLETED


def _run_simulation(args: argparse.Namespace) -> int:
    from slotlock.simulation.report.json_results import to_json  # these need the extra
    from slotlock.simulation.report.summary import format_summary
    from slotlock.simulation.run import simulate

    settings = read_settings()
    plan = SimulationConfig(
        url=args.url or base_url(settings),
        users=args.people,
        slots=args.slots,
        places=args.places,
        attempts=args.asks,
        mode=args.by,
        seed=secrets.randbits(32) if args.seed is None else args.seed,
    )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        found = runner.run(simulate(plan, organizer_from_settings(settings)))
    print(format_summary(found), flush=True)
    try:
        if args.json is not None:
            args.json.write_bytes(to_json(found))
        if args.plot is not None:
            from slotlock.simulation.report.plot import draw_plot  # takes a while to import

            draw_plot(found, args.plot)
    except OSError as error:
        raise SimulationError(f"the results cannot be written: {error}") from None
    return EXIT_INVARIANT_BROKEN if found.has_broken_invariant else 0


def organizer_from_settings(settings: Settings) -> Organizer:
    """Who organises: the admin of the settings, else the one that `dev` keeps. SettingsError."""
    email, given = settings.admin_email or DEFAULT_ADMIN_EMAIL, settings.admin_password
    if given is not None:
        return Organizer(email, given.get_secret_value(), "SLOTLOCK_ADMIN_PASSWORD")
    path = secrets_path(settings.data_dir)
    if not path.exists():
        raise SettingsError(
            f"who organises? Set SLOTLOCK_ADMIN_EMAIL and SLOTLOCK_ADMIN_PASSWORD; nor is there "
            f"{path}, which `slotlock dev` keeps"
        )
    return Organizer(email, read_secrets(settings.data_dir)["admin_password"], str(path))


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # it is imported, but as nothing
        return False


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    if sys.platform == "win32":
        return asyncio.new_event_loop
    import uvloop  # there is none on Windows

    return uvloop.new_event_loop


def _bounded_int(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not minimum <= int(text) <= maximum:
            raise argparse.ArgumentTypeError(f"a number from {minimum} to {maximum}")
        return int(text)

    return parse


def _parse_mode(text: str) -> BookingMode:
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
    place = path if path.exists() else path.parent
    if path.is_dir() or not place.exists() or not os.access(place, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written")
    return path


def _parse_plot_path(text: str) -> Path:
    if not text.lower().endswith(PLOT_SUFFIXES):
        raise argparse.ArgumentTypeError(f"a file that ends in {' or '.join(PLOT_SUFFIXES)}")
    return _parse_output_path(text)
