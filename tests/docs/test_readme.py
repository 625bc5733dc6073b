"""The tour of the README works when it is pasted."""

import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.apps.dev_server import run_dev_server

ROOT = Path(__file__).parents[2]


def tour() -> str:
    """Return the commands of the section 'Five minutes', in order."""
    text = (ROOT / "README.md").read_text().split("## Five minutes")[1].split("\n## ")[0]
    return "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))


def test_the_tour_of_the_readme_works_when_pasted(tmp_path: Path) -> None:
    with run_dev_server(tmp_path / ".slotlock") as running:
        (tmp_path / ".venv").symlink_to(sys.prefix)
        script = tour().replace("/tmp/watch.py", str(tmp_path / "watch.py"))  # noqa: S108
        script = script.replace("sleep 1", "sleep 5")  # the machine may be busy
        completed = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        output = completed.stdout
        assert running.process.wait(30) == -signal.SIGKILL
    assert len(re.findall(r'"__typename":"Booked"', output)) == 1, (output, completed.stderr)
    assert len(re.findall(r'"__typename":"(?:Locked|SlotFull)"', output)) == 1, output
    assert '"remaining":1,"version":1' in output
    assert '"remaining":0,"version":2' in output
