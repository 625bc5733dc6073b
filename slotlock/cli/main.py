"""The command line: the commands of `slotlock` and their arguments."""

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from slotlock import __version__


class _CommandParser(argparse.ArgumentParser):
    """The parser of a command, which is defined when the command is chosen.

    Every command would otherwise import what any command needs.
    """

    define: Callable[[argparse.ArgumentParser], None] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the arguments of the command, and parse them."""
        if self.define is not None:
            self.define(self)
        return super().parse_known_args(args, namespace)


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
    code = int(args.run(args) or 0)
    sys.stdout.flush()
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slotlock", description="Time-slot reservations, live.")
    parser.add_argument("--version", action="version", version=f"slotlock {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_CommandParser)

    def add(name: str, text: str) -> _CommandParser:
        return commands.add_parser(name, help=text)

    add("dev", "run everything on this machine, with embedded servers").set_defaults(run=_dev)
    serving = add("serve", "run the app for production")
    serving.add_argument(
        "--workers",
        type=_parse_worker_count,
        default=1,
        metavar="N",
        help="server processes, default 1",
    )
    serving.set_defaults(run=_serve)
    add("worker", "serve the admission queue and send mail").set_defaults(run=_worker)
    add("migrate", "build the indexes that the database lacks").define = _define_migrate
    add("doctor", "check settings, MongoDB, Redis, clocks and limits").set_defaults(run=_doctor)
    add("backup", "write the database into a file").define = _define_backup
    add("restore", "restore the file of a backup").define = _define_restore
    add("users", "manage accounts").define = _define_users
    add("queue", "manage the admission queue").define = _define_queue
    add("outbox", "show, retry and test mails and webhook calls").define = _define_outbox
    add("draw", "verify the public record of a draw").define = _define_draw
    add("simulate", "let simulated users rush at a running server").define = _define_simulate
    add("schema", "print the GraphQL schema").set_defaults(run=_print_schema)
    add("settings", "print the reference page of the settings").set_defaults(run=_print_settings)
    return parser


def _parse_worker_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError("a number from 1 to 64")
    return int(text)


def _define_migrate(parser: argparse.ArgumentParser) -> None:
    from slotlock.cli.migrate import define_migrate

    define_migrate(parser)


def _define_backup(parser: argparse.ArgumentParser) -> None:
    from slotlock.cli.backup import define_backup

    define_backup(parser)


def _define_restore(parser: argparse.ArgumentParser) -> None:
    from slotlock.cli.backup import define_restore

    define_restore(parser)


def _define_users(parser: argparse.ArgumentParser) -> None:
    from slotlock.cli.users import define_users

    define_users(parser)


def _define_queue(parser: argparse.ArgumentParser) -> None:
    from slotlock.cli.queue import define_queue

    define_queue(parser)


def _define_outbox(parser: argparse.ArgumentParser) -> None:
    from slotlock.cli.outbox import define_outbox

    define_outbox(parser)


def _define_draw(parser: argparse.ArgumentParser) -> None:
    from slotlock.cli.draws.verify import define_draw

    define_draw(parser)


def _define_simulate(parser: argparse.ArgumentParser) -> None:
    from slotlock.cli.simulate import find_target
    from slotlock.simulation.command import DRAW_MODE, define_simulate, run_simulate_command

    def run(args: argparse.Namespace) -> int:
        if args.mode == DRAW_MODE:
            from slotlock.cli.draws.compare import compare_on_wishes

            return compare_on_wishes(args)
        return run_simulate_command(args, find_target)

    define_simulate(parser)
    parser.set_defaults(run=run)


def _dev(args: argparse.Namespace) -> int:
    from slotlock.api.settings.settings import read_settings
    from slotlock.devserver.run import run_dev

    return run_dev(read_settings())


def _serve(args: argparse.Namespace) -> int:
    if args.workers == 1:
        from slotlock.cli.serve import serve_alone

        return serve_alone()
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="slotlock-metrics-") as directory:
        # prometheus_client reads the variable when it is imported.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = directory
        try:
            from slotlock.cli.serve import serve_together

            return serve_together(args.workers)
        finally:
            del os.environ["PROMETHEUS_MULTIPROC_DIR"]


def _worker(args: argparse.Namespace) -> int:
    from slotlock.cli.worker import run_worker

    return run_worker()


def _doctor(args: argparse.Namespace) -> int:
    from slotlock.cli.doctor.command import run_doctor

    return run_doctor()


def _print_schema(args: argparse.Namespace) -> None:
    from slotlock.graphql.schema.schema import schema

    print(schema.as_str())


def _print_settings(args: argparse.Namespace) -> None:
    from slotlock.api.settings.reference_page import settings_page

    print(settings_page(), end="")
