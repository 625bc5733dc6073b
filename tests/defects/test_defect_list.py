"""The list of defects names tests that there are."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
LIST = TESTS.parents[1] / "docs" / "defects.md"
DEFINED = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


def test_every_test_that_the_list_of_defects_names_exists() -> None:
    defined = {
        name for file in TESTS.glob("test_*.py") for name in DEFINED.findall(file.read_text())
    }
    named = set(re.findall(r"`(test_\w+)`", LIST.read_text()))
    assert named
    assert named <= defined, named - defined


def test_every_control_of_a_defect_is_listed() -> None:
    controls = {
        name
        for file in TESTS.glob("test_defects_*.py")
        for name in DEFINED.findall(file.read_text())
        if name.startswith("test_control")
    }
    assert controls <= set(re.findall(r"`(test_\w+)`", LIST.read_text()))
