"""Changes of teams, campaigns, slots, resources and bookings that arrive after every timeout.

The route to MongoDB holds the write of a change until the change has its answer. The answer is an
error that says that the outcome is unknown, and never a refusal.
"""

from datetime import timedelta

import pytest

from slotlock.domain.admission.tickets import TicketRef
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import SeriesBooked
from slotlock.domain.booking.booking_refusals import Locked
from slotlock.domain.booking.decision import BookingChangeRequest, CommandResult
from slotlock.domain.booking.rules.attendance import (
    check_in,
    mark_no_show,
    undo_check_in,
    undo_no_show,
)
from slotlock.domain.booking.rules.book import SeriesMode
from slotlock.domain.booking.rules.booking_changes import extend
from slotlock.domain.booking.slot import SlotKind
from slotlock.domain.campaigns.campaign import (
    CampaignBusy,
    CampaignDraft,
    CampaignPatch,
    CampaignSaved,
)
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.resources.resource import Resource, ResourceKind, ResourceNotFound
from slotlock.domain.shared.unchanged import UNCHANGED
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.slots.series import OnConflict, SeriesCreated, SeriesScope
from slotlock.domain.slots.series_dates import DatesRemoved
from slotlock.domain.teams.team import TeamId
from slotlock.domain.teams.team_outcomes import TeamBusy, TeamSaved
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure import conflicts
from slotlock.infrastructure.mongo.campaigns.campaign_repository import CampaignRepository
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.resource_repository import ResourceRepository
from slotlock.infrastructure.mongo.team_repository import TeamRepository
from slotlock.infrastructure.redis.admission.admission_queue import QueuedBooking
from slotlock.infrastructure.redis.admission.partitions import StreamEntry
from slotlock.services import resources, teams
from slotlock.services.admission import tickets
from slotlock.services.admission.queued_batch import serve_batch
from slotlock.services.booking import book, waitlist
from slotlock.services.booking.book import BookingOptions
from slotlock.services.booking.book_series import SeriesRequest, book_series
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.campaigns import campaigns
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.slots import (
    deletion,
    editing,
    series_creation,
    series_dates,
)
from slotlock.services.slots.series_dates import NewDates
from tests.support.domain.builders import NOW, build_draft, build_patch
from tests.support.stores.late_store import (
    ADA,
    LateStore,
    Prepare,
    answer_before_write,
    assert_conflict_happens,
    assert_late_write_is_unknown,
    on,
    short_timeouts,
    store,
    take_unknown_for_conflict,
    with_conflict,
)
from tests.support.stores.users import new_email

__all__ = ["short_timeouts", "store"]


ORGANIZER = Caller(UserId("e" * 24), Role.ORGANIZER, "session", NOW)
LATER = build_patch(title="Later")
ROOM, RENAMED = ResourceKind.ROOM, CampaignPatch(name="Later")
PUBLISHED, UNPUBLISHED = CampaignPatch(published=True), CampaignPatch(published=False)


async def new_team(store: LateStore) -> TeamId:
    """Return a team of Ada alone."""
    saved = await teams.create(store.services, "Late", ADA.user_id)
    assert isinstance(saved, TeamSaved)
    return saved.team.id


async def invited_user(store: LateStore) -> tuple[TeamId, User]:
    """Return a team of Ada, and a user whom it has invited."""
    user, team_id = await store.new_user(), await new_team(store)
    invited = await teams.invite(store.services, team_id, user.email, ADA.user_id)
    assert isinstance(invited, TeamSaved)
    return team_id, user


async def new_campaign(store: LateStore) -> CampaignId:
    """Return a new campaign, which is not published."""
    draft = CampaignDraft("Late", NOW, NOW + timedelta(days=1))
    saved = await campaigns.create(store.services, draft, ADA.user_id)
    assert isinstance(saved, CampaignSaved)
    return saved.campaign.id


async def published_campaign(store: LateStore) -> CampaignId:
    """Return a new campaign, which is published."""
    campaign_id = await new_campaign(store)
    await campaigns.edit(store.services, campaign_id, PUBLISHED, ADA.user_id)
    return campaign_id


async def slot_with_holds(store: LateStore) -> SlotId:
    """Return an empty slot, whose places can be held."""
    return await store.insert_slot(hold_minutes=10)


async def full_slot(store: LateStore) -> SlotId:
    """Return a slot whose place is booked."""
    slot_id = await store.insert_slot()
    await store.new_booking(slot_id)
    return slot_id


async def new_series(store: LateStore, *, is_published: bool = True) -> SeriesCreated:
    """Return a new series of three slots."""
    start = NOW + timedelta(days=1)
    end, kind = start + timedelta(hours=1), SlotKind.MEETING
    draft = build_draft("Late", start, end, "UTC", 1, None, kind, is_published)
    rule, on_conflict = "FREQ=WEEKLY;COUNT=3", OnConflict.STRICT
    created = await series_creation.create(
        store.services, draft, rule, [], on_conflict, ADA.user_id
    )
    assert isinstance(created, SeriesCreated)
    return created


