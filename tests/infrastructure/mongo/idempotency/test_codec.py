"""The stored form of outcomes: unchanged while the classes of the domain are renamed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bson import json_util

from slotlock.domain.admission.tickets import RequestLost
from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingId,
    BookingLimit,
    BookingRef,
    BookingStatus,
    HistoryEntry,
    MadeAs,
    SlotId,
    WaitlistEntry,
    WaitlistEntryId,
)
from slotlock.domain.booking.booking_outcomes import AllBooked, Booked, BookingMoved
from slotlock.domain.booking.booking_refusals import (
    KeyReused,
    Locked,
    NotYetOpen,
    SlotFull,
)
from slotlock.domain.booking.slot import SeriesId, Slot, SlotCancellation, SlotKind, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaign_copies.campaign_copy_outcomes import CampaignCopy, CopiedSlot
from slotlock.domain.campaigns.campaign import Campaign, CampaignSaved
from slotlock.domain.campaigns.terms import (
    CampaignId,
    CampaignTerms,
    GroupLimit,
    NoShowLimit,
    SlotAdmission,
)
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.slots.series import SeriesSummary, SkippedDate
from slotlock.domain.slots.series_dates import DatesRemoved, SeriesDatesSummary
from slotlock.domain.slots.slot_outcomes import SlotSaved
from slotlock.domain.teams.team import Invitation, Member, Team, TeamId
from slotlock.domain.teams.team_outcomes import TeamSaved
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.idempotency.codec import (
    TYPE_FIELD,
    TYPE_TAGS,
    Encoder,
    decode,
    decode_slots,
)
from slotlock.infrastructure.mongo.idempotency.records import (
    IdempotencyRecord,
    records_to_documents,
)

# Written by the first version with explicit tags. Change it only with a change of the stored form.
GOLDEN_FILE = Path(__file__).with_name("records.golden.json")
NOW = datetime(2030, 5, 6, 7, 8, 9, tzinfo=UTC)
ADA, EVE = UserId("a" * 24), UserId("e" * 24)


def state(number: int) -> SlotState:
    """Return a slot as it is recorded, with values that are not the defaults of its fields."""
    slot_id = SlotId(f"{number:024x}")
    return SlotState(
        slot(slot_id),
        version=7,
        changed_at=NOW,
        booked_count=2,
        bookings=(booking(slot_id),),
        waitlist=(WaitlistEntry(WaitlistEntryId("8" * 24), slot_id, ADA, NOW, ("class:5a",)),),
        loaded_waitlist=1,
        waitlist_length=4,
        next_deadline=NOW,
    )


def slot(slot_id: SlotId) -> Slot:
    """Return a slot in which every field has a value that is not its default."""
    return Slot(
        "Yoga 瑜伽",
        "Europe/Berlin",
        id=slot_id,
        start=NOW,
        end=NOW + timedelta(hours=2),
        capacity=3,
        location="Room 5",
        kind=SlotKind.COURSE,
        status=SlotStatus.CANCELLED,
        hold_minutes=9,
        hold_cooldown_minutes=8,
        reminder_minutes=90,
        meeting_url="https://a.example/room",
        only_for_groups=("5a",),
        number="R-2",
        cancel_cutoff_minutes=30,
        waitlist_capacity=12,
        waitlist_offer_minutes=15,
        choice_group="week",
        cancellation=SlotCancellation(NOW, EVE, "the flu"),
        terms=CampaignTerms(
            CampaignId("c" * 24),
            4,
            published=True,
            opens_at=NOW,
            closes_at=NOW + timedelta(days=1),
            eligible_groups=(("class:5a", "class:5b"), ("year:5",)),
            max_bookings=2,
            forbid_overlap=True,
            group_limits=(GroupLimit("class:*", 5),),
            cancel_until=NOW,
            admission=SlotAdmission.QUEUE_ONLY,
            no_show_limit=NoShowLimit(2, 14),
            require_verified_email=True,
            reminder_minutes=60,
            opening_mail_hours=24,
            leader_groups=("5*",),
        ),
        group_limits=(GroupLimit("class:5a", 1),),
        meetings=(Meeting(NOW, NOW + timedelta(hours=2)),),
        resource="Room 5",
        series_id=SeriesId("5" * 24),
        revision=3,
        revised_at=NOW,
        admission=SlotAdmission.QUEUE_ONLY,
    )


def booking(slot_id: SlotId) -> Booking:
    """Return a booking in which every field has a value that is not its default."""
    limits = (BookingLimit.MAX_BOOKINGS, BookingLimit.TIME_CONFLICT)
    history = (
        HistoryEntry(NOW, EVE, BookingAction.HELD, BookingStatus.HELD, NOW, limits, NOW),
        HistoryEntry(NOW, None, BookingAction.CONFIRMED, BookingStatus.CONFIRMED),
    )
    ref = BookingRef(slot_id, BookingId("2" * 24))
    groups, made_as = ("class:5a",), MadeAs.LEADER
    booking_id = BookingId("1" * 24)
    return Booking(booking_id, slot_id, ADA, history, NOW, ref, ref, groups, made_as=made_as)


def records() -> dict[str, IdempotencyRecord]:
    """Return records of outcomes, with the slots that they show or without."""
    one, other = state(1), state(2)
    moved = BookingMoved(one.id, booking(one.id), booking(other.id))
    all_booked = AllBooked((Booked(one.id, booking(one.id)),))
    meeting = Meeting(NOW, NOW + timedelta(hours=2))
    skipped = SkippedDate("Room 5", meeting, other.id, meeting)
    terms = one.slot.terms
    assert terms is not None
    campaign = Campaign(
        terms.campaign_id, "Sports", terms, mail_note="Bring shoes.", published_at=NOW
    )
    copied = CopiedSlot(one.id, "Yoga", NOW, NOW + timedelta(hours=2), "Europe/Berlin")
    members = (Member(ADA, NOW, 7),)
    invitations = (Invitation("ben@slotlock.test", NOW, ADA, 8, EVE),)
    return {
        "moved": record(moved, one, other),
        "all booked": record(all_booked, one),
        "refused by the queue": record(SlotFull(one.id)),
        "refused with a time": record(NotYetOpen(one.id, NOW)),
        "lost": record(RequestLost()),
        "cancelled": record(RequestLost(was_cancelled=True)),
        "created slot": record(SlotSaved(one.id), one),
        "created series": record(SeriesSummary(SeriesId("5" * 24), (skipped,), ("2030-05-06",))),
        "added dates": record(
            SeriesDatesSummary(
                SeriesId("5" * 24), (one.id,), (other.id,), (skipped,), ("2030-05-06",)
            )
        ),
        "removed dates": record(DatesRemoved(SeriesId("5" * 24), (one.id,), (other.id,))),
        "created campaign": record(CampaignSaved(campaign)),
        "copied campaign": record(
            CampaignCopy(campaign, 1, copied.start, copied.end, (copied,), (copied,))
        ),
        "created team": record(
            TeamSaved(Team(TeamId("7" * 24), "Relay", members, invitations, 3, NOW))
        ),
    }


def record(outcome: object, *slots: SlotState) -> IdempotencyRecord:
    """Return the record of an outcome."""
    return IdempotencyRecord("key", "request hash", outcome, NOW, NOW, slots)


def golden() -> Any:
    """Return the stored form of the records, as the file has it."""
    options = json_util.JSONOptions(tz_aware=True, tzinfo=UTC)
    return json_util.loads(GOLDEN_FILE.read_text(), json_options=options)


def test_records_are_stored_as_the_golden_file_says() -> None:
    assert {name: records_to_documents([each])[0] for name, each in records().items()} == golden()


def test_a_loss_that_an_older_version_stored_is_no_cancellation() -> None:
    assert decode({TYPE_FIELD: "RequestLost"}) == RequestLost()


def test_records_that_are_written_together_are_stored_as_if_each_was_written_alone() -> None:
    # The same slot and the same booking in several records, as the admission queue writes them.
    one = state(1)
    own = one.bookings[0]
    shared = [*records().values(), *records().values(), record(Booked(one.id, own), one)]
    shared += [record(AllBooked((Booked(one.id, own),)), one, state(2)), record(SlotFull(one.id))]
    assert records_to_documents(shared) == [records_to_documents([each])[0] for each in shared]


@pytest.mark.parametrize("name", records())
def test_stored_outcomes_and_slots_are_read_back_as_they_were(name: str) -> None:
    document, expected = golden()[name], records()[name]
    assert decode(document["outcome"]) == expected.outcome
    assert decode_slots(document["slots"]) == expected.slots


def test_what_is_stored_instead_of_a_slot_is_not_read_as_one() -> None:
    with pytest.raises(TypeError):
        decode_slots([golden()["lost"]["outcome"]])


def test_a_class_that_was_stored_has_its_tag() -> None:
    """A class that is renamed needs its old name as a second tag."""
    stored = """
        AllBooked AlreadyBooked Booked Booking BookingAction BookingCancelled BookingConfirmed
        BookingLimit BookingMoved BookingRef BookingStatus Campaign CampaignCopy CampaignSaved
        CampaignTerms Closed CopiedSlot DatesRemoved GroupFull GroupLimit HistoryEntry HoldCooldown
        HoldExtended Invitation LimitReached Meeting Member NoShowLimit NotEligible NotTeammate
        NotYetOpen QueueOnly RequestLost SeriesBooked SeriesDatesSummary SeriesSummary SkippedDate
        Slot SlotAdmission SlotCancellation SlotCancelled SlotChange SlotFull SlotKind SlotNotFound
        SlotSaved SlotStarted SlotState SlotStatus Team TeamSaved TimeConflict TooManyNoShows
        EmailNotVerified UserBanned UserNotFound WaitlistEntry
    """
    assert set(stored.split()) <= TYPE_TAGS.keys()


@pytest.mark.parametrize("never_stored", [Locked(SlotId("s"), 1), KeyReused("key")])
def test_an_outcome_that_must_not_be_stored_cannot_be_encoded(never_stored: object) -> None:
    with pytest.raises(KeyError):
        Encoder().encode(never_stored)
