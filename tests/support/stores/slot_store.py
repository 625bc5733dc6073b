"""A database with slots that tests change by the rules of the domain."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import MadeAs, SlotId, WaitlistEntry
from slotlock.domain.booking.decision import (
    BookingChangeRequest,
    BookingRule,
    Decision,
    LoadedState,
)
from slotlock.domain.booking.rules.book import BookingRequest, book
from slotlock.domain.booking.rules.booking_changes import cancel
from slotlock.domain.booking.rules.waitlist import join
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS, UserContexts
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Database, Document, open_database
from slotlock.infrastructure.mongo.ids import new_booking_id, new_slot_id, new_waitlist_entry_id
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, SlotWrite, WriteSet
from tests.support.domain.builders import NOW, build_slot, change_request
from tests.support.domain.decisions import as_written, decide
from tests.support.stores.empty_database import build_indexes, empty_database
from tests.support.stores.slots import insert_new_slots

ADA, BEN, CLEO = UserId("a" * 24), UserId("b" * 24), UserId("c" * 24)
ORGANIZER = UserId("e" * 24)


@dataclass(frozen=True)
class SlotStore:
    """The repositories on a database, with shortcuts for tests."""

    database: Database
    repositories: Repositories

    async def insert_slot(self, capacity: int = 1, **values: object) -> SlotState:
        """Insert a new slot and return it."""
        slot = build_slot(capacity, id=new_slot_id(), **values)
        await insert_new_slots(self.database, slot)
        return slot

    async def load(self, slot_id: SlotId, *user_ids: UserId, now: datetime = NOW) -> SlotState:
        """Load a slot as a decision about these users does, with its whole waitlist."""
        return (await self.load_for_update([slot_id], *user_ids, now=now)).slots[slot_id]

    async def load_for_update(
        self, slot_ids: Sequence[SlotId], *user_ids: UserId, now: datetime = NOW
    ) -> LoadedState:
        """Load slots as a decision about these users does, with the contexts of users."""
        queries = (SlotQuery(id_, now, user_ids, waitlist_depth=100) for id_ in slot_ids)
        return await self.repositories.slots.find_for_update(*queries)

    async def load_roster(self, slot_id: SlotId) -> SlotState:
        """Load a slot with all its bookings."""
        found = await self.repositories.slots.find_with_roster(slot_id)
        assert found is not None
        return found

    async def documents(self, collection: str) -> list[Document]:
        """Return all documents of a collection."""
        return await self.database[collection].find().to_list()

    async def commit(self, *updates: SlotWrite, users: UserContexts = NO_CONTEXTS) -> CommitResult:
        """Commit these updates together, which were decided on these contexts."""
        return await self.repositories.slot_writer.commit(WriteSet(updates, users))

    async def write(self, *updates: SlotWrite, users: UserContexts = NO_CONTEXTS) -> None:
        """Commit these updates together, which has to succeed."""
        assert await self.commit(*updates, users=users) is CommitResult.WRITTEN

    async def book(
        self, slot_id: SlotId, *user_ids: UserId, hold: bool = False, now: datetime = NOW
    ) -> None:
        """Book places for these users, one after the other."""
        for user_id in user_ids:
            loaded = await self.load_for_update([slot_id], user_id, now=now)
            before, users = loaded.slots[slot_id], loaded.users
            update = booking_update(before, user_id, hold=hold, now=now, users=users)
            await self.write(update, users=users)

    async def join(self, slot_id: SlotId, *user_ids: UserId) -> None:
        """Add these users to the waitlist, one after the other."""
        for user_id in user_ids:
            loaded = await self.load_for_update([slot_id], user_id)
            before, users = loaded.slots[slot_id], loaded.users
            entry = WaitlistEntry(new_waitlist_entry_id(), slot_id, user_id, NOW)
            await self.write(decided_update(before, join, entry, NOW, users=users), users=users)


def decided_update(
    before: SlotState,
    rule: Callable[..., Decision[object]] | BookingRule[..., object],
    *args: object,
    users: UserContexts = NO_CONTEXTS,
) -> SlotWrite:
    """Return the update that a rule decides at `NOW`."""
    after, _ = decide(rule, before, *args, users=users)
    return SlotWrite(before, as_written(before, after, NOW, users))


def booking_update(
    before: SlotState,
    user_id: UserId,
    *,
    by: UserId | None = None,
    hold: bool = False,
    now: datetime = NOW,
    users: UserContexts = NO_CONTEXTS,
) -> SlotWrite:
    """Return the update that books a place; `by` is an organizer, if one books it."""
    made_as = None if by is None else MadeAs.ORGANIZER
    request = BookingRequest(user_id, new_booking_id(), by or user_id, hold, made_as=made_as)
    after, _ = decide(book, before, request, now, users=users)
    update = SlotWrite(before, as_written(before, after, now, users))
    assert update.after.change.added, "the booking was refused"
    return update


def cancel_update(before: SlotState) -> SlotWrite:
    """Return the update with which the user of the first loaded booking cancels it."""
    return decided_update(before, cancel, first_change_request(before), NOW)


def first_change_request(slot: SlotState) -> BookingChangeRequest:
    """Return a request of its user to change the first loaded booking."""
    booking = slot.bookings[0]
    return change_request(booking, booking.user_id)


@asynccontextmanager
async def open_slot_store(servers: EmbeddedServers) -> AsyncIterator[SlotStore]:
    """Open an empty database with all indexes."""
    with empty_database(servers) as url:
        async with open_database(url) as database:
            repositories = Repositories(database)
            await build_indexes(url, repositories.indexes)
            yield SlotStore(database, repositories)
