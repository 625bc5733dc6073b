"""Reads the examples of docs/tutorial from the Markdown and runs them against a server.

An example is a fenced block that follows a comment with its name:

    <!-- example: curl-book -->
    ```sh
    ...
    ```

`make test` runs them.
"""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TUTORIAL = Path(__file__).parent.parent / "docs" / "tutorial"
EXAMPLE_TIMEOUT_S = 60.0
# The example that creates the slot which all others book or watch.
SETUP = "create-slot"
# What the output of each example must contain, in this order (regular expressions).
EXPECTED_OUTPUT: Mapping[str, Sequence[str]] = {
    SETUP: (r'"id":"slot_\w+"', r'"remaining":50'),
    "curl-book": (
        r'"__typename":"Booked","booking":\{"id":"(?P<booking>\w+)","status":"CONFIRMED"',
        r'"__typename":"Booked","booking":\{"id":"(?P=booking)","status":"CONFIRMED"',
    ),
    "curl-hold": (r'"status":"HELD"', r'"__typename":"BookingConfirmed"', r'"status":"CONFIRMED"'),
    "curl-watch": (r"event: next", r'"slotAvailability":\{"remaining":\d+,"version":\d+\}'),
    "curl-refresh": (r'"__typename":"Session"', r'"__typename":"Session"'),
}

_EXAMPLE = re.compile(
    r"^<!-- example: ([a-z0-9-]+) -->\n```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Example:
    """One shell script of the tutorial."""

    name: str
    source: str


def read_examples(folder: Path = TUTORIAL) -> list[Example]:
    """Return every example in the Markdown files of a folder, by file and position."""
    texts = (path.read_text() for path in sorted(folder.glob("*.md")))
    return [Example(*match.groups()) for text in texts for match in _EXAMPLE.finditer(text)]


def problem_of(
    example: Example, home: Path, url: str, admin_email: str, admin_password: str
) -> str | None:
    """Run an example in the folder `home` and return what is wrong with it, or None."""
    environment = {
        **os.environ,
        "SLOTLOCK_URL": url,
        "SLOTLOCK_ADMIN_EMAIL": admin_email,
        "SLOTLOCK_ADMIN_PASSWORD": admin_password,
    }
    try:
        process = subprocess.run(
            ("bash", "-euo", "pipefail", "-c", example.source),
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=EXAMPLE_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return f"{example.name} did not end within {EXAMPLE_TIMEOUT_S:g} s"
    expected = re.compile(".*?".join(EXPECTED_OUTPUT[example.name]), re.DOTALL)
    if process.returncode == 0 and expected.search(process.stdout):
        # Otherwise, the prompt of the shell would stand behind the response.
        return None if process.stdout.endswith("\n") else f"{example.name} ends within a line"
    output = " | ".join((process.stdout + process.stderr).strip().splitlines()[-8:])
    return f"{example.name} ended with {process.returncode}: {output}"
