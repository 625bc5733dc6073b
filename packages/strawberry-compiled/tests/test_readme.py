"""The example of the README prints what the README says."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_first_example_prints_what_the_readme_says() -> None:
    example, printed = (
        re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)[0]
        for language in ("python", "text")
    )
    command = (sys.executable, "-c", example)
    completed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert completed.stdout == printed
