"""The list of defects names existing tests; a defect has a guard, a promise and a control."""

import re
from pathlib import Path

DEFECTS = Path(__file__).parent
TESTS = DEFECTS.parent
LIST = TESTS.parent / "docs" / "defects.md"
DEFINED = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


def listed() -> set[str]:
    """Return the names of all tests that the list names."""
    return set(re.findall(r"`(test_\w+)`", LIST.read_text()))


def test_every_test_that_the_list_of_defects_names_exists() -> None:
    defined = {
        name for file in TESTS.rglob("test_*.py") for name in DEFINED.findall(file.read_text())
    }
    named = listed()
    assert named
    assert named <= defined, named - defined


def test_every_control_of_a_defect_is_listed() -> None:
    controls = {
        name
        for file in DEFECTS.glob("test_*_defects.py")
        for name in DEFINED.findall(file.read_text())
        if name.startswith("test_control")
    }
    assert controls
    assert controls <= listed()


def test_every_defect_has_a_guard_a_promise_and_a_control() -> None:
    defects = re.split(r"^### ", LIST.read_text(), flags=re.MULTILINE)[1:]
    assert len(defects) > 30
    incomplete = [
        defect.split("\n", 1)[0]
        for defect in defects
        for part in ("Guard", "Promise", "Control")
        if f"\n- {part}: " not in defect
    ]
    assert incomplete == []
