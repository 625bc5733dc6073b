"""Records: what they claim is recomputed, by slotlock and by the code of the documentation."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from copy import deepcopy
from dataclasses import fields, replace
from functools import partial
from io import StringIO
from pathlib import Path
from random import Random
from types import CodeType
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings

from slotlock.cli.main import main
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import (
    DrawBasis,
    DrawId,
    PublicAct,
    pseudonym_of,
    root_of,
    rules_to_json,
)
from slotlock.domain.draws.drawing import WishResult
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.draw_records import (
    DrawRecord,
    RecordError,
    from_document,
    read_json,
    to_document,
    to_text,
    verify,
)
from tests.support.domain.builders import HOUR, NOW
from tests.support.domain.draws import ANNOUNCED, build_basis, drawn_record, random_draws

ROOT = Path(__file__).parents[3]
VECTORS = sorted((ROOT / "docs" / "reference" / "draw-records").glob("*.json"))
DRAWN = ROOT / "docs" / "reference" / "draw-records" / "draw-1.json"
# Random draws on which each of the wrong programs fails, and their largest numbers of bookings.
CHOSEN = (
    *((1, None), (8, None), (25, None), (50, None), (50, 9)),
    *((82, None), (171, None), (235, 9), (493, None)),
)
PAGE = (ROOT / "docs" / "guides" / "verify-a-draw.md").read_text()
(SHOWN_CODE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
SHOWN_PROGRAM = compile(SHOWN_CODE, "verify.py", "exec")
# Parts of the shown program, by what they decide, and a wrong form of each.
WRONG_PARTS = {
    "the order of round 3": ("order if round_number % 2", "order if round_number == 1"),
    "the order of round 4": ("order if round_number % 2", "order if round_number != 2"),
    "groups of members before": ('+ sum(group in m["groups"] for m in before)', ""),
    "members before": ("+ len(before) >=", ">="),
    "counts before": ('g["count"] for s', "0 for s"),
    "bookings before": ('member["had"] + len(own)', "len(own)"),
    "later meetings": ('for a in one["meetings"]', 'for a in one["meetings"][:1]'),
    "later meetings of others": ('for b in other["meetings"]', 'for b in other["meetings"][:1]'),
    "meetings that touch": ('a["start"] < b["end"]', 'a["start"] <= b["end"]'),
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
    "the order of places": (".append(slot_id)", ".insert(0, slot_id)"),
    "places before": ('s["booked"] for s in', "0 for s in"),
    "every blocked member": (
        'any(slot_id in member["blocked"] for member in members)',
        'slot_id in members[0]["blocked"]',
    ),
    "one member only": (
        "for n, member in enumerate(members):",
        "for n, member in enumerate(members[:1]):",
    ),
    "one place for a team": ("taken[slot_id] + len(members)", "taken[slot_id] + 1"),
    "the limit after the time": ("if conflicts:", "if conflicts and 0:"),
    "serial": ('and rules["method"] == "rounds"', ""),
    "forbidOverlap": ('rules["forbidOverlap"] and', "True and"),
    "choices": ('s["choiceGroup"] is not None and', "False and"),
    "lot order": ('key=lambda e: e["lot"]', 'key=lambda e: e["leaf"]'),
}
# What a record may have with other values, as the page says: no hash and no rule has them.
UNFINDABLE = {("acts", "at"), ("acts", "reason"), ("notBooked", "reason")}
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
    assert (read, to_document(read)) == (replace(drawn, drawn=read.drawn), document)
    assert json.loads(to_text(drawn)) == document
    closed = DrawRecord(basis, root_of(basis))
    over = replace(closed, acts=(*basis.acts, PublicAct(NOW, "superseded", "a reason")))
    for each in (closed, over):
        document = json.loads(to_text(each))
        assert verify(document) == []
        assert from_document(document).acts == each.acts
        assert "members" not in document


@pytest.fixture(scope="module")
def record_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("draw") / "record.json"


@settings(phases=set(Phase) - {Phase.shrink})  # each step takes as long as the whole test
@given(random_draws)
def test_the_code_of_the_page_agrees_on_every_draw(record_path: Path, basis: DrawBasis) -> None:
    record_path.write_text(json.dumps(to_document(drawn_record(basis))))
    assert run_shown_program(record_path) == "The record is right.\n"


@given(random_draws, random_draws)
def test_a_change_of_any_name_in_the_rules_changes_the_root(
    basis: DrawBasis, other: DrawBasis
) -> None:
    other = replace(other, draw_id=DrawId("draw-2"), campaign_id=CampaignId("campaign-2"))
    rules = rules_to_json(basis)
    for each in fields(basis):
        changed = replace(basis, **{each.name: getattr(other, each.name)})
        for name in [
            name for name, value in rules_to_json(changed).items() if value != rules[name]
        ]:
            assert root_of(changed) != root_of(basis)
            with patch("slotlock.domain.draws.basis.rules_to_json", partial(rules_without, name)):
                assert root_of(changed) == root_of(basis)


def rules_without(name: str, basis: DrawBasis) -> dict[str, Any]:
    """Return the rules of a draw without a name."""
    return {each: value for each, value in rules_to_json(basis).items() if each != name}


def wrong_records() -> dict[str, Change]:
    """Return changes that make a right record wrong, by what they change."""
    return {
        "a wish": lambda record: record["entries"][1]["wishes"].reverse(),
        "a capacity": lambda record: record["rules"]["slots"][0].update(capacity=50),
        "a title": lambda record: record["rules"]["slots"][0].update(title="Other"),
        "the source": lambda record: record["rules"]["announced"].update(source="Other"),
        "the seed": lambda record: record.update(seed="another"),
        "a lot": lambda record: record["entries"][0].update(lot="0" * 64),
        "a number": lambda record: record["entries"][0].update(number=99),
        "a result": lambda record: record["entries"][0]["outcomes"].__setitem__(
            0, {"result": "GRANTED", "round": 7}
        ),
        "the order": lambda record: record["entries"].reverse(),
        "an entry": lambda record: record["entries"].pop(),
        "an act": lambda record: record["acts"][0].update(reason="another"),
        "the moment of the seed": lambda record: record["acts"].__delitem__(slice(-2, None)),
        "a place that nobody got": lambda record: record["notBooked"].append(
            {**record["notBooked"][0], "leaf": "0" * 64}
        ),
        "a place twice": lambda record: record["notBooked"].append(record["notBooked"][0]),
    }


@pytest.mark.parametrize("name", wrong_records())
def test_each_change_of_a_record_is_found(record_path: Path, name: str) -> None:
    document = deepcopy(json.loads(DRAWN.read_text()))
    wrong_records()[name](document)
    assert verify(document)
    record_path.write_text(json.dumps(document))
    with pytest.raises(SystemExit, match=r"wrong|announced|early"):
        run_shown_program(record_path)


Place = tuple[str | int, ...]


def places_in(value: object, place: Place = ()) -> Iterator[Place]:
    """Yield the place of each value inside a document."""
    members: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, list):
        members = enumerate(value)
    for name, member in members:
        yield (*place, name)
        yield from places_in(member, (*place, name))


def tamper(document: object, place: Place, how: str) -> str | None:
    """Return the text of a document with a change; None if there is nothing to change so."""
    owner: Any
    changed: Any = deepcopy(document)
    *above, name = place
    owner = changed
    for each in above:
        owner = owner[each]
    value, is_named = owner[name], isinstance(owner, dict)
    if how == "removed":
        del owner[name]
    elif how == "doubled" and is_named:
        owner["twice"] = value
        return json.dumps(changed).replace('"twice"', json.dumps(name))
    elif how == "renamed" and is_named:
        owner["more"] = owner.pop(name)
    elif how == "reordered" and isinstance(value, list) and value != value[::-1]:
        value.reverse()
    elif how == "of another type":
        owner[name] = {} if isinstance(value, list) else []
    elif how == "changed" and isinstance(value, bool):
        owner[name] = not value
    elif how == "changed" and isinstance(value, int):
        owner[name] = value + 1
    elif how == "changed" and isinstance(value, str):
        owner[name] = f"{value[:-1]}{2 if value[-1:] == '1' else 1}"
    else:
        return None
    return json.dumps(changed)


def is_found(text: str, *, is_strict: bool) -> bool:
    """Return whether the program finds something wrong with a record."""
    try:
        return bool(verify(read_json(text.encode()) if is_strict else json.loads(text)))
    except RecordError:
        return True


@pytest.mark.parametrize("is_strict", [True, False])
def test_each_kind_of_tampering_is_found(is_strict: bool) -> None:
    document = json.loads(DRAWN.read_text())
    assert not is_found(DRAWN.read_text(), is_strict=is_strict)
    seen, missed = set[object](), set[str]()
    ways = ("removed", "doubled", "renamed", "reordered", "of another type", "changed")
    for place in places_in(document):
        names = tuple(each for each in place if isinstance(each, str))
        for how in ways:
            kind = (how, names, len(place))
            text = None if kind in seen else tamper(document, place, how)
            if text is None:
                continue
            seen.add(kind)
            # The last acts, and what is in `notBooked`, are in no hash and in no rule.
            is_free = how == "changed" and names in UNFINDABLE
            is_free |= names in (("acts",), ("notBooked",)) and len(place) == 2 and how == "removed"
            if not is_free and not is_found(text, is_strict=is_strict):
                missed.add(how)
    assert len(seen) > 150
    assert missed == (set() if is_strict else {"doubled"})


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ('"number": 1,', '"number": 1.0,', "].number: Expected `int`"),
        ('"number": 1,', '"number": 1e0,', "].number: Expected `int`"),
        ('"number": 1,', '"number": -0,', "].number: Expected `int`"),
        ('"number": 1,', '"number": NaN,', "].number: Expected `int`"),
        ('"number": 1,', f'"number": {10**400},', "].number: Expected `int`"),
        ('"number": 1,', f'"number": {2**53},', "].number: Expected `int`"),
        ('"number": 1,', '"number": 1, "number": 1,', "].number twice: this name is"),
        ('"title": "', '"title": "\\ud800', "].title: Expected `str` matching"),
        ('"seed":', '"more\\ud800": 1, "seed":', "record: a name has half of a surrogate pair"),
        ("T14:00:00.000Z", "T24:00:00.000Z", "Invalid RFC3339"),
        ("T14:00:00.000Z", "T14:00:60.000Z", "Invalid RFC3339"),
        ("T14:00:00.000Z", "T14:00:00.000z", 'T14:00:00.000Z" is needed'),
        ("T14:00:00.000Z", "T14:00:00Z", 'T14:00:00.000Z" is needed'),
        ("{", "\ufeff{", "record: this is no JSON"),
    ],
)
def test_what_programs_read_differently_is_refused_with_the_place(
    before: str, after: str, reason: str
) -> None:
    text = json.dumps(json.loads(DRAWN.read_text()), ensure_ascii=False)
    assert before in text
    with pytest.raises(RecordError) as error:
        verify(read_json(text.replace(before, after, 1).encode()))
    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda record: record.pop("rules"), "record: Object missing required field `rules`"),
        (lambda record: record["rules"].update(format="x"), "record.rules.format: Expected"),
        (lambda record: record["rules"]["slots"].append(record["rules"]["slots"][0]), "twice"),
        (lambda record: record["rules"]["slots"][0].update(capacity="2"), "].capacity: Expected"),
        (lambda record: record["rules"]["slots"][0].update(meetings=[]), "has meetings"),
        (lambda record: record["rules"]["slots"][0].update(title="\ud800"), "].title: Expected"),
        (lambda record: record["rules"].update(method="chance"), "record.rules.method: Invalid"),
        (lambda record: record["rules"].update(gapMinutes=1), "record.rules.gapMinutes: Invalid"),
        (lambda record: record["rules"].update(notBookedFor=[]), "record.rules.notBookedFor: ["),
        (lambda record: record["entries"][0].update(outcomes=[]), "each wish has an outcome"),
        (lambda record: record["entries"][0]["members"][0].update(blocked=["x"]), "not wished for"),
        (lambda record: record["entries"][0].update(members=[]), "an entry has members"),
        (lambda record: record["entries"].append(record["entries"][0]), "occurs twice"),
        (lambda record: record["entries"].append(None), "]: Expected"),
        (lambda record: record["rules"].update(note="x"), "record.rules.note: this name is"),
        (lambda record: record.update(note="x"), "record.note: this name is"),
        (lambda record: record["rules"]["slots"][0].pop("title"), "slots[0]: Object missing"),
        (lambda record: record["rules"].pop("recordFor"), "record.rules.recordFor: this name is"),
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


@pytest.mark.parametrize("name", ANNOUNCED)
def test_a_seed_that_was_not_announced_or_was_fixed_too_early_is_found(name: str) -> None:
    announced, basis = ANNOUNCED[name], build_basis(Random(3))
    opened = replace(basis.acts[0], seed_source=announced.source, seed_at=announced.at)
    basis = replace(basis, announced=announced, acts=(opened, basis.acts[1]))
    right = drawn_record(basis)
    assert verify(to_document(right)) == []
    if announced.source is None:
        wrong = [drawn_record(basis, "another seed")]
    else:
        late = replace(basis, acts=(opened, PublicAct(NOW + HOUR, "closed")))
        early = (*basis.acts, PublicAct(NOW + HOUR / 2, "drawn"))
        wrong = [replace(right, acts=early), drawn_record(late)]
    for each in wrong:
        assert len(verify(to_document(each))) == 1


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
    shown = set(WishResult) - {WishResult.NOT_ELIGIBLE, WishResult.ALREADY_BOOKED}
    assert [result for result in shown if f'"{result}"' not in text] == []


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(DRAWN.read_text())
    document["entries"][0]["number"] = 99
    path = tmp_path / "record.json"
    path.write_text(json.dumps(document))
    assert main(["draw", "verify", str(path)]) == 1
    assert "not 99" in capsys.readouterr().out
    for text, reason in (("[", "no JSON"), ('{"more": NaN}', "Object missing")):
        path.write_text(text)
        assert main(["draw", "verify", str(path)]) == 1
        assert reason in capsys.readouterr().err
    assert main(["draw", "verify", str(tmp_path / "missing.json")]) == 1
    assert "missing.json" in capsys.readouterr().err


def write_vectors() -> None:
    """Write the test vectors: `python -m tests.domain.draws.test_records`."""
    for number, (chosen, max_bookings) in enumerate(CHOSEN, start=1):
        basis = build_basis(Random(chosen), max_bookings)
        write(f"draw-{number}", to_document(drawn_record(basis)))
    write("closed", to_document(DrawRecord(basis, root_of(basis))))


def write(name: str, document: object) -> None:
    """Write a test vector."""
    path = ROOT / "docs" / "reference" / "draw-records" / f"{name}.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    write_vectors()
