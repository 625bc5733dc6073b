"""The commands of the README and of the race in the tutorial work when they are pasted."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.apps.dev_server import DevServer, run_dev_server

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RACE = (ROOT / "docs" / "tutorial" / "race.md").read_text()


def commands(text: str) -> str:
    """Return all commands of a text, in order."""
    return "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[DevServer]:
    """Run `slotlock dev` as `make run` does, with its data and its .venv in one folder."""
    (tmp_path / ".venv").symlink_to(sys.prefix)
    with run_dev_server(tmp_path / ".slotlock") as running:
        yield running


def paste(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a script in a folder."""
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )


def test_the_five_lines_of_the_readme_book_a_place(running: DevServer, tmp_path: Path) -> None:
    section = README.split("## For an app developer")[1].split("\n## ")[0]
    script = commands(section)
    assert len(script.splitlines()) == 5
    script = script.replace("127.0.0.1:8000", running.url.removeprefix("http://"))
    again = script.splitlines()[-1]
    completed = paste(script + again, tmp_path)
    first, second = completed.stdout.splitlines()
    assert first in section, (completed.stdout, completed.stderr)
    assert '"__typename":"AlreadyBooked"' in second


def test_the_race_of_the_tutorial_books_one_place_once(running: DevServer, tmp_path: Path) -> None:
    script = commands(RACE).replace("/tmp/watch.py", str(tmp_path / "watch.py"))  # noqa: S108
    script = script.replace("sleep 1", "sleep 5")  # the machine may be busy
    completed = paste(script, tmp_path)
    output = completed.stdout
    assert running.process.wait(30) == -signal.SIGKILL
    assert len(re.findall(r'"__typename":"Booked"', output)) == 1, (output, completed.stderr)
    assert len(re.findall(r'"__typename":"(?:Locked|SlotFull)"', output)) == 1, output
    assert '"remaining":1,"version":1' in output
    assert '"remaining":0,"version":2' in output
