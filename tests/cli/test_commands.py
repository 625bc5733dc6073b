"""Every command is declared once: its help, its page, its table and its JSON agree."""

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from slotlock.api.settings.settings import DECLARATIONS
from slotlock.cli.commands.command import Command
from slotlock.cli.commands.declared import COMMANDS
from slotlock.cli.commands.page import commands_page
from slotlock.cli.commands.parser import command_parser, load
from slotlock.cli.commands.table import format_rows
from slotlock.cli.main import main

ROOT = Path(__file__).parents[2]
# What a command does to one thing or to several.
VERBS = {
    "list", "show", "create", "delete", "retry", "set-role", "set-password", "reset-link",
    "invite", "import", "sync", "ban", "unban", "send-test", "verify",
}  # fmt: skip


def leaves(
    commands: Mapping[str, Command] = COMMANDS, prefix: str = ""
) -> Iterator[tuple[str, Command]]:
    """Yield each command that does something, with its name."""
    for name, command in commands.items():
        if command.actions:
            yield from leaves(command.actions, f"{name} ")
        else:
            yield prefix + name, command


LEAVES = dict(leaves())


def test_the_page_of_the_commands_is_written_from_their_declarations() -> None:
    page = ROOT / "docs" / "reference" / "commands.md"
    assert page.read_text() == commands_page(), "run `make commands`"


@pytest.mark.parametrize("name", LEAVES)
def test_the_help_of_a_command_says_what_it_needs_to_be_used(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = LEAVES[name]
    with pytest.raises(SystemExit) as raised:
        main([*name.split(), "--help"])
    assert raised.value.code == 0
    text = capsys.readouterr().out
    assert command.summary.endswith(".")
    parts = [command.summary, f"example:\n  {command.example}\n", "exit codes:\n  0  "]
    parts += [f"SLOTLOCK_{each.upper()}" for each in (*command.needs, *command.uses)]
    parts += [", ".join(command.columns)]
    assert [part for part in parts if part not in text] == []
    assert {*command.needs, *command.uses} <= DECLARATIONS.keys()
    assert callable(load(command.run))


@pytest.mark.parametrize("name", LEAVES)
def test_the_example_of_a_command_can_be_run(name: str) -> None:
    words = shlex.split(LEAVES[name].example.partition(" > ")[0], comments=True)
    arguments = words[words.index("slotlock") + 1 :]
    assert " ".join(arguments).startswith(name)
    assert command_parser().parse_args(arguments).command is LEAVES[name]


def test_one_thing_is_done_by_one_verb() -> None:
    assert {name.split()[1] for name in LEAVES if " " in name} == VERBS


READING = {
    "backup": ("backup.py",),
    "doctor": ("doctor/*.py",),
    "migrate": ("migrate.py",),
    "outbox": ("outbox.py",),
    "queue": ("queue.py",),
    "simulate": ("simulate.py",),
    "users": ("users.py", "user_files.py"),
}


@pytest.mark.parametrize("name", READING)
def test_a_command_reads_no_setting_that_it_does_not_declare(name: str) -> None:
    files = [file for each in READING[name] for file in (ROOT / "slotlock/cli").glob(each)]
    read = {found for file in files for found in re.findall(r"settings\.(\w+)", file.read_text())}
    # A clock that is wrong is a line of the log.
    named = (read & DECLARATIONS.keys()) - {"max_clock_skew_s"}
    assert named
    assert [each for each in sorted(named) if not COMMANDS[name].reads(each)] == []


def test_the_page_of_the_settings_says_which_process_reads_them_and_what_they_may_be() -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    assert [
        re.search(rf"`{name}`\n\n- Value: (.*)\n- Read by: (.*)\n", page).groups()  # type: ignore[union-attr]
        for name in ("SLOTLOCK_PORT", "SLOTLOCK_BODY_TIMEOUT_S", "SLOTLOCK_REGISTRATION")
    ] == [
        ("a whole number from 1 to 65,535; default: `8000`", "`dev`, `serve`, `simulate`"),
        ("a number, greater than 0; default: `30`", "`dev`, `serve`"),
        ("`open`, `invited` or `closed`; default: `open`", "`dev`, `serve`"),
    ]
    assert page.count("- Read by: `") == len(DECLARATIONS)


@pytest.mark.parametrize("name", ["users import", "users sync"])
def test_what_reads_a_file_of_users_writes_only_with_apply(name: str) -> None:
    arguments = [*name.split(), "users.csv"]
    assert not command_parser().parse_args(arguments).apply
    assert command_parser().parse_args([*arguments, "--apply"]).apply


@pytest.mark.parametrize(
    "arguments", ["serve --work 2", "users create a@b.test --password", "users lis", "--vers"]
)
def test_an_abbreviation_is_refused(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        command_parser().parse_args(arguments.split())
    assert raised.value.code == 2
    assert "slotlock" in capsys.readouterr().err.splitlines()[-1]


def test_a_table_has_a_head_and_its_columns_are_aligned_for_each_script() -> None:
    created = datetime(2030, 1, 31, 14, tzinfo=UTC)
    rows = [("ada", "陈", ("5a", "5b"), created), ("be", "B\x1b\n", (), None)]
    columns = ("login", "name", "groups", "created at")
    assert format_rows(columns, rows, as_json=False).splitlines() == [
        "LOGIN  NAME     GROUPS  CREATED AT",
        "ada    陈       5a, 5b  2030-01-31 14:00:00 UTC",
        r"be     B\x1b\n  -       -",
    ]
    assert format_rows(columns, [], as_json=False) == "LOGIN  NAME  GROUPS  CREATED AT"
    assert json.loads(format_rows(columns, rows, as_json=True))[0] == {
        "login": "ada",
        "name": "陈",
        "groups": ["5a", "5b"],
        "createdAt": "2030-01-31T14:00:00.000Z",
    }
    assert format_rows(columns, [], as_json=True) == "[]"


def test_one_thing_is_shown_as_lines_or_as_an_object() -> None:
    columns, row = ("login", "has password"), ("ada", False)
    assert format_rows(columns, row, as_json=False) == "login:         ada\nhas password:  no"
    assert json.loads(format_rows(columns, row, as_json=True)) == {
        "login": "ada",
        "hasPassword": False,
    }


def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            (sys.executable, "-m", "slotlock", "settings"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    assert (
        ended.stderr
        == "slotlock: the output or a file cannot be written: No space left on device\n"
    )


def test_every_command_that_a_page_or_a_message_names_exists() -> None:
    files = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *(ROOT / "deploy").rglob("*.*")]
    files += [*(ROOT / "slotlock").rglob("*.py")]
    groups = "|".join(name for name, command in COMMANDS.items() if command.actions)
    named = {
        (file.relative_to(ROOT), match)
        for file in files
        if file.is_file() and "decisions" not in file.parts
        for match in re.findall(
            rf"slotlock ((?:{groups}) [a-z-]+)", file.read_text(errors="replace")
        )
    }
    assert len(named) > 30
    assert [(str(file), name) for file, name in named if name not in LEAVES] == []
