"""Changes of teams, campaigns, slots and bookings that arrive after every timeout.

The route to MongoDB holds the write of a change until the change has its answer. The answer is an
error that says that the outcome is unknown, and never a refusal.
"""

from datetime import timedelta

import pytest

from slotlock.domain.admission.tickets import TicketRef
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.outcomes import SeriesBooked
from slotlock.domain.booking.rules.series import SeriesMode
from slotlock.domain.booking.slot import SlotKind
from slotlock.domain.campaigns.campaign import (
    CampaignBusy,
    CampaignChanges,
    CampaignDraft,
    CampaignSaved,
)
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.slots.changes import SlotChanges
from slotlock.domain.slots.editing import SlotDraft
from slotlock.domain.slots.series import OnConflict, SeriesCreated, SeriesScope
from slotlock.domain.slots.series_dates import DatesRemoved
from slotlock.domain.teams.outcomes import TeamBusy, TeamSaved
from slotlock.domain.teams.team import TeamId
from slotlock.domain.users.user import User
from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.teams import TeamRepository
from slotlock.infrastructure.redis.admission.partitions import StreamEntry
from slotlock.infrastructure.redis.admission.queue import QueuedBooking
from slotlock.services import teams
from slotlock.services.admission import tickets
from slotlock.services.admission.batch import serve_batch
from slotlock.services.booking import book, changes
from slotlock.services.booking.book import BookingOptions
from slotlock.services.booking.book_series import SeriesRequest, book_series
from slotlock.services.booking.changes import BookingChangeRequest
from slotlock.services.campaigns import campaigns
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.slots import deletion, editing, series, series_dates
from slotlock.services.slots.series_dates import NewDates
from tests.support.domain.builders import NOW
from tests.support.stores.late_store import (
    ADA,
    Act,
    LateStore,
    Prepare,
    answer_before_write,
    assert_late_write_is_unknown,
    short_timeouts,
    store,
    with_conflict,
)
from tests.support.stores.users import new_email

__all__ = ["short_timeouts", "store"]


async def prepare_invitation(store: LateStore) -> Act:
    """Return what invites an address to a team."""
    saved = await teams.create(store.services, "Late", ADA.user_id)
    assert isinstance(saved, TeamSaved)
    return lambda: teams.invite(store.services, saved.team.id, new_email(), ADA.user_id)


async def prepare_invited(store: LateStore) -> tuple[TeamId, User]:
    """Return a team of Ada, and a user whom it has invited."""
    user = await store.new_user()
    saved = await teams.create(store.services, "Late", ADA.user_id)
    assert isinstance(saved, TeamSaved)
    invited = await teams.invite(store.services, saved.team.id, user.email, ADA.user_id)
    assert isinstance(invited, TeamSaved)
    return saved.team.id, user


async def prepare_acceptance(store: LateStore) -> Act:
    """Return what accepts an invitation to a team."""
    team_id, user = await prepare_invited(store)
    return lambda: teams.accept(store.services, team_id, user.id)


async def prepare_decline(store: LateStore) -> Act:
    """Return what declines an invitation to a team."""
    team_id, user = await prepare_invited(store)
    return lambda: teams.decline(store.services, team_id, user.id)


async def prepare_withdrawal(store: LateStore) -> Act:
    """Return what withdraws an invitation to a team."""
    team_id, user = await prepare_invited(store)
    return lambda: teams.withdraw(store.services, team_id, user.email, ADA.user_id)


async def prepare_departure(store: LateStore) -> Act:
    """Return what leaves a team, which is deleted with its last member."""
    saved = await teams.create(store.services, "Late", ADA.user_id)
    assert isinstance(saved, TeamSaved)
    return lambda: teams.leave(store.services, saved.team.id, ADA.user_id)


async def new_campaign(store: LateStore) -> CampaignId:
    """Return a new campaign, which is not published."""
    draft = CampaignDraft("Late", NOW, NOW + timedelta(days=1))
    saved = await campaigns.create(store.services, draft, ADA.user_id)
    assert isinstance(saved, CampaignSaved)
    return saved.campaign.id


