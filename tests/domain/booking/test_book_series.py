"""Booking the slots of a series: which they are, and all or none or what is free."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import Booked, NoneBooked, SeriesBooked
from slotlock.domain.booking.booking_refusals import (
    LimitReached,
    NothingToBook,
    SeriesNotFound,
    SeriesTooLong,
    SlotFull,
    TimeConflict,
)
from slotlock.domain.booking.decision import Decision, LoadedState
from slotlock.domain.booking.rules.book import (
    MAX_SERIES_CLAIMS,
    SeriesMode,
    SlotClaim,
    book_series,
    slots_to_book,
)
from slotlock.domain.booking.slot import SeriesId, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS, UserContexts
from slotlock.domain.users.user import Role
from tests.support.domain.builders import (
    HOUR,
    NOW,
    book_users,
    booking_request,
    build_caller,
    build_slot,
    in_choice_group,
    with_facts,
)
from tests.support.domain.campaign_builders import build_terms, contexts, user_in_groups

SERIES = SeriesId("series")
MEMBER, ORGANIZER = build_caller("ada"), build_caller("olga", Role.ORGANIZER)
BOTH_MODES = pytest.mark.parametrize("mode", SeriesMode)
# The context of a user without groups and other bookings.
ADA = contexts(user_in_groups("ada"))


def build_series(count: int = 3, **facts: object) -> list[SlotState]:
    """Return weekly slots with one place, the first a day after `NOW`."""
    starts = [NOW + timedelta(days=1, weeks=n) for n in range(count)]
    return [
        build_slot(1, id=SlotId(f"s{n}"), start=start, end=start + HOUR, **facts)
        for n, start in enumerate(starts)
    ]


def decide(
    slots: Sequence[SlotState], mode: SeriesMode, users: UserContexts = NO_CONTEXTS
) -> Decision[SeriesBooked | NoneBooked]:
    """Return the decision on Ada's booking of these slots."""
    loaded = LoadedState({slot.id: slot for slot in slots}, users)
    claims = [SlotClaim(slot.id, booking_request("ada")) for slot in slots]
    return book_series(loaded, claims, mode, NOW)


def test_slots_that_have_started_were_cancelled_or_are_drafts_are_left_out() -> None:
    begun, cancelled, draft, free = (slot.slot for slot in build_series(4))
    slots = [
        replace(begun, start=NOW),
        replace(cancelled, status=SlotStatus.CANCELLED),
        replace(draft, status=SlotStatus.DRAFT),
        free,
    ]
    for caller in (MEMBER, ORGANIZER):
        assert slots_to_book(SERIES, slots, caller, NOW) == (free.id,)
        rest = [slot for slot in slots if slot is not free]
        assert slots_to_book(SERIES, rest, caller, NOW) == NothingToBook(SERIES)


@pytest.mark.parametrize(
    "hidden",
    [build_series(status=SlotStatus.DRAFT), build_series(terms=build_terms(published=False))],
)
def test_members_find_no_series_of_hidden_slots(hidden: list[SlotState]) -> None:
    slots = [slot.slot for slot in hidden]
    assert slots_to_book(SERIES, slots, MEMBER, NOW) == SeriesNotFound(SERIES)
    assert slots_to_book(SERIES, slots, ORGANIZER, NOW) != SeriesNotFound(SERIES)
    assert slots_to_book(SERIES, [], ORGANIZER, NOW) == SeriesNotFound(SERIES)


def test_only_slots_to_book_count_for_the_limit() -> None:
    slots = [slot.slot for slot in build_series(MAX_SERIES_CLAIMS + 1)]
    refused = SeriesTooLong(SERIES, MAX_SERIES_CLAIMS + 1, MAX_SERIES_CLAIMS)
    assert slots_to_book(SERIES, slots, MEMBER, NOW) == refused
    rest = [replace(slots[0], start=NOW), *slots[1:]]
    assert slots_to_book(SERIES, rest, MEMBER, NOW) == tuple(slot.id for slot in slots[1:])


@BOTH_MODES
def test_every_slot_of_a_free_series_is_booked(mode: SeriesMode) -> None:
    decision = decide(build_series(), mode)
    assert isinstance(decision.outcome, SeriesBooked)
    assert [type(each) for each in decision.outcome.outcomes] == [Booked] * 3
    assert [slot.remaining for slot in decision.changed_slots] == [0] * 3


def test_one_full_slot_refuses_all_or_is_left_out() -> None:
    first, second, last = build_series()
    full, _ = book_users(second, "ben")
    refused = decide([first, full, last], SeriesMode.ALL_OR_NONE)
    assert refused.outcome == NoneBooked((None, SlotFull(full.id), None))
    assert refused.changed_slots == ()
    partly = decide([first, full, last], SeriesMode.WHAT_IS_FREE)
    assert isinstance(partly.outcome, SeriesBooked)
    assert [type(each) for each in partly.outcome.outcomes] == [Booked, SlotFull, Booked]
    assert [slot.id for slot in partly.changed_slots] == [first.id, last.id]


@BOTH_MODES
def test_a_full_series_is_refused_with_the_reason_of_each_slot(mode: SeriesMode) -> None:
    full = [book_users(slot, "ben")[0] for slot in build_series()]
    decision = decide(full, mode)
    assert decision.outcome == NoneBooked(tuple(SlotFull(slot.id) for slot in full))
    assert not decision.accepted


def test_the_slots_of_a_series_count_for_each_others_limits() -> None:
    in_group = [in_choice_group(slot) for slot in build_series()]
    limited = build_series(terms=build_terms(max_bookings=2))
    start = limited[0].slot.start
    exclusive = [
        with_facts(slot, start=start, end=start + HOUR)
        for slot in build_series(terms=build_terms(forbid_overlap=True))
    ]
    for slots, refusal, booked_count in (
        (in_group, LimitReached, 1),
        (limited, LimitReached, 2),
        (exclusive, TimeConflict, 1),
    ):
        all_or_none = decide(slots, SeriesMode.ALL_OR_NONE, ADA)
        assert isinstance(all_or_none.outcome, NoneBooked)
        # What is discarded is not shown as a conflict.
        assert [getattr(each, "booking", None) for each in all_or_none.outcome.refusals] == [
            None
        ] * 3
        free = decide(slots, SeriesMode.WHAT_IS_FREE, ADA)
        assert isinstance(free.outcome, SeriesBooked)
        expected = [Booked] * booked_count + [refusal] * (3 - booked_count)
        assert [type(each) for each in free.outcome.outcomes] == expected
