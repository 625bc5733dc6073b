"""The command line: runs the command that was chosen, and prints what it returns."""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from slotlock.cli.commands.command import Command
from slotlock.cli.commands.parser import command_parser, load

FULL_DISK = {errno.ENOSPC, errno.EDQUOT}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; an error prints its reason on stderr."""
    args = command_parser().parse_args(arguments)
    try:
        return _run_command(args)
    except BrokenPipeError:  # the reader of stdout has closed it
        _discard_output()
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
    if isinstance(error, OSError) and error.errno in FULL_DISK:
        if error.filename is None:
            _discard_output()
        return f"{error.filename or 'the output or a file'} cannot be written: {error.strerror}"
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


def _discard_output() -> None:
    """Let Python flush what nobody takes when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run_command(args: argparse.Namespace) -> int:
    if args.env_file is not None:
        os.environ.update(load("api.settings.env_file:read_env_file")(args.env_file))
    command: Command = args.command
    result: Any = load(command.run)(args)
    if command.columns:
        from slotlock.cli.commands.table import format_rows

        print(format_rows(command.columns, result, as_json=args.json))
    elif isinstance(result, str):
        print(result)
    sys.stdout.flush()
    return result if isinstance(result, int) else 0


def serve(args: argparse.Namespace) -> int:
    """Run `slotlock serve`, whose imports follow from the number of processes."""
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


def print_schema(args: argparse.Namespace) -> str:
    """Return the GraphQL schema."""
    from slotlock.graphql.schema.schema import schema

    return schema.as_str()


def print_settings(args: argparse.Namespace) -> str:
    """Return the reference page of the settings."""
    from slotlock.api.settings.reference_page import settings_page
    from slotlock.cli.commands.declared import COMMANDS

    def readers(setting: str) -> list[str]:
        return [name for name, command in COMMANDS.items() if command.reads(setting)]

    return settings_page(readers).rstrip("\n")


def print_commands(args: argparse.Namespace) -> str:
    """Return the reference page of the commands."""
    from slotlock.cli.commands.page import commands_page

    return commands_page().rstrip("\n")
