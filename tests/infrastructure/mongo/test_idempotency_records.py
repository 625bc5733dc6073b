"""Answers kept under keys: what is told again is exactly what was told, once a key."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.book import BookingRequest, SlotClaim, book
from slotlock.domain.booking.booking import BookingId, SlotId, WaitlistEntry
from slotlock.domain.booking.changes import BookingCommand, cancel, confirm, extend
from slotlock.domain.booking.promotion import expire_and_promote, next_version
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.waitlist import join
from slotlock.domain.slots.editing import edit
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.client import Database, Document, connect
from slotlock.infrastructure.mongo.idempotency_records import (
    IdempotencyRecord,
    IdempotencyRecords,
    record_to_document,
)
from slotlock.infrastructure.mongo.ids import new_booking_id, new_slot_id, new_waitlist_entry_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, SlotUpdate, check_written
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW, build_slot
from tests.support.domain.decisions import decide, decide_all, decide_move
from tests.support.stores.slots import insert_new_slots

ADA, BEN, EVE = UserId("a" * 24), UserId("b" * 24), UserId("e" * 24)
LATER = NOW + timedelta(minutes=1)


@pytest.fixture
async def database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """A database of a test's own."""
    client, database = connect(database_url(servers, f"answers{ObjectId()}"))
    try:
        await IdempotencyRecords(database).create_indexes()
        yield database
    finally:
        await client.drop_database(database.name)
        await client.close()


def party(user_id: UserId, hold: bool = False, organized: bool = False) -> BookingRequest:
    """Somebody who is to have a place."""
    return BookingRequest(user_id, new_booking_id(), EVE if organized else user_id, hold, organized)


def ask(booking_id: BookingId) -> BookingCommand:
    """An organizer who asks about a booking."""
    return BookingCommand(booking_id, Caller(EVE, Role.ORGANIZER, "session", NOW))


def granted() -> list[Any]:
    """One of every outcome that changes something, with all that the rules can put into it."""
    return list(_granted())


def _granted() -> Iterator[Any]:
    new = build_slot(
        2,
        id=new_slot_id(),
        location="Sala 3 · 瑜伽",
        waitlist_offer_minutes=5,
        cancel_cutoff_minutes=2000,
    )
    held, booked = decide(book, new, party(ADA, hold=True, organized=True), NOW)
    yield booked
    hold = held.bookings[0].id
    longer, extended = decide(extend, held, ask(hold), LATER)
    yield extended
    for_good, confirmed = decide(confirm, longer, ask(hold), LATER)
    yield confirmed
    yield decide(cancel, for_good, ask(hold), LATER)[1]  # after the cut-off, which is named
    other = build_slot(id=new_slot_id())
    yield decide_move(for_good, other, ask(hold), party(ADA, organized=True), LATER)[2]
    claims = [SlotClaim(id_, party(BEN)) for id_ in (for_good.id, other.id)]
    both, all_booked = decide_all({for_good.id: for_good, other.id: other}, claims, NOW)
    yield all_booked
    full = both[for_good.id]
    line, _ = decide(join, full, WaitlistEntry(new_waitlist_entry_id(), full.id, EVE, NOW), NOW)
    raised, _ = decide(edit, replace(line, loaded_waitlist=1), {"capacity": 3})
    offered = expire_and_promote(raised, LATER)  # a booking that waited, made by nobody
    yield decide(confirm, offered, ask(offered.bookings[-1].id), LATER)[1]


@pytest.mark.parametrize("outcome", granted(), ids=lambda outcome: type(outcome).__name__)
async def test_what_was_granted_is_told_again_exactly(database: Database, outcome: Any) -> None:
    answer = IdempotencyRecord("key", "print", outcome, NOW)
    await database["idempotency_records"].insert_one(record_to_document(answer))
    assert await IdempotencyRecords(database).find("key") == answer


def test_nothing_that_can_be_granted_under_a_key_is_left_out() -> None:
    promised = {"Booked", "AllBooked", "BookingConfirmed", "HoldExtended", "BookingCancelled"}
    assert promised | {"BookingMoved"} <= {type(outcome).__name__ for outcome in granted()}


