"""Concurrent queries are one command to MongoDB, and each caller gets only what it asked for."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingId,
    BookingStatus,
    HistoryEntry,
    SlotId,
    WaitlistEntry,
    WaitlistEntryId,
)
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContext, UserContexts
from slotlock.domain.campaigns.terms import GroupLimit
from slotlock.domain.users.user import Role, UserId
from slotlock.infrastructure.mongo.client import Database, connect
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.slots.booking_documents import booking_to_subdocument
from slotlock.infrastructure.mongo.slots.slot_query import SharedSlot, SlotQuery
from slotlock.infrastructure.mongo.slots.slot_repository import SlotRepository
from slotlock.infrastructure.mongo.slots.user_context_loader import UserContextLoader, _ContextQuery
from slotlock.infrastructure.mongo.users.user_documents import to_new_document
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW, build_slot, with_facts
from tests.support.stores.slots import insert_new_slots

USERS = [UserId(f"{number:024x}") for number in range(8)]
ADA, BEN, CLEO, DAN, EVE, FAY, GUS, HAL = USERS
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Stored:
    """A database with slots that several callers ask for."""

    database: Database
    plain_id: SlotId
    grouped_id: SlotId
    single_id: SlotId

    @property
    def queries(self) -> Sequence[SlotQuery]:
        """Queries that differ in each of their parts."""
        return [
            SlotQuery(self.plain_id, NOW, [ADA]),
            SlotQuery(self.plain_id, NOW, [BEN, FAY], waitlist_depth=3),
            SlotQuery(self.plain_id, NOW, (), [booking_id(CLEO)]),
            SlotQuery(self.plain_id, NOW + HOUR),
            SlotQuery(self.plain_id, NOW + HOUR, [HAL], for_update=True),
            SlotQuery(self.grouped_id, NOW, [HAL]),
            SlotQuery(self.grouped_id, NOW, [ADA], for_update=True),
            SlotQuery(self.grouped_id, NOW + HOUR),
            SlotQuery(self.single_id, NOW, [GUS]),
            SlotQuery(new_slot_id(), NOW, [ADA]),
        ]


def booking_id(user_id: UserId) -> BookingId:
    """Return the id of the user's booking."""
    return BookingId(f"b{user_id[1:]}")


def booking(slot_id: SlotId, user_id: UserId, held: bool = False) -> Booking:
    """Return a booking, or a hold that lasts for half an hour."""
    status = BookingStatus.HELD if held else BookingStatus.CONFIRMED
    action = BookingAction.HELD if held else BookingAction.BOOKED
    until = NOW + HOUR / 2 if held else None
    entry = HistoryEntry(NOW, user_id, action, status, until)
    return Booking(booking_id(user_id), slot_id, user_id, (entry,))


def full_slot(slot_id: SlotId, **facts: object) -> SlotState:
    """Return a slot with four bookings, of which one is a hold, and four waitlist entries."""
    made = tuple(booking(slot_id, user_id, held=user_id == DAN) for user_id in USERS[:4])
    entries = tuple(
        WaitlistEntry(WaitlistEntryId(f"c{user_id[1:]}"), slot_id, user_id, NOW)
        for user_id in USERS[4:]
    )
    lists = {"bookings": made, "waitlist": entries}
    return build_slot(4, id=slot_id, booked_count=4, **lists, **facts)


async def store(database: Database, full: SlotState) -> SlotId:
    """Insert a slot with its bookings and its waitlist."""
    await insert_new_slots(database, replace(full, bookings=(), waitlist=(), booked_count=0))
    lists = {
        "bookings": [booking_to_subdocument(each) for each in full.bookings],
        "waitlist": [
            {"id": ObjectId(each.id), "user": ObjectId(each.user_id), "since": each.since}
            for each in full.waitlist
        ],
    }
    counts = {"remaining": full.remaining}
    await database["slots"].update_one({"_id": ObjectId(full.id)}, {"$set": lists | counts})
    return full.id


@pytest.fixture
async def stored(servers: EmbeddedServers) -> AsyncIterator[Stored]:
    """Yield a plain slot, one that limits groups, and one with a single place."""
    client, database = connect(database_url(servers, f"shared{ObjectId()}"))
    limits = (GroupLimit("class:*", 1),)
    plain, grouped = full_slot(new_slot_id()), full_slot(new_slot_id(), group_limits=limits)
    single = with_facts(full_slot(new_slot_id()), capacity=1)
    single = replace(single, booked_count=1, bookings=single.bookings[:1])
    try:
        yield Stored(database, *[await store(database, each) for each in (plain, grouped, single)])
    finally:
        await client.drop_database(database.name)
        await client.close()


