"""Parses the arguments of commands, and writes their help."""

import argparse
import gc
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from textwrap import wrap
from typing import Any

from slotlock import __version__
from slotlock.cli.commands.command import Command
from slotlock.cli.commands.declared import COMMANDS

PREFIX = "SLOTLOCK_"


class CommandParser(argparse.ArgumentParser):
    """The parser of a command, which adds its arguments once the command is chosen."""

    command: Command | None = None

    def __init__(self, **options: Any) -> None:
        # An abbreviation may mean something else after the next release.
        super().__init__(
            allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the arguments of the command, which has been chosen, and parse them."""
        if self.command is not None:
            self.add(self.command)
        return super().parse_known_args(args, namespace)

    def add(self, command: Command) -> None:
        """Add what a command declares."""
        self.description = sentences_of(command)
        self.epilog = _epilog(command)
        self.set_defaults(command=command)
        if command.actions:
            self.add_commands(command.actions)
        for declared in command.arguments:
            self.add_argument(*declared.names, **declared.options)
        if command.define:
            load(command.define)(self)
        if command.columns:
            self.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def add_commands(self, commands: "dict[str, Command] | Any") -> None:
        """Add commands of which one has to be chosen."""
        parsers = self.add_subparsers(required=True, metavar="COMMAND", parser_class=CommandParser)
        for name, command in commands.items():
            parsers.add_parser(name, help=command.summary).command = command


def command_parser() -> CommandParser:
    """Return the parser of `slotlock`."""
    parser = CommandParser(prog="slotlock", description="Time-slot reservations, live.")
    parser.add_argument("--version", action="version", version=f"slotlock {__version__}")
    parser.add_argument(
        "--env-file",
        type=Path,
        metavar="FILE",
        help="read settings from a file such as that of the units; they win over the environment",
    )
    parser.add_commands(COMMANDS)
    return parser


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


def sentences_of(command: Command) -> str:
    """Return what a command does, one sentence a line."""
    return re.sub(r"(?<=\.) ", "\n", f"{command.summary} {command.description}".rstrip())


def settings_lines(command: Command, quote: str = "") -> list[str]:
    """Return the settings of a command, in one line for each kind."""
    needed, used = (
        ", ".join(f"{quote}{PREFIX}{name.upper()}{quote}" for name in names)
        for names in (command.needs, command.uses)
    )
    found = ", or a running `slotlock dev`" if command.finds_deployment else ""
    more = " and others" if command.uses_all_but is not None else ""
    sentences = {f"It needs {needed}{found}.": needed, f"It uses {used}{more}.": used}
    return [line for text, names in sentences.items() if names for line in wrap(text, 100)]


def _epilog(command: Command) -> str:
    if command.actions:
        return ""
    parts = {
        "columns": [", ".join(command.columns)] * bool(command.columns),
        "settings": settings_lines(command),
        "exit codes": [f"{code}  {text}" for code, text in command.all_exit_codes.items()],
        "example": [command.example],
    }
    return "\n\n".join(
        "\n".join((f"{title}:", *(f"  {line}" for line in lines)))
        for title, lines in parts.items()
        if lines
    )
