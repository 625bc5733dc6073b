"""The reference page of all commands, as `slotlock commands` prints it."""

import argparse
from collections.abc import Iterator, Mapping
from textwrap import wrap

from slotlock.cli.commands.command import EXIT_CODES, Command
from slotlock.cli.commands.declared import COMMANDS
from slotlock.cli.commands.parser import CommandParser, sentences_of, settings_lines

INTRODUCTION = """\
# Commands

`slotlock COMMAND --help` prints the same.
Names of commands and options have no abbreviations.
[Settings](settings.md) describes the settings.
If none names a server, some commands use a running `slotlock dev`.
`slotlock --env-file FILE COMMAND` reads settings from a file such as that of the units.
They win over the environment.

Commands print what they found on stdout, and all else on stderr.
A table has a head; with `--json`, the same facts are JSON, with times in UTC, for programs.

| exit code | meaning, unless a command says more |
|---:|---|"""


def commands_page() -> str:
    """Return the reference page of all commands as Markdown, one sentence a line."""
    lines = [INTRODUCTION, *(f"| {code} | {text} |" for code, text in EXIT_CODES.items())]
    lines += _sections("slotlock", COMMANDS)
    return "\n".join(lines) + "\n"


def _sections(prefix: str, commands: Mapping[str, Command]) -> Iterator[str]:
    for name, command in commands.items():
        full_name = f"{prefix} {name}"
        level = "#" * len(full_name.split())
        yield from ("", f"{level} {full_name}", "", sentences_of(command))
        if command.actions:
            yield from _sections(full_name, command.actions)
        else:
            yield from _section(full_name, command)


def _section(name: str, command: Command) -> Iterator[str]:
    parser = CommandParser(prog=name)
    parser.add(command)
    yield from ("", "```sh", command.example, "```")
    if arguments := [each for each in parser._actions if each.dest != "help"]:
        yield from ("", "| argument | meaning |", "|---|---|", *map(_row, arguments))
    if command.columns:
        yield from ("", *wrap(f"Columns: {', '.join(command.columns)}.", 100))
    if settings := settings_lines(command, "`"):
        yield from ("", *settings)
    if command.exit_codes:
        yield ""
        yield from (
            f"- Exit code {code}: {text}" for code, text in sorted(command.exit_codes.items())
        )


def _row(action: argparse.Action) -> str:
    choices = r" \| ".join(action.choices) if action.choices else None
    value = action.metavar or choices or action.dest.upper()
    names = [f"{name} {value}" if action.nargs != 0 else name for name in action.option_strings]
    shown = ", ".join(f"`{name}`" for name in names or [str(value)])
    return f"| {shown} | {action.help} |"