async def prepare_campaign_edit(store: LateStore) -> Act:
    """Return what renames a campaign."""
    campaign_id, change = await new_campaign(store), CampaignChanges(name="Later")
    return lambda: campaigns.edit(store.services, campaign_id, change, ADA.user_id)


async def prepare_publication(store: LateStore) -> Act:
    """Return what publishes a campaign."""
    campaign_id, change = await new_campaign(store), CampaignChanges(published=True)
    return lambda: campaigns.edit(store.services, campaign_id, change, ADA.user_id)


async def prepare_unpublication(store: LateStore) -> Act:
    """Return what takes a campaign back from the public."""
    campaign_id, change = await new_campaign(store), CampaignChanges(published=False)
    published = CampaignChanges(published=True)
    await campaigns.edit(store.services, campaign_id, published, ADA.user_id)
    return lambda: campaigns.edit(store.services, campaign_id, change, ADA.user_id)


async def prepare_campaign_deletion(store: LateStore) -> Act:
    """Return what deletes a campaign."""
    campaign_id = await new_campaign(store)
    return lambda: campaigns.delete(store.services, campaign_id, ADA.user_id)


async def prepare_slot_edit(store: LateStore) -> Act:
    """Return what renames a slot."""
    slot_id, change = await store.insert_slot(hold_minutes=10), SlotChanges(title="Later")
    return lambda: editing.edit(store.services, slot_id, change, ADA.user_id)


async def prepare_slot_cancellation(store: LateStore) -> Act:
    """Return what cancels a slot with a booking."""
    slot_id = await store.insert_slot()
    await store.new_booking(slot_id)
    return lambda: editing.cancel(store.services, slot_id, ADA.user_id)


async def prepare_slot_deletion(store: LateStore) -> Act:
    """Return what deletes a slot."""
    slot_id = await store.insert_slot(hold_minutes=10)
    return lambda: deletion.delete(store.services, slot_id, ADA.user_id)


async def new_series(store: LateStore, *, is_published: bool) -> SeriesCreated:
    """Return a new series of three slots."""
    start = NOW + timedelta(days=1)
    end, kind = start + timedelta(hours=1), SlotKind.MEETING
    draft = SlotDraft("Late", start, end, "UTC", 1, None, kind, is_published)
    rule, on_conflict = "FREQ=WEEKLY;COUNT=3", OnConflict.STRICT
    created = await series.create(store.services, draft, rule, [], on_conflict, ADA.user_id)
    assert isinstance(created, SeriesCreated)
    return created


async def prepare_series_publication(store: LateStore) -> Act:
    """Return what publishes all slots of a series."""
    first_id = (await new_series(store, is_published=False)).slots[0].id
    return lambda: editing.publish(store.services, first_id, ADA.user_id, SeriesScope.ALL)


async def prepare_series_addition(store: LateStore) -> Act:
    """Return what adds a date to a series."""
    created = await new_series(store, is_published=True)
    start = created.slots[0].slot.start + timedelta(days=1)
    dates = NewDates(created.series_id, frozenset({start}))
    return lambda: series_dates.add(store.services, dates, ADA.user_id)


async def prepare_series_removal(store: LateStore) -> Act:
    """Return what deletes a slot of a series and cancels another."""
    created = await new_series(store, is_published=True)
    slot_ids = tuple(state.id for state in created.slots[:2])
    await store.new_booking(slot_ids[0])
    id_ = key = created.series_id
    return lambda: series_dates.remove(
        store.services, id_, slot_ids, ADA.user_id, key, cancel_booked=True
    )


async def prepare_hold_extension(store: LateStore) -> Act:
    """Return what extends a hold."""
    slot_id = await store.insert_slot(hold_minutes=10)
    booking = await store.new_booking(slot_id, hold=True)
    store.advance(timedelta(minutes=1))
    request = BookingChangeRequest(slot_id, booking.id, ADA)
    return lambda: changes.extend(store.services, request)