def grown(value: Any) -> Any:
    """A kept value as a later version may keep it, with more in every part."""
    if isinstance(value, list):
        return [grown(each) for each in value]
    if not isinstance(value, dict) or "_type" not in value:
        return value
    more = {} if "_value" in value else {"ofLater": {"_type": "Unheard", "of": [1]}}
    return {name: grown(each) for name, each in value.items()} | more


async def test_what_a_later_version_keeps_besides_is_left_out(database: Database) -> None:
    answers = [IdempotencyRecord(f"key{n}", "print", each, NOW) for n, each in enumerate(granted())]
    documents: list[Document] = []
    for answer in answers:
        document = record_to_document(answer)
        documents.append({**document, "outcome": grown(document["outcome"]), "more": 1})
    await database["idempotency_records"].insert_many(documents)
    found = IdempotencyRecords(database)
    assert await asyncio.gather(*(found.find(each.record_id) for each in answers)) == answers


async def test_what_an_earlier_version_did_not_keep_has_its_default(database: Database) -> None:
    outcome = granted()[0]
    document = record_to_document(IdempotencyRecord("key", "print", outcome, NOW))
    del document["outcome"]["slot"]["waitlist_offer_minutes"]
    await database["idempotency_records"].insert_one(document)
    found = await IdempotencyRecords(database).find("key")
    assert found is not None
    older_slot = replace(outcome.slot, waitlist_offer_minutes=None)
    assert found.outcome == replace(outcome, slot=older_slot)


async def test_an_answer_is_kept_for_a_day_at_least_and_not_for_ever(database: Database) -> None:
    indexes = [index async for index in await database["idempotency_records"].list_indexes()]
    (forgets,) = [index for index in indexes if "expireAfterSeconds" in index]
    assert list(forgets["key"]) == ["at"]
    assert 24 * 3600 <= forgets["expireAfterSeconds"] <= 7 * 24 * 3600
    await database["idempotency_records"].insert_one(
        record_to_document(IdempotencyRecord("key", "print", None, NOW))
    )
    stored = await database["idempotency_records"].find_one()
    assert stored is not None
    assert stored["at"] == NOW  # a date, which alone the index forgets by


async def test_a_key_that_nobody_sent_has_no_answer(database: Database) -> None:
    assert await IdempotencyRecords(database).find("key") is None


async def decided(database: Database) -> tuple[SlotId, SlotUpdate]:
    """A booking to be written to a new slot."""
    before = build_slot(id=new_slot_id())
    await insert_new_slots(database, before)
    after, _ = decide(book, before, party(ADA), NOW)
    return before.id, SlotUpdate(before, next_version(before, after, NOW))


async def taken(slots: SlotRepository, slot_id: SlotId) -> int:
    """The places that were given."""
    found: Slot | None = await slots.find_with_roster(slot_id)
    assert found is not None
    return found.booked_count


async def test_a_key_that_was_answered_meanwhile_lets_nothing_be_written(
    database: Database,
) -> None:
    slots = SlotRepository(database)
    writes = SlotWriter(database)
    first = IdempotencyRecord("key", "print", None, NOW)
    (one, change), (other, again) = await decided(database), await decided(database)
    assert check_written(await writes.commit(ChangeSet((change,), (first,))))
    assert not check_written(
        await writes.commit(ChangeSet((again,), (replace(first, request_hash="other"),)))
    )
    assert (await taken(slots, one), await taken(slots, other)) == (1, 0)
    assert await IdempotencyRecords(database).find("key") == first


async def test_of_two_who_send_one_key_at_once_one_is_written(database: Database) -> None:
    slots = SlotRepository(database)
    writes = SlotWriter(database)
    answers = (IdempotencyRecord("key", "print", None, NOW),)
    (one, change), (other, again) = await decided(database), await decided(database)
    both = (writes.commit(ChangeSet((each,), answers)) for each in (change, again))
    made = [check_written(result) for result in await asyncio.gather(*both)]
    assert sorted(made) == [False, True]
    assert [await taken(slots, one), await taken(slots, other)] == [int(each) for each in made]
