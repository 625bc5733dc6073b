"""`slotlock --env-file FILE` works with the settings of the units."""

from pathlib import Path

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.processes import database_url
from tests.support.cli.command_line import command_errors, replace_environment, run_command


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove all settings; those of the files leave with the test."""
    replace_environment(monkeypatch, {"SLOTLOCK_MONGO_URL": "mongodb://elsewhere.invalid"})
    monkeypatch.setenv("SLOTLOCK_PUBLIC_URL", "")


def test_a_command_uses_the_settings_of_the_file_and_not_those_of_the_shell(
    capsys: pytest.CaptureFixture[str], servers: EmbeddedServers, tmp_path: Path
) -> None:
    file = tmp_path / "slotlock.env"
    url = database_url(servers, "of_a_unit")
    file.write_text(
        f"# of the units\n\n; also\nSLOTLOCK_MONGO_URL=\"{url}\"\nSLOTLOCK_PUBLIC_URL=''\n"
    )
    assert run_command(capsys, "--env-file", str(file), "users", "list", "--json") == "[]\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "No such file or directory"),
        ("A=1\nSLOTLOCK_MAIL_FROM=School <a@example.org>", "line 2 is not NAME=VALUE"),
        ("SLOTLOCK_SECRET_KEY='not closed", "line 1 is not NAME=VALUE"),
        ("export SLOTLOCK_PORT=1", "line 1 is not NAME=VALUE"),
        ("not closed", "line 1 is not NAME=VALUE"),
        ("\udcff", "can't decode byte"),
    ],
)
def test_a_file_that_cannot_be_read_ends_the_command_and_shows_no_value(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str | None, problem: str
) -> None:
    file = tmp_path / "slotlock.env"
    if text is not None:
        file.write_bytes(text.encode(errors="surrogateescape"))
    (line,) = command_errors(capsys, "--env-file", str(file), "users", "list")
    assert line.startswith(f"--env-file {file}: ")
    assert problem in line
    assert "not closed" not in line
