"""Every defect in docs/defects.md has a guard, a promise and a control, which exist as tests.

A control is a row of the promise's test that names the guards that are off, as `without`.
"""

import re
from importlib import import_module
from pathlib import Path

OTHER_MODULES = ("concurrency.test_resource_races",)
ALL_TESTS = Path(__file__).parent.parent
DEFECT_LIST = (ALL_TESTS.parent / "docs" / "defects.md").read_text()
TEST_FUNCTION = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)
CONTROL = re.compile(r"^- Control: `(test_\w+)` without `(.+)`$", re.MULTILINE)


def test_every_test_in_the_list_of_defects_exists() -> None:
    files = ALL_TESTS.rglob("test_*.py")
    existing = {name for file in files for name in TEST_FUNCTION.findall(file.read_text())}
    listed = set(re.findall(r"`(test_\w+)`", DEFECT_LIST))
    assert listed
    assert listed <= existing, listed - existing


def test_every_control_of_a_defect_is_in_the_list() -> None:
    names = [f"defects.{file.stem}" for file in Path(__file__).parent.glob("test_*_defects.py")]
    modules = [import_module(f"tests.{name}") for name in (*names, *OTHER_MODULES)]
    controls = {
        (name, guards)
        for module in modules
        for name, test in vars(module).items()
        for mark in getattr(test, "pytestmark", [])
        if mark.name == "parametrize" and "without" in (mark.args[0], mark.args[0][0])
        for row in mark.args[1]
        if (guards := row if isinstance(row, str) else row[0])
    }
    assert controls
    assert controls == set(CONTROL.findall(DEFECT_LIST))


def test_every_defect_has_a_guard_a_promise_and_a_control() -> None:
    defects = re.split(r"^### ", DEFECT_LIST, flags=re.MULTILINE)[1:]
    assert len(defects) > 30
    incomplete = [
        defect.split("\n", 1)[0]
        for defect in defects
        for part in ("Guard", "Promise", "Control")
        if f"\n- {part}: " not in defect
    ]
    assert incomplete == []
