"""Changes of teams, campaigns, slots and accounts that arrive after every timeout.

The route to MongoDB holds the write of a change until the change has its answer. The answer is an
error that says that the outcome is unknown, and never a refusal.
"""

import secrets
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from pymongo import timeout
from pymongo.errors import PyMongoError

from slotlock.auth import accounts, sessions, user_admin, user_import
from slotlock.domain.booking.slot import SlotKind
from slotlock.domain.campaigns.campaign import (
    CampaignBusy,
    CampaignChanges,
    CampaignDraft,
    CampaignSaved,
)
from slotlock.domain.slots.changes import SlotChanges
from slotlock.domain.slots.editing import SlotDraft
from slotlock.domain.slots.series import OnConflict, SeriesCreated, SeriesScope
from slotlock.domain.teams.outcomes import TeamBusy, TeamSaved
from slotlock.domain.users.user import Caller, Role, User
from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.client import may_have_written
from slotlock.infrastructure.mongo.teams import TeamRepository
from slotlock.infrastructure.mongo.users.account_updates import PasswordWriter
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.infrastructure.redis.admission.partitions import StreamEntry
from slotlock.infrastructure.redis.admission.queue import QueuedBooking
from slotlock.services import teams
from slotlock.services.admission.batch import serve_batch
from slotlock.services.booking import book, changes
from slotlock.services.booking.book import BookingOptions
from slotlock.services.booking.changes import BookingChangeRequest
from slotlock.services.campaigns import campaigns
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.slots import deletion, editing, series
from tests.support.domain.builders import NOW
from tests.support.stores.late_store import ADA, LateStore, is_final_write, short_timeouts, store
from tests.support.stores.users import new_email

__all__ = ["short_timeouts", "store"]

ACT_TIMEOUT_S = 0.5
MAX_ATTEMPTS = 5
PASSWORD = "correct horse battery"
ORGANIZER = Caller(ADA.user_id, Role.ADMIN, "session", NOW)

Act = Callable[[], Awaitable[object]]
Prepare = Callable[[LateStore], Awaitable[Act]]


async def new_user(store: LateStore) -> User:
    """Return a new user with a password."""
    created = await accounts.create_user(store.auth, "Eve", new_email(), PASSWORD, Role.MEMBER)
    assert isinstance(created, User)
    return created


async def prepare_invitation(store: LateStore) -> Act:
    """Return what invites an address to a team."""
    saved = await teams.create(store.services, "Late", ADA.user_id)
    assert isinstance(saved, TeamSaved)
    return lambda: teams.invite(store.services, saved.team.id, new_email(), ADA.user_id)


async def prepare_departure(store: LateStore) -> Act:
    """Return what leaves a team, which is deleted with its last member."""
    saved = await teams.create(store.services, "Late", ADA.user_id)
    assert isinstance(saved, TeamSaved)
    return lambda: teams.leave(store.services, saved.team.id, ADA.user_id)


async def prepare_campaign_edit(store: LateStore) -> Act:
    """Return what publishes a campaign."""
    draft = CampaignDraft("Late", NOW, NOW + timedelta(days=1))
    saved = await campaigns.create(store.services, draft, ADA.user_id)
    assert isinstance(saved, CampaignSaved)
    change = CampaignChanges(published=True)
    return lambda: campaigns.edit(store.services, saved.campaign.id, change, ADA.user_id)


async def prepare_campaign_deletion(store: LateStore) -> Act:
    """Return what deletes a campaign."""
    draft = CampaignDraft("Late", NOW, NOW + timedelta(days=1))
    saved = await campaigns.create(store.services, draft, ADA.user_id)
    assert isinstance(saved, CampaignSaved)
    return lambda: campaigns.delete(store.services, saved.campaign.id, ADA.user_id)


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


async def prepare_series_publication(store: LateStore) -> Act:
    """Return what publishes all slots of a series."""
    start = NOW + timedelta(days=1)
    end, kind = start + timedelta(hours=1), SlotKind.MEETING
    draft = SlotDraft("Late", start, end, "UTC", 1, None, kind, False)
    rule, on_conflict = "FREQ=WEEKLY;COUNT=3", OnConflict.STRICT
    created = await series.create(store.services, draft, rule, [], on_conflict, ADA.user_id)
    assert isinstance(created, SeriesCreated)
    first_id = created.slots[0].id
    return lambda: editing.publish(store.services, first_id, ADA.user_id, SeriesScope.ALL)


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


async def prepare_queued_booking(store: LateStore) -> Act:
    """Return what serves a queued request."""
    user, slot_id = await new_user(store), await store.insert_slot()
    key = IdempotencyKey.for_request(user.id, "k", slot_id)
    booking = QueuedBooking(slot_id, user.id, user.id, False, key.key_hash, key.request_hash)
    return lambda: serve_batch(store.services, slot_id, [StreamEntry("1-0", {}, booking, NOW)])


