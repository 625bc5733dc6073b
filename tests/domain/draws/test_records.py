"""Records: what they claim is recomputed, by slotlock and by the code of the documentation."""

import json
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from copy import deepcopy
from io import StringIO
from pathlib import Path
from random import Random
from types import CodeType
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings

from slotlock.cli.main import main
from slotlock.domain.draws.basis import DrawBasis, pseudonym_of, root_of
from slotlock.domain.draws.drawing import WishResult
from slotlock.domain.draws.record import (
    DrawRecord,
    RecordError,
    from_document,
    to_document,
    verify,
)
from slotlock.domain.users.user import UserId
from tests.support.domain.draws import build_basis, drawn_record, random_draws

ROOT = Path(__file__).parents[3]
VECTORS = sorted((ROOT / "docs" / "reference" / "draw-records").glob("*.json"))
DRAWN = ROOT / "docs" / "reference" / "draw-records" / "draw-1.json"
# Random draws on which each of the wrong programs fails, and their largest numbers of bookings.
CHOSEN = ((490, None), (189, None), (1242, None), (387, None), (776, None), (193, 9), (1325, None))
PAGE = (ROOT / "docs" / "guides" / "verify-a-draw.md").read_text()
(SHOWN_CODE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHOWN_PROGRAM = compile(SHOWN_CODE, "verify.py", "exec")
# Parts of the shown program, by what they decide, and a wrong form of each.
WRONG_PARTS = {
    "the order of round 3": ("order if round_number % 2", "order if round_number == 1"),
    "the order of round 4": ("order if round_number % 2", "order if round_number != 2"),
    "an exact limit": ('(e["group"] == group, len(e["group"]))', 'len(e["group"])'),
    "the longest prefix": ('(e["group"] == group, len(e["group"]))', '-len(e["group"])'),
    "the strictest limit": ('(e["group"] == group, len(e["group"]))', '-e["limit"]'),
    "limits of the slot first": (
        'in slot["groupLimits"], rules["groupLimits"]:',
        'in (slot["groupLimits"] + rules["groupLimits"],):',
    ),
    "limits of the campaign": (
        'in slot["groupLimits"], rules["groupLimits"]:',
        'in (slot["groupLimits"],):',
    ),
    "prefixes": ('e["group"].endswith("*")', "False"),
    "groups of members before": ('+ sum(group in m["groups"] for m in before)', ""),
    "members before": ("+ len(before) >=", ">="),
    "counts before": ('each["count"] for each', "0 for each"),
    "bookings elsewhere": ('sum(s["inCampaign"] for', "sum(True for"),
    "choices elsewhere": (
        's["choiceGroup"] is not None and',
        's["inCampaign"] and s["choiceGroup"] is not None and',
    ),
    "later meetings": ('for a in one["meetings"]', 'for a in one["meetings"][:1]'),
    "later meetings of others": ('for b in other["meetings"]', 'for b in other["meetings"][:1]'),
    "bookings without a time": ("return any(", 'return not one["meetings"] or any('),
    "meetings that touch": ('a["start"] < b["end"]', 'a["start"] <= b["end"]'),
    "the first choice": ("same[0]", "same[-1]"),
    "the first conflict": ("conflicts[0]", "conflicts[-1]"),
    "the first group": (
        '{"result": "GROUP_FULL", "group": full[0]}',
        '{"result": "GROUP_FULL", "group": full[-1]}',
    ),
    "each group": ('for group in member["groups"] if', 'for group in member["groups"][:1] if'),
    "each group of a place": (
        'for group in member["groups"]:',
        'for group in member["groups"][:1]:',
    ),
    "the order of bookings": (".append(slot_id)", ".insert(0, slot_id)"),
    "places before": ('s["booked"] for s in', "0 for s in"),
    "eligibility after the slot": (
        "if slot is None or not",
        'if all(m["eligible"] for m in members) and slot is None or slot and not',
    ),
    "every member's eligibility": (
        'not all(member["eligible"] for member in members)',
        'not members[0]["eligible"]',
    ),
    "one member only": (
        "for n, member in enumerate(members):",
        "for n, member in enumerate(members[:1]):",
    ),
    "one place for a team": ("taken[slot_id] + len(members)", "taken[slot_id] + 1"),
    "the limit after the time": ("if conflicts:", "if conflicts and 0:"),
    "serial": ('and rules["method"] == "rounds"', ""),
    "forbidOverlap of both": (
        's["forbidOverlap"] and slot["forbidOverlap"] and',
        'slot["forbidOverlap"] and',
    ),
    "forbidOverlap of the other": (
        's["forbidOverlap"] and slot["forbidOverlap"] and',
        's["forbidOverlap"] and',
    ),
    "open": ('slot["open"] and slot["inCampaign"]', 'slot["inCampaign"]'),
    "inCampaign": ('slot["open"] and slot["inCampaign"]', 'slot["open"]'),
    "lot order": ('key=lambda e: e["lot"]', 'key=lambda e: e["leaf"]'),
}
Change = Callable[[dict[str, Any]], object]


def run_shown_program(path: Path, program: CodeType = SHOWN_PROGRAM) -> str:
    """Return what the code of the page prints about a record."""
    printed = StringIO()
    with patch("sys.argv", ["verify.py", str(path)]), redirect_stdout(printed):
        exec(program, {})  # noqa: S102
    return printed.getvalue()


@given(random_draws)
def test_a_record_is_read_as_it_was_written(basis: DrawBasis) -> None:
    drawn = drawn_record(basis)
    document = json.loads(json.dumps(to_document(drawn)))
    assert verify(document) == []
    read = from_document(document)
    assert (read.basis, read.seed, to_document(read)) == (basis, drawn.seed, document)
    closed = to_document(DrawRecord(basis, root_of(basis)))
    assert verify(json.loads(json.dumps(closed))) == []
    assert "wishes" not in json.dumps(closed)


@pytest.fixture(scope="module")
def record_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("draw") / "record.json"


@settings(phases=set(Phase) - {Phase.shrink})  # each step takes as long as the whole test
@given(random_draws)
def test_the_code_of_the_page_agrees_on_every_draw(record_path: Path, basis: DrawBasis) -> None:
    record_path.write_text(json.dumps(to_document(drawn_record(basis))))
    assert run_shown_program(record_path) == "The record is right.\n"


def wrong_records() -> dict[str, Change]:
    """Return changes that make a right record wrong, by what they change."""
    return {
        "a wish": lambda record: record["entries"][0]["wishes"].reverse(),
        "a capacity": lambda record: record["rules"]["slots"][0].update(capacity=50),
        "a title": lambda record: record["rules"]["slots"][0].update(title="Other"),
        "the seed": lambda record: record["seed"].update(text="another"),
        "a lot": lambda record: record["entries"][0].update(lot="0" * 64),
        "a number": lambda record: record["entries"][0].update(number=99),
        "a result": lambda record: record["entries"][0]["outcomes"].__setitem__(
            0, {"result": "GRANTED", "round": 7}
        ),
        "the order": lambda record: record["entries"].reverse(),
        "an entry": lambda record: record["entries"].pop(),
    }


@pytest.mark.parametrize("name", wrong_records())
def test_each_change_of_a_record_is_found(record_path: Path, name: str) -> None:
    document = deepcopy(json.loads(DRAWN.read_text()))
    wrong_records()[name](document)
    assert verify(document)
    record_path.write_text(json.dumps(document))
    with pytest.raises(SystemExit, match="wrong"):
        run_shown_program(record_path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda record: record.pop("rules"), "record.rules: an object is needed"),
        (lambda record: record["rules"].update(format="x"), "the only known format"),
        (lambda record: record["rules"]["slots"].append(record["rules"]["slots"][0]), "twice"),
        (lambda record: record["rules"]["slots"][0].update(capacity="2"), "a number is needed"),
        (lambda record: record["rules"]["slots"][0].update(meetings=[]), "has meetings"),
        (lambda record: record["rules"]["slots"][0].update(title="\ud800"), "a text is needed"),
        (lambda record: record["rules"].update(method="chance"), "chance is not known"),
        (lambda record: record["entries"][0].update(outcomes=[]), "each wish has an outcome"),
        (lambda record: record["entries"][0]["members"][0].update(booked=["x"]), "not among"),
        (lambda record: record["entries"][0].update(members=[]), "an entry has members"),
        (lambda record: record["entries"].append(record["entries"][0]), "occurs twice"),
        (lambda record: record["entries"].append(None), "an object is needed"),
        (lambda record: record["rules"].update(note="x"), "record.rules.note: this name is"),
        (lambda record: record["rules"]["slots"][0].pop("choiceGroup"), "choiceGroup: this name"),
        (lambda record: record["entries"][0]["outcomes"][0].update(more=None), "more: this name"),
    ],
)
def test_a_document_that_is_no_record_is_refused_with_the_place(
    change: Change, reason: str
) -> None:
    document = json.loads(DRAWN.read_text())
    change(document)
    with pytest.raises(RecordError, match=re.escape(reason)):
        verify(document)


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_the_test_vectors_are_right(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["draw", "verify", str(path)]) == 0
    assert "The record is right." in capsys.readouterr().out
    assert run_shown_program(path) == "The record is right.\n"


