"""What a slot must look like, and what organisers may still change about it."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.domain.keeping import SlotDraft, call_off, create, edit, publish
from slotlock.domain.outcomes import CapacityBelowTaken, InvalidInput, SlotCancelled, SlotKept
from slotlock.domain.slots import SlotId, SlotKind, SlotStatus
from tests.domain.test_booking import NOW, booked, slot


def draft(**fields: object) -> SlotDraft:
    """What an organiser fills in, right unless the fields say otherwise."""
    right = {
        "title": "Yoga",
        "start": NOW,
        "end": NOW + timedelta(hours=1),
        "time_zone": "UTC",
        "capacity": 10,
        "location": None,
        "kind": SlotKind.COURSE,
        "published": True,
    }
    return SlotDraft(**{**right, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"title": "  "}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"title": "two\nlines"}, "title"),
        ({"location": "x" * 201}, "location"),
        ({"capacity": 0}, "capacity"),
        ({"capacity": 1001}, "capacity"),
        ({"end": NOW}, "endTime"),
    ],
)
def test_each_field_that_is_wrong_is_named(wrong: dict[str, object], field: str) -> None:
    outcome = create(SlotId("s"), draft(**wrong), NOW)
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == [field]


def test_everything_wrong_is_told_at_once() -> None:
    outcome = create(SlotId("s"), draft(title="", capacity=0, end=NOW), NOW)
    assert isinstance(outcome, InvalidInput)
    assert {problem.field for problem in outcome.problems} == {"title", "capacity", "endTime"}


def test_text_in_any_script_is_a_title() -> None:
    assert isinstance(create(SlotId("s"), draft(title="Йога 瑜伽 👩‍🏫"), NOW), SlotKept)


@given(taken=st.integers(0, 10), capacity=st.integers(-5, 1005))
def test_the_capacity_never_falls_below_what_is_taken(taken: int, capacity: int) -> None:
    before, _ = booked(slot(10), *(f"p{n}" for n in range(taken)))
    outcome = edit(before, {"capacity": capacity}, NOW)
    if isinstance(outcome, SlotKept):
        assert max(1, taken) <= outcome.slot.capacity <= 1000
        assert outcome.slot.remaining == capacity - taken
    elif 1 <= capacity <= 1000:
        assert isinstance(outcome, CapacityBelowTaken)
        assert capacity < taken


def test_an_edit_that_changes_nothing_writes_nothing() -> None:
    before = slot()
    outcome = edit(before, {"title": " Yoga "}, NOW)
    assert outcome == SlotKept(before)


def test_every_change_has_a_new_version() -> None:
    outcome = edit(slot(), {"title": "Pilates"}, NOW)
    assert isinstance(outcome, SlotKept)
    assert outcome.slot.version == 2


def test_a_draft_is_published_once() -> None:
    outcome = publish(slot(status=SlotStatus.DRAFT), NOW)
    assert isinstance(outcome, SlotKept)
    assert outcome.slot.status is SlotStatus.PUBLISHED
    assert publish(outcome.slot, NOW) == outcome


def test_a_slot_called_off_stays_as_it_is() -> None:
    off = call_off(slot(), NOW)
    assert isinstance(off, SlotKept)
    assert call_off(off.slot, NOW) == off
    assert isinstance(publish(off.slot, NOW), SlotCancelled)
    assert isinstance(edit(off.slot, {"title": "On again"}, NOW), SlotCancelled)
