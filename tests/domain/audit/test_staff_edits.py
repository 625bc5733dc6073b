"""Edits of a slot have the names that its users give them: another teacher is no other place."""

import pytest

from slotlock.domain.audit.audit_log import FieldEdit
from slotlock.domain.audit.audit_notes import SCHEDULE_FIELDS, edits_shown_with
from slotlock.domain.audit.staff_edits import parts_of, resource_names, with_staff_apart
from slotlock.domain.resources.resource import Resource, ResourceKind
from tests.support.domain.builders import book_place, booking_request, build_slot

KINDS = {
    "Berg": ResourceKind.STAFF,
    "Kim": ResourceKind.STAFF,
    "Room 1": ResourceKind.ROOM,
    "Room 2": ResourceKind.ROOM,
    "Piano": ResourceKind.EQUIPMENT,
    "Bus": ResourceKind.OTHER,
}
RESOURCES = {name: Resource(name, kind) for name, kind in KINDS.items()}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Room 1, Berg", "Room 1, Kim", {"staff": ("Berg", "Kim")}),
        ("Room 1, Berg", "Room 1, Berg, Kim", {"staff": ("Berg", "Berg, Kim")}),
        ("Berg, Kim", "Berg", {"staff": ("Berg, Kim", "Berg")}),
        (None, "Berg", {"staff": (None, "Berg")}),
        ("Room 1, Berg", "Room 1", {"staff": ("Berg", None)}),
        ("Room 1, Berg", "Room 2, Berg", {"resources": ("Room 1", "Room 2")}),
        ("Berg", "Piano, Berg, Bus", {"resources": (None, "Piano, Bus")}),
        (
            "Berg, Room 1",
            "Room 2, Kim",
            {"resources": ("Room 1", "Room 2"), "staff": ("Berg", "Kim")},
        ),
        # Nobody knows any more what was deleted since then: what changed with it tells.
        ("Room 1, Gone", "Room 1, Kim", {"staff": ("Gone", "Kim")}),
        ("Gone, Berg", "Room 2, Berg", {"resources": ("Gone", "Room 2")}),
        ("Gone, Berg", "Room 2, Kim", {"resources": ("Gone", "Room 2"), "staff": ("Berg", "Kim")}),
        ("Gone, Berg", "Berg", {"resources": ("Gone", None)}),
    ],
)
def test_an_edit_of_resources_is_one_of_the_staff_and_one_of_all_others(
    before: str | None, after: str | None, expected: dict[str, tuple[str | None, str | None]]
) -> None:
    found = with_staff_apart([FieldEdit("resources", before, after)], RESOURCES)
    assert {edit.field: (edit.before, edit.after) for edit in found} == expected


def test_other_edits_stay_as_they_are_and_each_is_of_the_time_the_place_or_the_staff() -> None:
    edits = [FieldEdit(name, "Berg", "Kim") for name in SCHEDULE_FIELDS if name != "resources"]
    assert [*with_staff_apart(edits, RESOURCES)] == edits
    assert resource_names(edits) == []
    assert resource_names([FieldEdit("resources", "Room 1, Kim", None)]) == ["Kim", "Room 1"]
    parts = {name: parts_of([FieldEdit(name, None, "new")]) for name in (*SCHEDULE_FIELDS, "staff")}
    for name in ("location", "resources", "meetingUrl"):
        assert parts.pop(name) == {"place"}
    assert parts.pop("staff") == {"staff"}
    assert parts.keys() == {"startTime", "endTime", "meetings", "timeZone"}
    assert all(each == {"time"} for each in parts.values())


def test_the_same_resources_in_another_order_are_no_news() -> None:
    _, booking = book_place(build_slot(), booking_request("Ada"))
    reordered = FieldEdit("resources", "Berg, Room 1", "Room 1, Berg")
    moved = FieldEdit("location", "Hall", "Gym")
    assert edits_shown_with(booking, [reordered, moved]) == (moved,)