@pytest.mark.parametrize("part", WRONG_PARTS)
def test_a_program_that_gets_a_part_wrong_fails_on_a_test_vector(part: str) -> None:
    right, wrong = WRONG_PARTS[part]
    assert SHOWN_CODE.count(right) == 1
    program = compile(SHOWN_CODE.replace(right, wrong), "wrong.py", "exec")
    assert any(not is_right(path, program) for path in VECTORS)


def is_right(path: Path, program: CodeType) -> bool:
    """Return whether a program finds nothing wrong with a record."""
    try:
        run_shown_program(path, program)
    except SystemExit:
        return False
    return True


def test_the_example_of_the_reference_is_right() -> None:
    page = (ROOT / "docs" / "reference" / "draw-record.md").read_text()
    pseudonym = pseudonym_of('a salt "ü"', UserId("6a1f00000000000000000001"))
    assert f"`{pseudonym}`" in page


def test_the_test_vectors_have_every_result() -> None:
    text = "".join(path.read_text() for path in VECTORS)
    assert [result for result in WishResult if f'"{result}"' not in text] == []


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(DRAWN.read_text())
    document["entries"][0]["number"] = 99
    path = tmp_path / "record.json"
    path.write_text(json.dumps(document))
    assert main(["draw", "verify", str(path)]) == 1
    assert "not 99" in capsys.readouterr().out
    for text in ("[", DRAWN.read_text().replace("{", '{"more": NaN,', 1)):
        path.write_text(text)
        assert main(["draw", "verify", str(path)]) == 1
        assert "no JSON" in capsys.readouterr().err
    assert main(["draw", "verify", str(tmp_path / "missing.json")]) == 1
    assert "missing.json" in capsys.readouterr().err


def write_vectors() -> None:
    """Write the test vectors: `python -m tests.domain.draws.test_records`."""
    for number, (chosen, max_bookings) in enumerate(CHOSEN, start=1):
        basis = build_basis(Random(chosen), max_bookings)
        document = to_document(drawn_record(basis, f"a seed for vector {chosen} ü"))
        write(f"draw-{number}", document)
    write("closed", to_document(DrawRecord(basis, root_of(basis))))


def write(name: str, document: object) -> None:
    """Write a test vector."""
    path = ROOT / "docs" / "reference" / "draw-records" / f"{name}.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    write_vectors()
