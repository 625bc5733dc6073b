"""Operators import files of people and print invitations, whether or not the app runs."""

import csv as csv_format
import os
import secrets
from io import StringIO
from pathlib import Path

import pytest

from slotlock.cli.main import main
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.import_file import MAX_FILE_BYTES
from tests.support.apps.processes import app_environment
from tests.support.clients.user_files import generated_user_csv, user_csv


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch, servers: EmbeddedServers) -> None:
    """The settings of an operator, and nothing else."""
    for name in list(os.environ):
        if name.startswith("SLOTLOCK_"):
            monkeypatch.delenv(name)
    for name, value in app_environment(servers, "operators").items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def school() -> str:
    """The domain of addresses that no other test has."""
    return f"{secrets.token_hex(8)}.test"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a file of people is."""
    return tmp_path / "people.csv"


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that works prints."""
    assert main(arguments) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The lines of a command that does not work."""
    assert main(arguments) == 1
    output = capsys.readouterr()
    assert output.out == ""
    return [line.removeprefix("slotlock: ") for line in output.err.splitlines()]


def test_a_file_is_tried_and_then_imported(
    capsys: pytest.CaptureFixture[str], file: Path, school: str
) -> None:
    file.write_bytes(generated_user_csv(school, 3))
    for _ in range(2):
        line = ran(capsys, "people", "import", str(file), "--dry-run")
        assert line == "would be: 3 created, 0 updated, 0 unchanged\n"
    assert ran(capsys, "people", "import", str(file)) == "3 created, 0 updated, 0 unchanged\n"
    assert ran(capsys, "people", "import", str(file)) == "0 created, 0 updated, 3 unchanged\n"
    assert f"person0@{school}\tmember\tSomebody\t" in ran(capsys, "users", "list")


def test_each_wrong_line_is_told(
    capsys: pytest.CaptureFixture[str], file: Path, school: str
) -> None:
    file.write_bytes(user_csv(school, {"ada": "Ada"}) + b"\nnobody,Ben,\n" * 102)
    lines = refused(capsys, "people", "import", str(file))
    assert lines[0] == "line 3, email: This is not an e-mail address."
    assert len(lines) == 101
    assert lines[-1] == "and 2 more"
    assert school not in ran(capsys, "users", "list")


def test_a_file_that_cannot_be_read_or_is_too_large_is_told(
    capsys: pytest.CaptureFixture[str], file: Path, tmp_path: Path
) -> None:
    for path in (file, tmp_path):
        (line,) = refused(capsys, "people", "import", str(path))
        assert "cannot be read" in line
    file.write_bytes(b"email\n".ljust(MAX_FILE_BYTES + 1))
    (line,) = refused(capsys, "people", "import", str(file))
    assert f"more than {MAX_FILE_BYTES} bytes" in line


def test_invitations_are_printed_for_a_group_or_for_all(
    capsys: pytest.CaptureFixture[str], file: Path, school: str
) -> None:
    file.write_bytes(user_csv(school, {"ada": "Ada", "ben": "=Ben"}, school))
    ran(capsys, "people", "import", str(file))
    printed = ran(capsys, "people", "invite", "--group", school)
    rows = list(csv_format.DictReader(StringIO(printed)))
    assert [(row["email"], row["name"]) for row in rows] == [
        (f"ada@{school}", "Ada"),
        (f"ben@{school}", "'=Ben"),
    ]
    assert len({row["token"] for row in rows}) == 2
    assert school in ran(capsys, "people", "invite")
    (line,) = refused(capsys, "people", "invite", "--group", "a;b")
    assert line.startswith("--group: ")