async def prepare_import(store: LateStore) -> Act:
    """Return what imports a user."""
    body = f"email,name\n{new_email()},Eve\n".encode()
    return lambda: user_import.import_users(store.auth, body, dry_run=False)


async def prepare_ban(store: LateStore) -> Act:
    """Return what bans a user."""
    user = await new_user(store)
    return lambda: user_admin.ban(store.auth, ORGANIZER, user.id, None)


async def prepare_groups(store: LateStore) -> Act:
    """Return what sets a user's groups."""
    user = await new_user(store)
    return lambda: user_admin.set_groups(store.auth, ORGANIZER, user.id, ["Late"])


async def prepare_registration(store: LateStore) -> Act:
    """Return what creates an account."""
    email = new_email()
    return lambda: accounts.register(store.auth, "Eve", email, PASSWORD)


async def prepare_password(store: LateStore) -> Act:
    """Return what changes a password."""
    user = await new_user(store)
    session = await sessions.open_session(store.auth, user)
    claims = store.auth.tokens.verify("access", session.access_token, NOW)
    caller = Caller(user.id, Role.MEMBER, claims.session_id, claims.expires_at)
    new = secrets.token_hex(8)
    return lambda: accounts.change_password(store.auth, caller, PASSWORD, new)


async def prepare_refresh(store: LateStore) -> Act:
    """Return what exchanges a refresh token."""
    session = await sessions.open_session(store.auth, await new_user(store))
    return lambda: sessions.refresh_session(store.auth, session.refresh_token)


async def prepare_logout(store: LateStore) -> Act:
    """Return what ends a session."""
    session = await sessions.open_session(store.auth, await new_user(store))
    claims = store.auth.tokens.verify("access", session.access_token, NOW)
    return lambda: sessions.end_session(store.auth, claims.user_id, claims.session_id)


async def answer_before_write(store: LateStore, act: Act) -> object:
    """Return the outcome of an act, or its error, while the route holds the write of the act."""
    store.route.is_held = is_final_write
    for _ in range(MAX_ATTEMPTS):  # on a busy machine, reads may need all of the time
        with timeout(ACT_TIMEOUT_S):
            try:
                outcome = await act()
            except Exception as error:
                outcome = error
        if store.route.held:
            return outcome
    raise AssertionError(f"the act wrote nothing: {outcome!r}")


@pytest.mark.parametrize(
    "prepare",
    [
        prepare_invitation,
        prepare_departure,
        prepare_campaign_edit,
        prepare_campaign_deletion,
        prepare_slot_edit,
        prepare_slot_cancellation,
        prepare_slot_deletion,
        prepare_series_publication,
        prepare_hold_extension,
        prepare_several_bookings,
        prepare_queued_booking,
        prepare_import,
        prepare_ban,
        prepare_groups,
        prepare_registration,
        prepare_password,
        prepare_refresh,
        prepare_logout,
    ],
)
async def test_a_change_whose_write_is_late_has_an_unknown_outcome(
    store: LateStore, prepare: Prepare
) -> None:
    act = await prepare(store)
    before = await store.find_all()
    outcome = await answer_before_write(store, act)
    assert isinstance(outcome, Exception), outcome
    assert may_have_written(outcome)
    assert await store.find_all() == before
    await store.deliver_held()
    assert await store.find_all() != before


Write = Callable[..., Awaitable[Any]]


def with_conflict(write: Write, conflict: object) -> Write:
    """Return the write with an unknown result that counts as a conflict."""

    async def write_or_conflict(*arguments: object) -> object:
        try:
            return await write(*arguments)
        except PyMongoError:
            return conflict

    return write_or_conflict


@pytest.mark.parametrize(
    ("prepare", "repository", "conflict", "refusal"),
    [
        (prepare_invitation, TeamRepository, False, TeamBusy),
        (prepare_campaign_edit, CampaignRepository, False, CampaignBusy),
        (prepare_password, PasswordWriter, None, accounts.InvalidCredentials),
        (prepare_registration, UserRepository, None, accounts.EmailTaken),
    ],
)
async def test_control_a_late_write_that_counts_as_a_conflict_is_refused_and_happens(
    store: LateStore,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Prepare,
    repository: type,
    conflict: object,
    refusal: type,
) -> None:
    monkeypatch.setattr(teams, "MAX_ATTEMPTS", 1)
    monkeypatch.setattr(campaigns, "MAX_EDIT_ATTEMPTS", 1)
    act = await prepare(store)
    name = "insert" if repository is UserRepository else "update"
    monkeypatch.setattr(repository, name, with_conflict(getattr(repository, name), conflict))
    before = await store.find_all()
    assert isinstance(await answer_before_write(store, act), refusal)
    await store.deliver_held()
    assert await store.find_all() != before
