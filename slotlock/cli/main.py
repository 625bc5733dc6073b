"""The command line: the commands of `slotlock` and their arguments."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from pymongo.errors import PyMongoError

from slotlock import __version__
from slotlock.api.server.serve import ListenError, base_url, bind, serve, serve_from_processes
from slotlock.api.settings.reference_page import settings_page
from slotlock.api.settings.settings import Settings, SettingsError, read_settings, require
from slotlock.api.telemetry.traces import TracingUnavailableError, check_tracing
from slotlock.cli.backends import CommandError, check_mongodb
from slotlock.cli.backup import add_backup_commands
from slotlock.cli.deployment import settings_with_mongodb, with_deployment
from slotlock.cli.doctor.command import examine
from slotlock.cli.migrate import migrate
from slotlock.cli.queue import add_queue_commands
from slotlock.cli.simulate import find_target
from slotlock.cli.users import add_users_commands
from slotlock.devserver.binaries import ServerStartError
from slotlock.infrastructure.mongo.indexes.builder import BUILD_DEADLINE_S
from slotlock.simulation.command import add_simulate_command, run_simulate_command
from slotlock.simulation.model.plan import MissingPackagesError

ERRORS = (
    SettingsError,
    ListenError,
    ServerStartError,
    CommandError,
    MissingPackagesError,
    TracingUnavailableError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; an error prints its reason on stderr."""
    args = _parser().parse_args(arguments)
    try:
        return _run_command(args)
    except BrokenPipeError:  # the reader of stdout has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except ERRORS as error:
        for line in str(error).splitlines():
            print(f"slotlock: {line}", file=sys.stderr)
    except PyMongoError as error:
        reason = str(error).partition(" (")[0]
        print(f"slotlock: MongoDB (SLOTLOCK_MONGO_URL) is unavailable: {reason}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def _run_command(args: argparse.Namespace) -> int:
    code = int(args.run(args) or 0)
    sys.stdout.flush()
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slotlock", description="Time-slot reservations, live.")
    parser.add_argument("--version", action="version", version=f"slotlock {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    dev = commands.add_parser("dev", help="run everything on this machine, with embedded servers")
    dev.set_defaults(run=_dev)

    production = commands.add_parser("serve", help="run the app for production")
    production.add_argument(
        "--workers",
        type=_parse_worker_count,
        default=1,
        metavar="N",
        help="server processes, default 1",
    )
    production.set_defaults(run=_serve)

    worker = commands.add_parser("worker", help="serve the admission queue only")
    worker.set_defaults(run=_worker)

    migrating = commands.add_parser("migrate", help="build the indexes that the database lacks")
    migrating.add_argument(
        "--deadline",
        type=_parse_minutes,
        default=BUILD_DEADLINE_S / 60,
        metavar="MINUTES",
        help="give up after this time, default a day",
    )
    migrating.set_defaults(run=_migrate)

    doctor = commands.add_parser("doctor", help="check settings, MongoDB, Redis, clocks and limits")
    doctor.set_defaults(run=_doctor)

    add_backup_commands(commands)
    add_users_commands(commands)
    add_queue_commands(commands)
    add_simulate_command(commands).set_defaults(run=_simulate)
    commands.add_parser("schema", help="print the GraphQL schema").set_defaults(run=_print_schema)
    commands.add_parser("settings", help="print the reference page of the settings").set_defaults(
        run=_print_settings
    )
    return parser


def _parse_worker_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError("a number from 1 to 64")
    return int(text)


def _parse_minutes(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100_000:
        raise argparse.ArgumentTypeError("a number of minutes from 1 to 100000")
    return int(text)


def _dev(args: argparse.Namespace) -> int:
    from slotlock.devserver.run import run_dev  # needs modules that production does not load

    settings = read_settings()
    _check_operations(settings, development=True)
    return run_dev(settings)


def _serve(args: argparse.Namespace) -> int:
    settings = read_settings()
    require(settings, "mongo_url", "redis_url", "secret_key")
    if settings.admin_email is not None:
        require(settings, "admin_password")
    check_tracing()
    _check_operations(settings, development=False)
    asyncio.run(check_mongodb(settings))
    from slotlock.api.app import build_app

    with bind(settings.host, settings.port) as bound:
        if args.workers > 1:
            address = f"{base_url(settings)} with {args.workers} server processes"
            print(f"listening on {address}", flush=True)
            factory = "slotlock.api.app:create_app"
            return 0 if serve_from_processes(settings, bound, factory, args.workers) else 1
        address = base_url(settings)
        app = build_app(settings, development=False)
        return 0 if serve(settings, bound, app, lambda: print(f"listening on {address}")) else 1


def _check_operations(settings: Settings, *, development: bool) -> None:
    """Check the list of documents before the server starts; raises SettingsError."""
    if settings.operations is not None:
        from slotlock.api.app_state import document_cache

        document_cache(settings, development=development)


def _worker(args: argparse.Namespace) -> int:
    settings = with_deployment(read_settings(), "mongo_url", "redis_url")
    check_tracing()
    asyncio.run(check_mongodb(settings))
    from slotlock.cli.worker import run_worker

    return run_worker(settings)


def _migrate(args: argparse.Namespace) -> None:
    settings = settings_with_mongodb()
    asyncio.run(check_mongodb(settings))
    print(asyncio.run(migrate(settings, args.deadline * 60)))


def _doctor(args: argparse.Namespace) -> int:
    return asyncio.run(examine())


def _simulate(args: argparse.Namespace) -> int:
    return run_simulate_command(args, find_target)


def _print_schema(args: argparse.Namespace) -> None:
    from slotlock.graphql.schema.schema import schema

    print(schema.as_str())


def _print_settings(args: argparse.Namespace) -> None:
    print(settings_page(), end="")