async def prepare_several_bookings(store: LateStore) -> Act:
    """Return what books two slots."""
    claims = [(await store.insert_slot(), ADA.user_id) for _ in range(2)]
    return lambda: book.book_slots(store.services, ADA, claims, BookingOptions())


async def prepare_series_booking(store: LateStore) -> Act:
    """Return what books a series."""
    series_id = (await new_series(store, is_published=True)).series_id
    request = SeriesRequest(series_id, ADA.user_id, SeriesMode.WHAT_IS_FREE)

    async def charge(_: int) -> None:
        pass

    options = BookingOptions(key=series_id)
    return lambda: book_series(store.services, ADA, request, options, charge)


async def prepare_queued_booking(store: LateStore) -> Act:
    """Return what serves a queued request."""
    user, slot_id = await store.new_user(), await store.insert_slot()
    key = IdempotencyKey.for_request(user.id, "k", slot_id)
    booking = QueuedBooking(slot_id, user.id, user.id, False, key.key_hash, key.request_hash)
    return lambda: serve_batch(store.services, slot_id, [StreamEntry("1-0", {}, booking, NOW)])


async def prepare_ticket_cancellation(store: LateStore) -> Act:
    """Return what cancels a queued request."""
    slot_id = await store.insert_slot()
    ref = TicketRef(slot_id, ADA.user_id, slot_id, slot_id, store.services.now())
    return lambda: tickets.cancel_ticket(store.services, ref, ADA)


@pytest.mark.parametrize(
    "prepare",
    [
        prepare_invitation,
        prepare_acceptance,
        prepare_decline,
        prepare_withdrawal,
        prepare_departure,
        prepare_campaign_edit,
        prepare_publication,
        prepare_unpublication,
        prepare_campaign_deletion,
        prepare_slot_edit,
        prepare_slot_cancellation,
        prepare_slot_deletion,
        prepare_series_publication,
        prepare_series_addition,
        prepare_series_removal,
        prepare_hold_extension,
        prepare_several_bookings,
        prepare_series_booking,
        prepare_queued_booking,
        prepare_ticket_cancellation,
    ],
)
async def test_a_change_whose_write_is_late_has_an_unknown_outcome(
    store: LateStore, prepare: Prepare
) -> None:
    await assert_late_write_is_unknown(store, prepare)


@pytest.mark.parametrize(
    ("prepare", "outcome_type"),
    [(prepare_series_booking, SeriesBooked), (prepare_series_removal, DatesRemoved)],
)
async def test_a_late_change_of_a_series_happens_once_and_its_key_repeats_the_outcome(
    store: LateStore, prepare: Prepare, outcome_type: type
) -> None:
    act = await prepare(store)
    await answer_before_write(store, act)
    await store.deliver_held()
    before = await store.find_all()
    repeated = await act()
    assert isinstance(repeated, CommandResult)
    assert isinstance(repeated.outcome, outcome_type)
    assert await store.find_all() == before


@pytest.mark.parametrize(
    ("prepare", "repository", "refusal"),
    [
        (prepare_invitation, TeamRepository, TeamBusy),
        (prepare_acceptance, TeamRepository, TeamBusy),
        (prepare_campaign_edit, CampaignRepository, CampaignBusy),
        (prepare_unpublication, CampaignRepository, CampaignBusy),
    ],
)
async def test_control_a_late_write_that_counts_as_a_conflict_is_refused_and_happens(
    store: LateStore,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Prepare,
    repository: type[TeamRepository | CampaignRepository],
    refusal: type,
) -> None:
    monkeypatch.setattr(teams, "MAX_ATTEMPTS", 1)
    monkeypatch.setattr(campaigns, "MAX_EDIT_ATTEMPTS", 1)
    act = await prepare(store)
    monkeypatch.setattr(repository, "update", with_conflict(repository.update, False))
    before = await store.find_all()
    assert isinstance(await answer_before_write(store, act), refusal)
    await store.deliver_held()
    assert await store.find_all() != before
