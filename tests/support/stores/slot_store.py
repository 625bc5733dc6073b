"""A database with slots that tests change by the rules of the domain."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Concatenate, ParamSpec

from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.book import BookingRequest, book
from slotlock.domain.booking.booking import SlotId, WaitlistEntry
from slotlock.domain.booking.changes import BookingCommand, cancel
from slotlock.domain.booking.decision import Decision
from slotlock.domain.booking.promotion import next_version
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.waitlist import join
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.client import Database, Document, connect
from slotlock.infrastructure.mongo.ids import new_booking_id, new_slot_id, new_waitlist_entry_id
from slotlock.infrastructure.mongo.repositories import Repositories, repositories_on
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, CommitResult, SlotUpdate
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW, build_slot
from tests.support.domain.decisions import decide
from tests.support.stores.slots import insert_new_slots

Arguments = ParamSpec("Arguments")
ADA, BEN, CLEO = UserId("a" * 24), UserId("b" * 24), UserId("c" * 24)
ORGANIZER = UserId("e" * 24)


@dataclass(frozen=True)
class SlotStore:
    """The repositories on a database, with shortcuts for tests."""

    database: Database
    repositories: Repositories

    async def insert_slot(self, capacity: int = 1, **fields: object) -> Slot:
        """Insert a new slot and return it."""
        slot = build_slot(capacity, id=new_slot_id(), **fields)
        await insert_new_slots(self.database, slot)
        return slot

    async def load(self, slot_id: SlotId, *user_ids: UserId, now: datetime = NOW) -> Slot:
        """Load a slot as a decision about these users does, with its whole waitlist."""
        query = SlotQuery(slot_id, now, user_ids, waitlist_depth=100)
        (found,) = await self.repositories.slots.find_for_update(query)
        assert found is not None
        return found

    async def load_roster(self, slot_id: SlotId) -> Slot:
        """Load a slot with all its bookings."""
        found = await self.repositories.slots.find_with_roster(slot_id)
        assert found is not None
        return found

    async def documents(self, collection: str) -> list[Document]:
        """Return all documents of a collection."""
        return await self.database[collection].find().to_list()

    async def commit(self, *updates: SlotUpdate) -> CommitResult:
        """Commit these updates together."""
        return await self.repositories.slot_writer.commit(ChangeSet(updates))

    async def write(self, *updates: SlotUpdate) -> None:
        """Commit these updates together, which has to succeed."""
        assert await self.commit(*updates) is CommitResult.WRITTEN

    async def book(
        self, slot_id: SlotId, *user_ids: UserId, hold: bool = False, now: datetime = NOW
    ) -> None:
        """Book places for these users, one after the other."""
        for user_id in user_ids:
            before = await self.load(slot_id, user_id, now=now)
            await self.write(booking_update(before, user_id, hold=hold, now=now))

    async def join(self, slot_id: SlotId, *user_ids: UserId) -> None:
        """Add these users to the waitlist, one after the other."""
        for user_id in user_ids:
            before = await self.load(slot_id, user_id)
            entry = WaitlistEntry(new_waitlist_entry_id(), slot_id, user_id, NOW)
            await self.write(decided_update(before, join, entry, NOW))


def decided_update(
    before: Slot,
    rule: Callable[Concatenate[Slot, Arguments], Decision[object]],
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> SlotUpdate:
    """Return the update that a rule decides at `NOW`."""
    after, _ = decide(rule, before, *args, **kwargs)
    return SlotUpdate(before, next_version(before, after, NOW))


def booking_update(
    before: Slot,
    user_id: UserId,
    *,
    by: UserId | None = None,
    hold: bool = False,
    now: datetime = NOW,
) -> SlotUpdate:
    """Return the update that books a place; `by` is an organizer, if one books it."""
    request = BookingRequest(user_id, new_booking_id(), by or user_id, hold, by is not None)
    after, _ = decide(book, before, request, now)
    update = SlotUpdate(before, next_version(before, after, now))
    assert update.after.change.added, "the booking was refused"
    return update


def cancel_update(before: Slot) -> SlotUpdate:
    """Return the update with which the user of the first loaded booking cancels it."""
    return decided_update(before, cancel, first_booking_command(before), NOW)


def first_booking_command(slot: Slot) -> BookingCommand:
    """Return a command of its user on the first loaded booking."""
    booking = slot.bookings[0]
    return BookingCommand(booking.id, Caller(booking.user_id, Role.MEMBER, "session", NOW))


@asynccontextmanager
async def open_slot_store(servers: EmbeddedServers) -> AsyncIterator[SlotStore]:
    """Open a new database with all indexes, and drop it at the end."""
    client, database = connect(database_url(servers, f"slots{ObjectId()}"))
    try:
        repositories = repositories_on(database)
        await repositories.create_indexes()
        yield SlotStore(database, repositories)
    finally:
        await client.drop_database(database.name)
        await client.close()