async def draft_series(store: LateStore) -> SlotId:
    """Return the first slot of a series of drafts."""
    return (await new_series(store, is_published=False)).slots[0].id


async def add_date(store: LateStore, created: SeriesCreated) -> object:
    """Add the day after the first slot to a series."""
    starts = frozenset({created.slots[0].slot.start + timedelta(days=1)})
    return await series_dates.add(store.services, NewDates(created.series_id, starts), ADA.user_id)


async def booked_series(store: LateStore) -> SeriesCreated:
    """Return a series whose first slot has a booking."""
    created = await new_series(store)
    await store.new_booking(created.slots[0].id)
    return created


async def remove_dates(store: LateStore, created: SeriesCreated) -> object:
    """Delete a slot of a series and cancel another."""
    id_ = key = created.series_id
    slot_ids = tuple(state.id for state in created.slots[:2])
    return await series_dates.remove(
        store.services, id_, slot_ids, ADA.user_id, key, cancel_booked=True
    )


async def book_whole_series(store: LateStore, created: SeriesCreated) -> object:
    """Book a series."""
    request = SeriesRequest(created.series_id, ADA.user_id, SeriesMode.WHAT_IS_FREE)

    async def charge(_: int) -> None:
        pass

    options = BookingOptions(key=created.series_id)
    return await book_series(store.services, ADA, request, options, charge)


async def held_place(store: LateStore) -> BookingChangeRequest:
    """Return a hold that began a minute ago."""
    slot_id = await slot_with_holds(store)
    booking = await store.new_booking(slot_id, hold=True)
    store.advance(timedelta(minutes=1))
    return BookingChangeRequest(slot_id, booking.id, ADA)


async def two_slots(store: LateStore) -> list[tuple[SlotId, UserId]]:
    """Return claims of Ada for two slots."""
    return [(await store.insert_slot(), ADA.user_id) for _ in range(2)]


async def queued_booking(store: LateStore) -> QueuedBooking:
    """Return a queued request for a slot."""
    user, slot_id = await store.new_user(), await store.insert_slot()
    key = IdempotencyKey.for_request(user.id, "k", slot_id)
    return QueuedBooking(slot_id, user.id, user.id, False, key.key_hash, key.request_hash)


async def ticket(store: LateStore) -> TicketRef:
    """Return a ticket of Ada for a slot."""
    slot_id = await store.insert_slot()
    return TicketRef(slot_id, ADA.user_id, slot_id, slot_id, store.services.now())


async def started_booking(store: LateStore) -> BookingChangeRequest:
    """Return a booking, whose slot has started, as an organizer names it."""
    slot_id = await store.insert_slot()
    booking = await store.new_booking(slot_id)
    store.advance(timedelta(days=1))
    return BookingChangeRequest(slot_id, booking.id, ORGANIZER)


async def checked_in(store: LateStore) -> BookingChangeRequest:
    """Return a booking whose user is checked in."""
    request = await started_booking(store)
    await change_booking(store.services, check_in, request)
    return request


async def no_show(store: LateStore) -> BookingChangeRequest:
    """Return a booking that is marked as a no-show."""
    request = await started_booking(store)
    await change_booking(store.services, mark_no_show, request)
    return request


async def user_without_place(store: LateStore) -> tuple[SlotId, UserId]:
    """Return a full slot, and a user without a booking there."""
    return await full_slot(store), (await store.new_user()).id


async def new_room(_: LateStore) -> str:
    """Return the name of a resource that does not exist."""
    return f"Room {new_slot_id()}"


async def room(store: LateStore) -> str:
    """Return the name of a new resource."""
    name = await new_room(store)
    assert await store.services.resources.insert(Resource(name))
    return name


