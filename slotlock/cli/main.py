"""The command line: the commands of `slotlock` and their arguments."""

import argparse
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from slotlock import __version__


class Command(NamedTuple):
    """What a command does, and the `module:function` of slotlock that is imported for it.

    Every command would otherwise import what any command needs.
    """

    help: str
    # Runs a command without arguments, and returns the exit code or None.
    run: str = ""
    # Adds the arguments, and the function that runs the command with them.
    define: str = ""


COMMANDS = {
    "dev": Command(
        "run everything on this machine, with embedded servers", run="devserver.run:run_dev"
    ),
    "serve": Command("run the app for production", define="cli.main:define_serve"),
    "worker": Command("serve the admission queue and send mail", run="cli.worker:run_worker"),
    "migrate": Command(
        "build the indexes that the database lacks", define="cli.migrate:define_migrate"
    ),
    "doctor": Command(
        "check settings, MongoDB, Redis, clocks and limits", run="cli.doctor.command:run_doctor"
    ),
    "backup": Command("write the database into a file", define="cli.backup:define_backup"),
    "restore": Command("restore the file of a backup", define="cli.backup:define_restore"),
    "users": Command("manage accounts", define="cli.users:define_users"),
    "queue": Command("manage the admission queue", define="cli.queue:define_queue"),
    "outbox": Command(
        "show, retry and test mails and webhook calls", define="cli.outbox:define_outbox"
    ),
    "draw": Command("verify the public record of a draw", define="cli.draws.verify:define_draw"),
    "simulate": Command(
        "let simulated users rush at a running server",
        define="cli.simulate:define_simulate_command",
    ),
    "schema": Command("print the GraphQL schema", run="cli.main:print_schema"),
    "settings": Command("print the reference page of the settings", run="cli.main:print_settings"),
}


class _CommandParser(argparse.ArgumentParser):
    command: Command | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the arguments of the command, which has been chosen, and parse them."""
        if self.command is not None and self.command.define:
            load(self.command.define)(self)
        return super().parse_known_args(args, namespace)


def load(target: str) -> Callable[..., Any]:
    """Import a function of slotlock; `target` is `module:function`."""
    module, _, name = target.partition(":")
    gc.disable()  # what is imported stays: collections would take a twentieth of a start
    try:
        function: Callable[..., Any] = getattr(import_module(f"slotlock.{module}"), name)
    finally:
        gc.freeze()
        gc.enable()
    return function


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; an error prints its reason on stderr."""
    args = _parser().parse_args(arguments)
    try:
        return _run_command(args)
    except BrokenPipeError:  # the reader of stdout has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        reason = _describe(error)
        if reason is None:
            raise
        for line in reason.splitlines():
            print(f"slotlock: {line}", file=sys.stderr)
    return 1


def _describe(error: Exception) -> str | None:
    """Return why a command could not do its work; None if the error is a bug."""
    from pymongo.errors import PyMongoError

    from slotlock.api.listener import ListenError
    from slotlock.api.settings.settings import SettingsError
    from slotlock.api.telemetry.traces import TracingUnavailableError
    from slotlock.cli.deployment import CommandError
    from slotlock.devserver.binaries import ServerStartError
    from slotlock.infrastructure.mongo.client import outage_reason
    from slotlock.simulation.model.plan import MissingPackagesError

    if isinstance(error, PyMongoError):
        reason = outage_reason(error).partition(" (")[0]
        return f"MongoDB (SLOTLOCK_MONGO_URL) is unavailable: {reason}"
    expected = (
        SettingsError,
        ListenError,
        ServerStartError,
        CommandError,
        MissingPackagesError,
        TracingUnavailableError,
    )
    return str(error) if isinstance(error, expected) else None


def _run_command(args: argparse.Namespace) -> int:
    if args.env_file is not None:
        os.environ.update(load("api.settings.env_file:read_env_file")(args.env_file))
    without_arguments = COMMANDS[args.command].run
    code = load(without_arguments)() if without_arguments else args.run(args)
    sys.stdout.flush()
    return int(code or 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slotlock", description="Time-slot reservations, live.")
    parser.add_argument("--version", action="version", version=f"slotlock {__version__}")
    parser.add_argument(
        "--env-file",
        type=Path,
        metavar="FILE",
        help="read settings from a file such as that of the units; they win over the environment",
    )
    parsers = parser.add_subparsers(
        required=True, dest="command", metavar="COMMAND", parser_class=_CommandParser
    )
    for name, command in COMMANDS.items():
        parsers.add_parser(name, help=command.help).command = command
    return parser


def define_serve(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `slotlock serve`, whose imports follow from their values."""
    parser.add_argument(
        "--workers",
        type=_parse_worker_count,
        default=1,
        metavar="N",
        help="server processes, default 1; more need Linux",
    )
    parser.set_defaults(run=_serve)


def _parse_worker_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError("a number from 1 to 64")
    return int(text)


def _serve(args: argparse.Namespace) -> int:
    if args.workers == 1:
        return int(load("cli.serve:serve_alone")())
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="slotlock-metrics-") as directory:
        # prometheus_client reads the variable when it is imported.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
        try:
            return int(load("cli.serve:serve_together")(args.workers))
        finally:
            del os.environ["PROMETHEUS_MULTIPROC_DIR"]


def print_schema() -> None:
    """Print the GraphQL schema."""
    from slotlock.graphql.schema.schema import schema

    print(schema.as_str())


def print_settings() -> None:
    """Print the reference page of the settings."""
    from slotlock.api.settings.reference_page import settings_page

    print(settings_page(), end="")
