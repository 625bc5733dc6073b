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

from slotlock.api.kept_secrets import DEFAULT_ADMIN, read_secrets, secrets_file
from slotlock.api.operators import OperatorError
from slotlock.api.server import address_of
from slotlock.api.settings import Settings, SettingsError, read_settings
from slotlock.api.simulation.plan import By, Organiser, Plan, SimulationError

NEEDED = ("aiohttp", "matplotlib")
BROKEN, NOT_CARRIED_THROUGH = 1, 2
PICTURES = (".svg", ".png")
WAYS = "lock, wait or queue"


def add_command(commands: Any) -> None:
    """Add it to the command line."""
    parser = commands.add_parser(
        "simulate",
        help="let a crowd rush at a running server",
        description="Registers people, opens a campaign, lets them rush, and checks what came of "
        "it. Exit code 0: all invariants hold; 1: one is broken; 2: it was not carried through.",
    )
    parser.add_argument("--url", type=_url, help="of the server; else by SLOTLOCK_HOST and PORT")
    parser.add_argument(
        "--people", type=_number(1, 20_000), default=8, metavar="N", help="default 8"
    )
    parser.add_argument("--slots", type=_number(1, 500), default=4, metavar="N", help="default 4")
    parser.add_argument(
        "--places", type=_number(1, 1_000), default=1, metavar="N", help="in each slot, default 1"
    )
    parser.add_argument(
        "--asks",
        type=_number(1, 500),
        default=1,
        metavar="N",
        help="slots that each person asks for, default 1",
    )
    ways = f"how they ask: {WAYS}, default lock"
    parser.add_argument("--by", type=_way, default=By.LOCK, metavar="WAY", help=ways)
    parser.add_argument("--json", type=_writable, metavar="FILE", help="write the results there")
    parser.add_argument(
        "--plot", type=_picture, metavar="FILE", help="draw places left and answers: .svg or .png"
    )
    parser.add_argument(
        "--seed", type=_number(0, 2**32 - 1), metavar="N", help="of the order; else random"
    )
    # A parser is needed to refuse what only two arguments together make wrong.
    parser.set_defaults(run=run, refuse=parser.error)


def run(asked: argparse.Namespace) -> int:
    """0, 1 or 2 as above. Errors: OperatorError when the extra is not installed."""
    if asked.asks > asked.slots:
        asked.refuse("argument --asks: at most as many as there are --slots")
    if not all(_installed(name) for name in NEEDED):
        raise OperatorError(
            "simulate needs what the extra brings: pip install 'slotlock[simulate]'"
        )
    try:
        return _simulated(asked)
    except (SimulationError, SettingsError) as error:
        for line in str(error).splitlines():
            print(f"slotlock: {line}", file=sys.stderr)
    return NOT_CARRIED_THROUGH


def _simulated(asked: argparse.Namespace) -> int:
    from slotlock.api.simulation.results import as_json  # these need the extra
    from slotlock.api.simulation.run import simulate
    from slotlock.api.simulation.summary import summary

    settings = read_settings()
    plan = Plan(
        url=asked.url or address_of(settings),
        people=asked.people,
        slots=asked.slots,
        places=asked.places,
        asks=asked.asks,
        by=asked.by,
        seed=secrets.randbits(32) if asked.seed is None else asked.seed,
    )
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        found = runner.run(simulate(plan, organiser_of(settings)))
    print(summary(found), flush=True)
    try:
        if asked.json is not None:
            asked.json.write_bytes(as_json(found))
        if asked.plot is not None:
            from slotlock.api.simulation.plot import draw  # takes a while to import

            draw(found, asked.plot)
    except OSError as error:
        raise SimulationError(f"the results cannot be written: {error}") from None
    return BROKEN if found.broken else 0


def organiser_of(settings: Settings) -> Organiser:
    """Who organises: the admin of the settings, else the one that `dev` keeps. SettingsError."""
    email, given = settings.admin_email or DEFAULT_ADMIN, settings.admin_password
    if given is not None:
        return Organiser(email, given.get_secret_value(), "SLOTLOCK_ADMIN_PASSWORD")
    path = secrets_file(settings.data_dir)
    if not path.exists():
        raise SettingsError(
            f"who organises? Set SLOTLOCK_ADMIN_EMAIL and SLOTLOCK_ADMIN_PASSWORD; nor is there "
            f"{path}, which `slotlock dev` keeps"
        )
    return Organiser(email, read_secrets(settings.data_dir)["admin_password"], str(path))


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ValueError:  # it is imported, but as nothing
        return False


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    if sys.platform == "win32":
        return asyncio.new_event_loop
    import uvloop  # there is none on Windows

    return uvloop.new_event_loop


def _number(least: int, most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"a number from {least} to {most}")
        return int(text)

    return number


def _way(text: str) -> By:
    try:
        return By(text)
    except ValueError:
        raise argparse.ArgumentTypeError(WAYS) from None


def _url(text: str) -> str:
    if not text.startswith(("http://", "https://")) or not text.partition("://")[2].strip("/"):
        raise argparse.ArgumentTypeError("an address like http://127.0.0.1:8000")
    return text.rstrip("/").removesuffix("/graphql")


def _writable(text: str) -> Path:
    path = Path(text)
    place = path if path.exists() else path.parent
    if path.is_dir() or not place.exists() or not os.access(place, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written")
    return path


def _picture(text: str) -> Path:
    if not text.lower().endswith(PICTURES):
        raise argparse.ArgumentTypeError(f"a file that ends in {' or '.join(PICTURES)}")
    return _writable(text)
