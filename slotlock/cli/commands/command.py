"""A command as it is declared: its texts, its arguments, and the function that runs it."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

EXIT_CODES = {
    0: "It has done its work.",
    1: "It could not do its work, and stderr has the reason.",
    2: "The arguments are wrong.",
}
# A command without an address in the settings finds them in a running `slotlock dev`.
FOUND_SETTINGS = {"mongo_url", "redis_url"}


class Argument(NamedTuple):
    """An argument as `add_argument` takes it."""

    names: tuple[str, ...]
    options: Mapping[str, Any]


def argument(*names: str, help: str, **options: Any) -> Argument:  # noqa: A002 - as in argparse
    """Declare an argument of a command."""
    return Argument(names, {"help": help, **options})


class Command(NamedTuple):
    """What a command does, for its help and docs/reference/commands.md.

    Functions are named `module:function` of slotlock, and imported when the command is chosen:
    every command would otherwise import what any command needs.
    """

    # One sentence, and more of them.
    summary: str
    description: str = ""
    # It gets the parsed arguments, and returns the exit code, a text to print, or None.
    run: str = ""
    example: str = ""
    # Settings without which it does nothing, and those that change what it does.
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    # Instead of a long list; `uses` has the most important ones then.
    uses_all_but: tuple[str, ...] | None = None
    exit_codes: Mapping[int, str] = {}
    arguments: tuple[Argument, ...] = ()
    # Adds arguments that another layer declares.
    define: str = ""
    # The facts in each row of the table that `run` returns; `--json` prints the same facts.
    columns: tuple[str, ...] = ()
    actions: Mapping[str, "Command"] = {}

    @property
    def all_exit_codes(self) -> dict[int, str]:
        """What each exit code means."""
        return dict(sorted({**EXIT_CODES, **self.exit_codes}.items()))

    def reads(self, name: str) -> bool:
        """Whether the command, or one of its actions, reads a setting."""
        if self.uses_all_but is not None:
            return name not in self.uses_all_but
        if name in (*self.needs, *self.uses) or (name == "data_dir" and self.finds_deployment):
            return True
        return any(each.reads(name) for each in self.actions.values())

    @property
    def finds_deployment(self) -> bool:
        """Whether a running `slotlock dev` has all settings that the command needs."""
        return bool(self.needs) and FOUND_SETTINGS.issuperset(self.needs)


def number(least: int, most: int, of: str = "") -> Callable[[str], int]:
    """Return the type of an argument that is a number from `least` to `most`."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or not least <= int(text) <= most:
            raise ArgumentTypeError(f"a number {of}{' ' if of else ''}from {least} to {most}")
        return int(text)

    return parse
