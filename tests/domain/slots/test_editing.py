"""Validation of slots, what can be edited, and which slots can be deleted."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import CapacityBelowTaken, SlotCancelled
from slotlock.domain.booking.slot import SlotCancellation, SlotKind, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.timetables import Timetable
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.slots.editing import cancel_slot, create, delete_slots, edit, publish
from slotlock.domain.slots.slot_outcomes import (
    SlotHasBookings,
    SlotNotPublished,
    SlotSaved,
    SlotsDeleted,
)
from slotlock.domain.slots.slot_patch import SlotDraft, SlotPatch
from slotlock.domain.users.user import UserId
from tests.support.domain.builders import (
    HOUR,
    INSTANT,
    NOW,
    book_place,
    book_users,
    booking_request,
    build_draft,
    build_patch,
    build_slot,
    with_facts,
    with_waitlist,
)
from tests.support.domain.decisions import decide, expire_and_promote


def draft(**fields: object) -> SlotDraft:
    """Return a valid draft, changed by these fields."""
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
    return build_draft(**{**right, **fields})  # type: ignore[arg-type]


def problem_fields(outcome: object) -> list[str]:
    """Return the fields of the problems; none if the slot was saved."""
    if isinstance(outcome, InvalidInput):
        return [problem.field for problem in outcome.problems]
    assert isinstance(outcome, SlotSaved | SlotState)
    return []


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
        ({"choice_group": "x" * 101}, "choiceGroup"),
        ({"hold_minutes": 0}, "holdMinutes"),
        ({"hold_minutes": 61}, "holdMinutes"),
        ({"hold_cooldown_minutes": -1}, "holdCooldownMinutes"),
        ({"hold_cooldown_minutes": 10_081}, "holdCooldownMinutes"),
        ({"reminder_minutes": -1}, "reminderMinutes"),
        ({"reminder_minutes": 20_161}, "reminderMinutes"),
        ({"cancel_cutoff_minutes": -1}, "cancelCutoffMinutes"),
        ({"cancel_cutoff_minutes": 86_401}, "cancelCutoffMinutes"),
        ({"waitlist_capacity": -1}, "waitlistCapacity"),
        ({"waitlist_capacity": 1001}, "waitlistCapacity"),
        ({"waitlist_offer_minutes": 0}, "waitlistOfferMinutes"),
        ({"waitlist_offer_minutes": 10_081}, "waitlistOfferMinutes"),
        ({"meeting_url": "https://a.example/" + "x" * 1983}, "meetingUrl"),
        ({"meeting_url": "http://a.example/"}, "meetingUrl"),
        ({"meeting_url": "javascript:alert(1)//https://a.example"}, "meetingUrl"),
        ({"meeting_url": "a.example/room"}, "meetingUrl"),
        ({"meeting_url": "https://"}, "meetingUrl"),
        ({"meeting_url": "https://[a"}, "meetingUrl"),
        ({"meeting_url": "https://a.example:room/"}, "meetingUrl"),
        ({"meeting_url": "https://bank.example@a.example/"}, "meetingUrl"),
        ({"meeting_url": "https://a.example/two words"}, "meetingUrl"),
        ({"meeting_url": "https://a.example/\nX-ATTACK:1"}, "meetingUrl"),
        ({"meeting_url": 'https://a.example/"><script>'}, "meetingUrl"),
        ({"meeting_url": "https://ex\u0430mple.org/"}, "meetingUrl"),
    ],
)
def test_each_invalid_field_is_named(wrong: dict[str, object], field: str) -> None:
    outcome = create(SlotId("s"), draft(**wrong), NOW)
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == [field]


TEAMS_LINK = (
    "https://teams.microsoft.com/l/meetup-join/19%3ameeting_" + "M" * 100 + "%40thread.v2/0"
    "?context=%7b%22Tid%22%3a%22" + "1" * 36 + "%22%2c%22Oid%22%3a%22" + "2" * 36 + "%22%7d"
)


@pytest.mark.parametrize(
    "link",
    [
        TEAMS_LINK,
        "https://meet.jit.si/Yoga#config.startWithAudioMuted=true",
        "https://[2001:db8::1]:8443/room;x=1,2?a=(b)",
        "https://a.example/" + "x" * 1982,
    ],
)
def test_links_to_a_meeting_are_stored_as_they_are(link: str) -> None:
    made = create(SlotId("s"), draft(meeting_url=f"  {link} \n"), NOW)
    assert isinstance(made, SlotState)
    assert made.slot.meeting_url == link
    after, _ = decide(edit, made, build_patch(meeting_url=" "), NOW)
    assert after.slot.meeting_url is None


@pytest.mark.parametrize(
    "changes",
    [
        build_patch(title="Judo"),
        build_patch(resource="Room 5"),
        build_patch(number="R-2"),
        build_patch(meeting_url=TEAMS_LINK),
        build_patch(description="New"),
    ],
)
def test_an_edit_of_what_calendars_show_is_a_new_revision(changes: SlotPatch) -> None:
    before = build_slot()
    assert decide(edit, before, changes, NOW)[0].slot.revision == before.slot.revision + 1
    after, _ = decide(edit, before, build_patch(capacity=9), NOW)
    assert after.slot.revision == before.slot.revision


def test_all_problems_are_reported_at_once() -> None:
    outcome = create(SlotId("s"), draft(title="", capacity=0, end=NOW), NOW)
    assert isinstance(outcome, InvalidInput)
    assert {problem.field for problem in outcome.problems} == {"title", "capacity", "endTime"}


def test_text_in_any_script_is_a_title() -> None:
    assert isinstance(create(SlotId("s"), draft(title="Йога 瑜伽 👩‍🏫"), NOW), SlotState)


def test_the_groups_that_a_slot_is_for_are_stored_in_order_and_once() -> None:
    groups = (" 9b ", "class:*", "9a", "Cafe\u0301", "9b")
    made = create(SlotId("s"), draft(only_for_groups=groups), NOW)
    assert isinstance(made, SlotState)
    assert made.slot.only_for_groups == ("9a", "9b", "Caf\u00e9", "class:*")
    after, _ = decide(edit, made, build_patch(only_for_groups=()), NOW)
    assert after.slot.only_for_groups == ()


@pytest.mark.parametrize(
    ("groups", "code"),
    [
        (("9a", " "), ProblemCode.GROUP_BLANK),
        (("9a,9b",), ProblemCode.GROUP_SEPARATOR),
        (("9*a",), ProblemCode.GROUP_SEPARATOR),
        (tuple(map(str, range(21))), ProblemCode.TOO_MANY_GROUPS),
    ],
)
def test_groups_that_nobody_can_have_are_problems(
    groups: tuple[str, ...], code: ProblemCode
) -> None:
    outcome = create(SlotId("s"), draft(only_for_groups=groups), NOW)
    assert isinstance(outcome, InvalidInput)
    assert [(each.field, each.message.code) for each in outcome.problems] == [
        ("onlyForGroups", code)
    ]


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("onlyForGroups", build_patch(only_for_groups=("9a",))),
        ("groupLimits", build_patch(group_limits=(GroupLimit("9a", 1),))),
    ],
)
def test_a_slot_whose_bookings_have_no_groups_gets_no_rule_about_groups(
    field: str, changes: SlotPatch
) -> None:
    booked, _ = book_users(build_slot(), "ada")
    _, outcome = decide(edit, booked, changes, NOW)
    assert isinstance(outcome, InvalidInput)
    assert [each.field for each in outcome.problems] == [field]


def test_resources_and_choice_groups_are_compared_in_canonical_unicode() -> None:
    composed, decomposed = "Caf\u00e9", "  Cafe\u0301 "
    made = create(SlotId("s"), draft(resource=decomposed, choice_group=decomposed), NOW)
    assert isinstance(made, SlotState)
    assert (made.slot.resource, made.slot.choice_group) == (composed, composed)
    moved = create(SlotId("s"), draft(resource="Room 5"), NOW)
    assert isinstance(moved, SlotState)
    after, _ = decide(edit, moved, build_patch(resource=decomposed), NOW)
    assert after.slot.resource == composed


@given(taken=st.integers(0, 10), capacity=st.integers(-5, 1005))
def test_the_capacity_never_falls_below_the_bookings(taken: int, capacity: int) -> None:
    before, _ = book_users(build_slot(10), *(f"p{n}" for n in range(taken)))
    after, outcome = decide(edit, before, build_patch(capacity=capacity), NOW)
    if isinstance(outcome, SlotSaved):
        assert max(1, taken) <= after.slot.capacity <= 1000
        assert after.remaining == capacity - taken
        assert after.bookings == before.bookings
    else:
        assert after == before
        if 1 <= capacity <= 1000:
            assert outcome == CapacityBelowTaken(before.id, taken)
            assert capacity < taken


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("title", "Judo"),
        ("start", NOW),
        ("end", NOW + timedelta(days=9)),
        ("time_zone", "Asia/Tokyo"),
        ("location", "Hall"),
        ("kind", SlotKind.MEETING),
        ("capacity", 77),
        ("hold_minutes", 7),
        ("hold_cooldown_minutes", 6),
        ("reminder_minutes", 7),
        ("cancel_cutoff_minutes", 8),
        ("waitlist_capacity", 9),
        ("waitlist_offer_minutes", 10),
        ("group_limits", (GroupLimit("5a", 1),)),
        ("resource", "Room 5"),
        ("meeting_url", "https://a.example/room"),
    ],
)
def test_an_edit_changes_the_given_field_and_no_other(name: str, value: object) -> None:
    before = build_slot()
    assert getattr(before.slot, name) != value
    after, _ = decide(edit, before, build_patch(**{name: value}), NOW)
    expected = with_facts(before, **{name: value}, revision=after.slot.revision)
    # The bookings per group are counted when the slot is loaded with its new limits.
    group_counts = None if name == "group_limits" else before.group_counts
    assert after == replace(expected, change=after.change, group_counts=group_counts)


def test_other_changes_of_a_course_do_not_change_its_meetings() -> None:
    meetings = (Meeting(NOW, NOW + HOUR), Meeting(NOW + 24 * HOUR, NOW + 25 * HOUR))
    course = build_slot(start=NOW, end=meetings[-1].end, meetings=meetings)
    changes = build_patch(title="Band", capacity=9, time_zone="UTC")
    after, _ = decide(edit, course, changes, NOW)
    assert (after.slot.title, after.slot.all_meetings) == ("Band", meetings)
    assert build_slot(start=NOW, end=meetings[0].end).slot.all_meetings == meetings[:1]


def test_an_edit_that_changes_nothing_writes_nothing() -> None:
    before = build_slot()
    assert decide(edit, before, build_patch(title=" Yoga "), NOW) == (before, SlotSaved(before.id))


def test_added_places_go_to_the_waiting_list() -> None:
    full, _ = book_users(build_slot(1), "ada")
    raised, _ = decide(
        edit, with_waitlist(full, "ben", "cleo", "dan"), build_patch(capacity=3), NOW
    )
    after = expire_and_promote(raised, NOW)
    assert [booking.user_id for booking in after.bookings] == ["ada", "ben", "cleo"]
    assert [waiting.user_id for waiting in after.waitlist] == ["dan"]


EVE = UserId("eve")


def test_a_draft_is_published_once() -> None:
    after, outcome = decide(publish, build_slot(status=SlotStatus.DRAFT))
    assert after.slot.status is SlotStatus.PUBLISHED
    assert outcome == SlotSaved(after.id)
    assert decide(publish, after) == (after, outcome)


def test_cancelling_a_slot_ends_its_waitlist_entries() -> None:
    before = with_waitlist(book_users(build_slot(), "ada")[0], "ben", "cyd")
    off, _ = decide(cancel_slot, before, EVE, NOW)
    assert (off.waitlist, off.waitlist_length, off.loaded_waitlist) == ((), 0, 0)
    assert [(left.entry.user_id, left.by) for left in off.change.ended_entries] == [
        ("ben", EVE),
        ("cyd", EVE),
    ]


def test_a_cancelled_slot_preserves_its_roster_and_cannot_be_edited() -> None:
    before, bookings = book_users(build_slot(), "ada")
    off, outcome = decide(cancel_slot, before, EVE, NOW)
    assert outcome == SlotSaved(off.id)
    assert list(off.bookings) == bookings
    assert off.slot.cancellation == SlotCancellation(NOW, EVE)
    assert decide(cancel_slot, off, EVE, NOW) == (off, outcome)
    assert decide(publish, off) == (off, SlotCancelled(off.id))
    assert decide(edit, off, build_patch(title="On again"), NOW) == (off, SlotCancelled(off.id))


def test_group_limits_cannot_be_added_once_there_are_bookings_without_groups() -> None:
    changes = build_patch(group_limits=(GroupLimit("class:*", 1),))
    after, outcome = decide(edit, build_slot(2), changes, NOW)
    assert isinstance(outcome, SlotSaved)
    one, _ = book_users(build_slot(2), "ada")
    for before in (one, with_waitlist(build_slot(2), "ada")):
        refused, outcome = decide(edit, before, changes, NOW)
        assert refused == before
        assert isinstance(outcome, InvalidInput)
        assert [problem.field for problem in outcome.problems] == ["groupLimits"]
    looser = build_patch(group_limits=(GroupLimit("class:*", 2),))
    assert isinstance(decide(edit, book_users(after, "ada")[0], looser, NOW)[1], SlotSaved)


def test_a_draft_cannot_be_cancelled() -> None:
    draft_slot = build_slot(status=SlotStatus.DRAFT)
    refused = (draft_slot, SlotNotPublished(draft_slot.id))
    assert decide(cancel_slot, draft_slot, UserId("boss"), NOW) == refused


PAST_MEETING = Meeting(NOW - timedelta(hours=1), NOW)
PAST_COURSE = Timetable(NOW.date(), NOW.date(), extra=(PAST_MEETING,))


@pytest.mark.parametrize(
    ("times", "field"),
    [
        ({"start": PAST_MEETING.start, "end": PAST_MEETING.end}, "endTime"),
        ({"start": None, "end": None, "timetable": PAST_COURSE}, "timetable"),
    ],
)
def test_a_slot_in_the_past_is_refused_unless_the_past_is_allowed(
    times: dict[str, object], field: str
) -> None:
    assert problem_fields(create(SlotId("s"), draft(**times), NOW)) == [field]
    assert problem_fields(create(SlotId("s"), draft(**times, allow_past=True), NOW)) == []
    changes = build_patch(**{k: v for k, v in times.items() if v})
    assert problem_fields(decide(edit, build_slot(), changes, NOW)[1]) == [field]
    allowed = replace(changes, allow_past=True)
    assert problem_fields(decide(edit, build_slot(), allowed, NOW)[1]) == []


def test_a_slot_that_has_begun_is_not_in_the_past() -> None:
    begun = draft(start=NOW - timedelta(hours=1), end=NOW + INSTANT)
    assert problem_fields(create(SlotId("s"), begun, NOW)) == []


def test_an_edit_that_retains_the_times_of_a_past_slot_is_accepted() -> None:
    past = build_slot(start=NOW - timedelta(hours=2), end=NOW - timedelta(hours=1))
    for changes in (build_patch(title="Pilates"), build_patch(end=past.slot.end, capacity=2)):
        assert problem_fields(decide(edit, past, changes, NOW)[1]) == []
    moved = build_patch(start=past.slot.start - timedelta(hours=1))
    assert problem_fields(decide(edit, past, moved, NOW)[1]) == ["endTime"]


@pytest.mark.parametrize("status", list(SlotStatus))
def test_a_slot_without_bookings_is_deleted_whatever_its_status(status: SlotStatus) -> None:
    slot = build_slot(status=status)
    assert delete_slots([slot], ()) == SlotsDeleted((slot.id,))


def test_a_slot_with_a_booking_a_hold_or_a_waiting_user_is_not_deleted() -> None:
    booked, _ = book_users(build_slot(), "ada")
    held, _ = book_place(build_slot(), booking_request("ada", hold=True), NOW)
    waited_for = with_waitlist(build_slot(), "ben")
    for slot in (booked, held, waited_for):
        assert delete_slots([slot], ()) == SlotHasBookings(slot.id)


def test_a_slot_whose_bookings_have_ended_is_not_deleted() -> None:
    slot = build_slot()
    assert delete_slots([slot], {slot.id}) == SlotHasBookings(slot.id)


def test_of_several_slots_all_are_deleted_or_none() -> None:
    first, second = build_slot(id="one"), build_slot(id="two")
    assert delete_slots([first, second], ()) == SlotsDeleted((first.id, second.id))
    assert delete_slots([first, second], {second.id}) == SlotHasBookings(second.id)
