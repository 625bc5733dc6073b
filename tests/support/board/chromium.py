"""The browser of the tests, if this machine has one."""

import os
import shutil

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
NO_BROWSER = f"none of {', '.join(PROGRAMS)} is on PATH"


def find_chromium() -> str:
    """Return the path of a Chromium. Without one, skip, or fail if REQUIRE_BROWSER is set."""
    for program in PROGRAMS:
        if path := shutil.which(program):
            return path
    if os.environ.get("REQUIRE_BROWSER"):
        pytest.fail(NO_BROWSER)
    pytest.skip(NO_BROWSER)