CHANGES: dict[str, Prepare] = {
    "invitation": on(
        new_team,
        lambda store, team_id: teams.invite(store.services, team_id, new_email(), ADA.user_id),
    ),
    "acceptance": on(invited_user, lambda store, to: teams.accept(store.services, to[0], to[1].id)),
    "decline": on(invited_user, lambda store, to: teams.decline(store.services, to[0], to[1].id)),
    "withdrawal": on(
        invited_user,
        lambda store, to: teams.withdraw(store.services, to[0], to[1].email, ADA.user_id),
    ),
    "departure of the last member": on(
        new_team, lambda store, team_id: teams.leave(store.services, team_id, ADA.user_id)
    ),
    "campaign": on(
        new_campaign, lambda store, id_: campaigns.edit(store.services, id_, RENAMED, ADA.user_id)
    ),
    "publication": on(
        new_campaign,
        lambda store, id_: campaigns.edit(store.services, id_, PUBLISHED, ADA.user_id),
    ),
    "unpublication": on(
        published_campaign,
        lambda store, id_: campaigns.edit(store.services, id_, UNPUBLISHED, ADA.user_id),
    ),
    "deletion of a campaign": on(
        new_campaign, lambda store, id_: campaigns.delete(store.services, id_, ADA.user_id)
    ),
    "slot": on(
        slot_with_holds,
        lambda store, id_: editing.edit(store.services, id_, LATER, ADA.user_id),
    ),
    "cancellation of a slot": on(
        full_slot, lambda store, id_: editing.cancel(store.services, id_, ADA.user_id)
    ),
    "deletion of a slot": on(
        slot_with_holds, lambda store, id_: deletion.delete(store.services, id_, ADA.user_id)
    ),
    "publication of a series": on(
        draft_series,
        lambda store, id_: editing.publish(store.services, id_, ADA.user_id, SeriesScope.ALL),
    ),
    "new date": on(new_series, add_date),
    "removed dates": on(booked_series, remove_dates),
    "booked series": on(new_series, book_whole_series),
    "longer hold": on(
        held_place, lambda store, request: change_booking(store.services, extend, request)
    ),
    "several bookings": on(
        two_slots,
        lambda store, claims: book.book_slots(store.services, ADA, claims, BookingOptions()),
    ),
    "queued booking": on(
        queued_booking,
        lambda store, queued: serve_batch(
            store.services, queued.slot_id, [StreamEntry("1-0", {}, queued, NOW)]
        ),
    ),
    "cancelled ticket": on(
        ticket, lambda store, ref: tickets.cancel_ticket(store.services, ref, ADA)
    ),
    "check-in": on(
        started_booking, lambda store, request: change_booking(store.services, check_in, request)
    ),
    "undone check-in": on(
        checked_in, lambda store, request: change_booking(store.services, undo_check_in, request)
    ),
    "no-show": on(
        started_booking,
        lambda store, request: change_booking(store.services, mark_no_show, request),
    ),
    "undone no-show": on(
        no_show, lambda store, request: change_booking(store.services, undo_no_show, request)
    ),
    "waitlisted user": on(
        user_without_place,
        lambda store, given: waitlist.join(
            store.services, *given, 0.0, waitlisted_by=ORGANIZER.user_id
        ),
    ),
    "new resource": on(
        new_room,
        lambda store, name: resources.create(
            store.services, Resource(name, ROOM), ORGANIZER.user_id
        ),
    ),
    "resource": on(
        room,
        lambda store, name: resources.update(
            store.services, name, None, ROOM, UNCHANGED, ORGANIZER.user_id
        ),
    ),
    "renamed resource": on(
        room,
        lambda store, name: resources.update(
            store.services, name, f"new {name}", None, UNCHANGED, ORGANIZER.user_id
        ),
    ),
    "deletion of a resource": on(
        room, lambda store, name: resources.delete(store.services, name, ORGANIZER.user_id)
    ),
    "imported resource": on(
        new_room,
        lambda store, name: resources.import_names(
            store.services, [name], ROOM, ORGANIZER.user_id, dry_run=False
        ),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_whose_write_is_late_has_an_unknown_outcome(
    store: LateStore, name: str
) -> None:
    await assert_late_write_is_unknown(store, CHANGES[name])


@pytest.mark.parametrize(
    ("name", "outcome_type"), [("booked series", SeriesBooked), ("removed dates", DatesRemoved)]
)
async def test_a_late_change_of_a_series_happens_once_and_its_key_repeats_the_outcome(
    store: LateStore, name: str, outcome_type: type
) -> None:
    act = await CHANGES[name](store)
    await answer_before_write(store, act)
    await store.deliver_held()
    before = await store.find_all()
    repeated = await act()
    assert isinstance(repeated, CommandResult)
    assert isinstance(repeated.outcome, outcome_type)
    assert await store.find_all() == before


@pytest.mark.parametrize(
    ("name", "repository", "method", "refusal"),
    [
        ("invitation", TeamRepository, "update", TeamBusy),
        ("acceptance", TeamRepository, "update", TeamBusy),
        ("campaign", CampaignRepository, "update", CampaignBusy),
        ("unpublication", CampaignRepository, "update", CampaignBusy),
        ("new resource", ResourceRepository, "insert", InvalidInput),
        ("resource", ResourceRepository, "update", ResourceNotFound),
    ],
)
async def test_control_a_late_write_that_counts_as_a_conflict_is_refused_and_happens(
    store: LateStore,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    repository: type,
    method: str,
    refusal: type,
) -> None:
    monkeypatch.setattr(conflicts, "MAX_CHANGE_ATTEMPTS", 1)
    act = await CHANGES[name](store)
    write = with_conflict(getattr(repository, method), conflict=False)
    monkeypatch.setattr(repository, method, write)
    await assert_conflict_happens(store, act, refusal)


@pytest.mark.parametrize("name", ["check-in", "undone no-show", "waitlisted user"])
async def test_control_a_late_decision_that_counts_as_a_conflict_is_refused_and_happens(
    store: LateStore, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    act = await CHANGES[name](store)
    take_unknown_for_conflict(monkeypatch)
    await assert_conflict_happens(store, act, Locked)
