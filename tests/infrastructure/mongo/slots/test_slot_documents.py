"""Documents of slots: each fact about a slot is stored and read again."""

from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import SeriesId, Slot, SlotCancellation, SlotKind, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms, GroupLimit, SlotAdmission
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.slots.slot_documents import (
    STORED_NAMES,
    to_document,
    to_slot_state,
)

START = datetime(2040, 5, 1, 9, tzinfo=UTC)
END = START + timedelta(hours=2)

SLOT = Slot(
    "Title",
    "Europe/Berlin",
    7,
    "Room 1",
    SlotKind.COURSE,
    id=SlotId("1" * 24),
    start=START,
    end=END,
    status=SlotStatus.CANCELLED,
    hold_minutes=6,
    cancel_cutoff_minutes=11,
    waitlist_capacity=12,
    waitlist_offer_minutes=13,
    choice_group="beds",
    cancellation=SlotCancellation(START, UserId("2" * 24)),
    terms=CampaignTerms(CampaignId("3" * 24), 2, True, START, END, (("class:5a",),), 3, True),
    group_limits=(GroupLimit("class:*", 4),),
    meetings=(Meeting(START, END),),
    resource="gym",
    several_resources=("gym", "hall"),
    series_id=SeriesId("4" * 24),
    revision=5,
    revised_at=START,
    admission=SlotAdmission.QUEUE_ONLY,
    hold_cooldown_minutes=14,
    reminder_minutes=15,
    meeting_url="https://a.example/room",
    only_for_groups=("5a",),
    number="R-2",
)
STATE = SlotState(SLOT, 3, END)
REQUIRED = [each.name for each in fields(Slot) if each.default is MISSING]
PLAIN = Slot(**{name: getattr(SLOT, name) for name in REQUIRED})


def test_every_fact_that_is_stored_is_read_again() -> None:
    changed = [each.name for each in fields(Slot) if getattr(SLOT, each.name) != each.default]

    # The test would notice each of them.
    assert changed == [each.name for each in fields(Slot)]
    assert to_slot_state(to_document(STATE)) == STATE


def test_a_fact_that_a_document_lacks_has_its_default() -> None:
    document = to_document(STATE)
    for each in fields(Slot):
        if each.default is not MISSING:
            document.pop(STORED_NAMES[each.name], None)

    slot = to_slot_state(document).slot

    assert slot == PLAIN


def test_no_document_has_a_fact_with_its_default() -> None:
    stored = to_document(SlotState(PLAIN, 1, START)).keys()
    facts = {STORED_NAMES[name] for name in REQUIRED if name != "id"}
    assert stored & set(STORED_NAMES.values()) == facts


def test_a_document_of_an_older_version_has_the_defaults_and_nulls() -> None:
    state = SlotState(PLAIN, 1, START)
    nulls = ("waitlistOfferMinutes", "choiceGroup", "cancellation", "resource", "revisedAt")
    older = {"holdMinutes": 5, "admission": "any", "revision": 0, **dict.fromkeys(nulls)}
    assert to_slot_state({**to_document(state), **older}) == state
