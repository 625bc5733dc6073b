"""Every defect in docs/defects.md has a guard, a promise and a control, which exist as tests."""

import re
from pathlib import Path

DEFECT_TESTS = Path(__file__).parent
ALL_TESTS = DEFECT_TESTS.parent
DEFECT_LIST = ALL_TESTS.parent / "docs" / "defects.md"
TEST_FUNCTION = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


def listed_tests() -> set[str]:
    """Return the names of the tests in the list of defects."""
    return set(re.findall(r"`(test_\w+)`", DEFECT_LIST.read_text()))


def test_every_test_in_the_list_of_defects_exists() -> None:
    files = ALL_TESTS.rglob("test_*.py")
    existing = {name for file in files for name in TEST_FUNCTION.findall(file.read_text())}
    assert listed_tests()
    assert listed_tests() <= existing, listed_tests() - existing


def test_every_control_of_a_defect_is_in_the_list() -> None:
    files = DEFECT_TESTS.glob("test_*_defects.py")
    names = {name for file in files for name in TEST_FUNCTION.findall(file.read_text())}
    controls = {name for name in names if name.startswith("test_control")}
    assert controls
    assert controls <= listed_tests(), controls - listed_tests()


def test_every_defect_has_a_guard_a_promise_and_a_control() -> None:
    defects = re.split(r"^### ", DEFECT_LIST.read_text(), flags=re.MULTILINE)[1:]
    assert len(defects) > 30
    incomplete = [
        defect.split("\n", 1)[0]
        for defect in defects
        for part in ("Guard", "Promise", "Control")
        if f"\n- {part}: " not in defect
    ]
    assert incomplete == []