def user_ids_in(found: SlotState) -> set[UserId]:
    """Return the users of the loaded bookings and waitlist entries."""
    return {booking.user_id for booking in found.bookings} | {
        entry.user_id for entry in found.waitlist
    }


async def test_each_caller_gets_what_its_query_alone_would_have_returned(stored: Stored) -> None:
    slots = SlotRepository(stored.database)
    alone = [await slots.find(query) for query in stored.queries]
    together = await asyncio.gather(*map(slots.find, stored.queries))
    assert together == alone
    assert len({str(found) for found in alone}) == len(stored.queries)  # they do differ


async def test_no_caller_gets_the_bookings_and_waitlist_entries_of_another(stored: Stored) -> None:
    slots = SlotRepository(stored.database)
    queries = [SlotQuery(stored.plain_id, NOW, [user_id], waitlist_depth=0) for user_id in USERS]
    for user_id, found in zip(USERS, await asyncio.gather(*map(slots.find, queries)), strict=True):
        assert found is not None
        assert user_ids_in(found) == {user_id}


async def test_control_without_the_cut_a_caller_gets_the_rows_of_others(
    stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SharedSlot, "part_for", lambda self, _: self._slot)
    slots = SlotRepository(stored.database)
    queries = [SlotQuery(stored.plain_id, NOW, [user_id], waitlist_depth=0) for user_id in USERS]
    found, *_ = await asyncio.gather(*map(slots.find, queries))
    assert found is not None
    assert user_ids_in(found) == set(USERS)


async def contexts(stored: Stored) -> tuple[list[UserContexts], list[UserContexts]]:
    """Load contexts one by one and together, for users with bookings in two kinds of slots."""
    loader = UserContextLoader(stored.database)
    week = [full_slot(new_slot_id(), choice_group="week") for _ in range(2)]
    day = full_slot(new_slot_id(), choice_group="day")
    for full in (*week, day):
        await store(stored.database, full)
    grouped = full_slot(stored.grouped_id, group_limits=(GroupLimit("class:*", 1),))
    await stored.database["users"].insert_many(
        [{"_id": ObjectId(user), "email": user, "groups": ["class:5a"]} for user in USERS]
    )
    await stored.database["user_versions"].insert_many(
        [{"_id": ObjectId(user_id), "version": 3} for user_id in USERS]
    )
    queries = [({ADA}, week[0]), ({BEN, CLEO}, day), ({ADA, DAN}, grouped), ({EVE}, day)]
    alone = [await loader.load(user_ids, [each.slot], NOW) for user_ids, each in queries]
    together = await asyncio.gather(*(loader.load(ids, [each.slot], NOW) for ids, each in queries))
    return alone, together


async def test_each_decision_gets_the_contexts_of_its_own_users_only(stored: Stored) -> None:
    alone, together = await contexts(stored)
    assert together == alone
    found = [users.by_user for users in together]
    assert [set(by_user) for by_user in found] == [{ADA}, {BEN, CLEO}, {ADA, DAN}, {EVE}]
    assert {other.slot.choice_group for other in found[0][ADA].bookings} == {"week"}
    assert {other.slot.choice_group for other in found[1][BEN].bookings} == {"day"}
    assert found[2][ADA] == UserContext(ADA, ("class:5a",))


async def test_control_without_the_cut_a_decision_gets_the_contexts_of_all(
    stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ContextQuery, "part_of", lambda _, shared: dict(shared))
    alone, together = await contexts(stored)
    assert together != alone
    assert set(together[0].by_user) == {ADA, BEN, CLEO, DAN, EVE}


async def test_guardians_who_ask_at_once_get_only_their_own_dependents(stored: Stored) -> None:
    children = {"Zoe": [ADA], "Mia": [ADA, BEN], "Kim": [BEN]}
    for name, guardians in children.items():
        child = to_new_document(name, f"child {name}", Role.MEMBER, None, NOW)
        ids = [ObjectId(each) for each in guardians]
        await stored.database["users"].insert_one({**child, "guardians": ids})
    users = Repositories(stored.database).users
    families = [{ADA}, {BEN}, {ADA, BEN}, {CLEO}]
    together = await asyncio.gather(*map(users.find_dependents, families))
    assert together == [await users.find_dependents(each) for each in families]
    names = [[each.name for each in found] for found in together]
    assert names == [["Mia", "Zoe"], ["Kim", "Mia"], ["Kim", "Mia", "Zoe"], []]
