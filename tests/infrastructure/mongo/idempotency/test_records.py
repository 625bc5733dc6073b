"""Idempotency records: the outcome is read back unchanged, and a key has one record."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from slotlock.domain.booking.booking import Booking, MadeAs, WaitlistEntry
from slotlock.domain.booking.decision import BookingChangeRequest, CommandResult, LoadedState
from slotlock.domain.booking.rules.book import BookingRequest, SlotClaim, book
from slotlock.domain.booking.rules.booking_changes import (
    cancel,
    confirm,
    extend,
)
from slotlock.domain.booking.rules.waitlist import join
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.slots.editing import edit
from slotlock.domain.users.user import Role, UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.idempotency.codec import TYPE_FIELD, VALUE_FIELD
from slotlock.infrastructure.mongo.idempotency.records import (
    IdempotencyRecord,
    IdempotencyRecords,
    records_to_documents,
)
from slotlock.infrastructure.mongo.ids import new_booking_id, new_slot_id, new_waitlist_entry_id
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, WriteSet
from slotlock.services.commands.slot_redaction import redacted_slots
from tests.support.domain.builders import NOW, build_patch, build_slot, change_request, with_facts
from tests.support.domain.decisions import decide, decide_all, decide_move, expire_and_promote
from tests.support.stores.slot_store import ADA, BEN, ORGANIZER, SlotStore, booking_update

LATER = NOW + timedelta(minutes=1)
RECORD = IdempotencyRecord("key", "request hash", None, NOW)


@pytest.fixture
def database(store: SlotStore) -> Database:
    """Return a new database."""
    return store.database


@pytest.fixture
def records(store: SlotStore) -> IdempotencyRecords:
    """Return the idempotency records in this database."""
    return store.repositories.idempotency_records


def booking_request(
    user_id: UserId, *, hold: bool = False, by_organizer: bool = False
) -> BookingRequest:
    """Return a request of a user, or of an organizer for the user."""
    if by_organizer:
        made_as = MadeAs.ORGANIZER
        return BookingRequest(user_id, new_booking_id(), ORGANIZER, hold, made_as=made_as)
    return BookingRequest(user_id, new_booking_id(), user_id, hold)


def organizer_request(booking: Booking) -> BookingChangeRequest:
    """Return a request of an organizer to change a booking."""
    return change_request(booking, ORGANIZER, Role.ORGANIZER)


def record_of(outcome: object, *slots: SlotState) -> IdempotencyRecord:
    """Return the record of an outcome with the slots that it shows, as users see them."""
    result = CommandResult(outcome, {slot.id: slot for slot in slots})
    shown = redacted_slots(result, (ADA, BEN, ORGANIZER))
    return replace(RECORD, outcome=outcome, slots=shown)


def accepted_records() -> list[IdempotencyRecord]:
    """Return a record of each kind of outcome that changes something, with all that rules add."""
    return list(_accepted_records())


def _accepted_records() -> Iterator[IdempotencyRecord]:
    new = build_slot(
        2,
        id=new_slot_id(),
        location="Sala 3 · 瑜伽",
        waitlist_offer_minutes=5,
        cancel_cutoff_minutes=2000,
    )
    held, booked = decide(book, new, booking_request(ADA, hold=True, by_organizer=True), NOW)
    yield record_of(booked, held)
    command = organizer_request(held.bookings[0])
    longer, extended = decide(extend, held, command, LATER)
    yield record_of(extended, longer)
    definite, confirmed = decide(confirm, longer, command, LATER)
    yield record_of(confirmed, definite)
    # After the cutoff, which is overridden.
    given_back, cancelled = decide(cancel, definite, command, LATER)
    yield record_of(cancelled, given_back)
    other = build_slot(id=new_slot_id())
    request = booking_request(ADA, by_organizer=True)
    left, entered, moved = decide_move(definite, other, command, request, LATER)
    yield record_of(moved, left, entered)
    claims = [SlotClaim(id_, booking_request(BEN)) for id_ in (definite.id, other.id)]
    loaded = LoadedState({definite.id: definite, other.id: other})
    both, all_booked = decide_all(loaded, claims, NOW)
    yield record_of(all_booked, *both.values())
    full = both[definite.id]
    entry = WaitlistEntry(new_waitlist_entry_id(), full.id, ORGANIZER, NOW)
    waiting, _ = decide(join, full, entry, NOW)
    larger, _ = decide(edit, replace(waiting, loaded_waitlist=1), build_patch(capacity=3), NOW)
    offered = expire_and_promote(larger, LATER)  # a booking that the system made
    command = organizer_request(offered.bookings[-1])
    accepted, confirmed = decide(confirm, offered, command, LATER)
    yield record_of(confirmed, accepted)


@pytest.mark.parametrize(
    "record", accepted_records(), ids=lambda record: type(record.outcome).__name__
)
async def test_an_outcome_is_read_back_with_its_slots_as_it_was_stored(
    database: Database, records: IdempotencyRecords, record: IdempotencyRecord
) -> None:
    assert record.slots
    await database["idempotency_records"].insert_one(records_to_documents([record])[0])
    assert await records.find("key") == record


def test_the_test_above_covers_every_outcome_that_a_key_can_have() -> None:
    expected = {"Booked", "AllBooked", "BookingConfirmed", "HoldExtended", "BookingCancelled"}
    covered = {type(record.outcome).__name__ for record in accepted_records()}
    assert expected | {"BookingMoved"} <= covered


def with_unknown_fields(value: Any) -> Any:
    """Return a stored value as a later version may store it, with another field in every part."""
    if isinstance(value, list):
        return [with_unknown_fields(each) for each in value]
    if not isinstance(value, dict) or TYPE_FIELD not in value:
        return value
    unknown = {TYPE_FIELD: "TypeOfALaterVersion", "field": [1]}
    more = {} if VALUE_FIELD in value else {"fieldOfALaterVersion": unknown}
    return {name: with_unknown_fields(each) for name, each in value.items()} | more


async def test_fields_of_a_later_version_are_ignored(
    database: Database, records: IdempotencyRecords
) -> None:
    stored = [
        replace(record, record_id=f"key {number}")
        for number, record in enumerate(accepted_records())
    ]
    documents: list[Document] = []
    for record in stored:
        document = records_to_documents([record])[0]
        parts = {name: with_unknown_fields(document[name]) for name in ("outcome", "slots")}
        documents.append({**document, **parts, "fieldOfALaterVersion": 1})
    await database["idempotency_records"].insert_many(documents)
    assert await asyncio.gather(*(records.find(each.record_id) for each in stored)) == stored


async def test_a_field_that_an_earlier_version_did_not_store_has_its_default(
    database: Database, records: IdempotencyRecords
) -> None:
    record = accepted_records()[0]
    document = records_to_documents([record])[0]
    del document["slots"][0]["slot"]["waitlist_offer_minutes"]
    await database["idempotency_records"].insert_one(document)
    found = await records.find("key")
    assert found is not None
    assert found.outcome == record.outcome
    (stored,) = record.slots
    assert stored.slot.waitlist_offer_minutes is not None
    assert found.slots == (with_facts(stored, waitlist_offer_minutes=None),)


async def test_a_record_is_stored_for_at_least_a_day_and_not_for_ever(
    database: Database,
) -> None:
    indexes = await database["idempotency_records"].list_indexes()
    (expiry,) = [each async for each in indexes if "expireAfterSeconds" in each]
    assert list(expiry["key"]) == ["at"]
    assert 24 * 3600 <= expiry["expireAfterSeconds"] <= 7 * 24 * 3600
    await database["idempotency_records"].insert_one(records_to_documents([RECORD])[0])
    document = await database["idempotency_records"].find_one()
    assert document is not None
    assert document["at"] == NOW  # a date: the index ignores every other type


async def test_a_key_that_was_never_sent_has_no_record(records: IdempotencyRecords) -> None:
    assert await records.find("key") is None


async def test_a_change_under_a_key_with_a_record_is_not_written(
    store: SlotStore, records: IdempotencyRecords
) -> None:
    first, second = await store.insert_slot(), await store.insert_slot()
    writer = store.repositories.slot_writer
    changes = WriteSet((booking_update(first, ADA),), idempotency_records=(RECORD,))
    assert await writer.commit(changes) is CommitResult.WRITTEN
    other_request = replace(RECORD, request_hash="other")
    changes = WriteSet((booking_update(second, ADA),), idempotency_records=(other_request,))
    assert await writer.commit(changes) is CommitResult.CONFLICT
    counts = [(await store.load_roster(slot.id)).booked_count for slot in (first, second)]
    assert counts == [1, 0]
    assert await records.find("key") == RECORD


async def test_one_of_two_concurrent_changes_under_one_key_is_written(store: SlotStore) -> None:
    slots = [await store.insert_slot(), await store.insert_slot()]
    writer = store.repositories.slot_writer
    changes = [
        WriteSet((booking_update(slot, ADA),), idempotency_records=(RECORD,)) for slot in slots
    ]
    results = await asyncio.gather(*map(writer.commit, changes))
    assert set(results) == {CommitResult.WRITTEN, CommitResult.CONFLICT}
    counts = [(await store.load_roster(slot.id)).booked_count for slot in slots]
    assert counts == [int(result is CommitResult.WRITTEN) for result in results]
