"""Changes of several documents: everything is written, or nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from bson import ObjectId

from slotlock.domain.booking.rules.book import BookingRequest
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.slots.editing import edit
from slotlock.infrastructure.mongo import transactions
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord
from slotlock.infrastructure.mongo.ids import new_booking_id, new_campaign_id, new_slot_id
from slotlock.infrastructure.mongo.slots.write_set import (
    CampaignVersion,
    CommitResult,
    SlotWrite,
    WriteSet,
)
from tests.support.domain.builders import NOW, build_patch, build_slot
from tests.support.domain.campaign_builders import build_terms
from tests.support.domain.decisions import as_written, decide_move
from tests.support.polling import poll_until
from tests.support.stores.slot_store import (
    ADA,
    BEN,
    SlotStore,
    booking_update,
    cancel_update,
    decided_update,
    first_change_request,
)

RECORD = IdempotencyRecord("key", "request hash", None, NOW)


async def test_nothing_is_written_if_one_of_three_slots_has_another_version(
    store: SlotStore,
) -> None:
    ids = [(await store.insert_slot()).id for _ in range(3)]
    for slot_id in ids:
        await store.book(slot_id, ADA)
    updates = [cancel_update(await store.load(slot_id, ADA)) for slot_id in ids]
    await store.database["slots"].update_one({"_id": ObjectId(ids[2])}, {"$inc": {"version": 1}})
    changes = WriteSet(tuple(updates), idempotency_records=(RECORD,))
    assert await store.repositories.slot_writer.commit(changes) is CommitResult.CONFLICT
    rosters = [await store.load_roster(slot_id) for slot_id in ids]
    assert [slot.booked_count for slot in rosters] == [1, 1, 1]
    assert [slot.version for slot in rosters] == [2, 2, 3]
    assert await store.documents("ended_bookings") == []
    assert await store.documents("idempotency_records") == []


async def test_a_move_is_written_in_both_slots_or_in_none(store: SlotStore) -> None:
    old_id, new_id = (await store.insert_slot()).id, (await store.insert_slot()).id
    await store.book(old_id, ADA)
    old, new = await store.load(old_id, ADA), await store.load(new_id, ADA)
    request = BookingRequest(ADA, new_booking_id(), ADA)
    old_after, new_after, _ = decide_move(old, new, first_change_request(old), request, NOW)
    await store.book(new_id, BEN)
    result = await store.commit(
        SlotWrite(old, as_written(old, old_after, NOW)),
        SlotWrite(new, as_written(new, new_after, NOW)),
    )
    assert result is CommitResult.CONFLICT
    rosters = [await store.load_roster(slot_id) for slot_id in (old_id, new_id)]
    assert [slot.bookings[0].user_id for slot in rosters] == [ADA, BEN]


@asynccontextmanager
async def open_transaction(store: SlotStore, slot: SlotState) -> AsyncIterator[None]:
    """Occupy a slot with a transaction, as a process does that died in it."""
    async with store.database.client.start_session() as session:
        await session.start_transaction()
        by_id = {"_id": ObjectId(slot.id)}
        change = {"$set": {"title": "never stored"}}
        await store.database["slots"].update_one(by_id, change, session=session)
        yield
        await session.abort_transaction()


async def test_a_slot_that_cannot_be_written_does_not_delay_others(store: SlotStore) -> None:
    occupied, free = await store.insert_slot(), await store.insert_slot()
    async with open_transaction(store, occupied):
        waiting = asyncio.create_task(store.commit(booking_update(occupied, ADA)))
        await store.write(booking_update(free, ADA))
        assert not waiting.done()
    # The slot has a new version, so that the first write can no longer happen.
    assert await waiting is CommitResult.CONFLICT


async def test_a_transaction_on_a_slot_that_cannot_be_written_ends_as_a_conflict(
    store: SlotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    occupied, writer = await store.insert_slot(), store.repositories.slot_writer
    records = (replace(RECORD, record_id="other"),)
    changes = WriteSet((booking_update(occupied, ADA),), idempotency_records=records)
    async with open_transaction(store, occupied):
        with monkeypatch.context() as patch:
            patch.setattr(transactions, "OPERATION_TIMEOUT_MS", 2_000)
            assert await writer.commit(changes) is CommitResult.CONFLICT
    # On a machine that stalls for as long as a transaction may take, it conflicts again.
    await poll_until(
        lambda: writer.commit(changes),
        lambda result: result is CommitResult.WRITTEN,
        "the slot is written",
    )


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_a_number_that_another_transaction_gave_meanwhile_is_a_conflict(
    store: SlotStore, is_guarded: bool
) -> None:
    terms = await insert_campaign(store)
    slots = [build_slot(1, id=new_slot_id(), terms=terms, number="7") for _ in range(4)]
    version = CampaignVersion(terms.campaign_id, 1, ("7",) if is_guarded else ())
    changes = [WriteSet((), new_slots=(slot,), preconditions=(version,)) for slot in slots]
    commit = store.repositories.slot_writer.commit
    results = await asyncio.gather(*map(commit, changes[:2]))
    results += [await commit(each) for each in changes[2:]]
    assert (results.count(CommitResult.WRITTEN) == 1) is is_guarded
    assert (len(await store.documents("slots")) == 1) is is_guarded


async def test_slots_can_exchange_their_numbers_in_one_transaction(store: SlotStore) -> None:
    terms = await insert_campaign(store)
    ids = [(await store.insert_slot(1, terms=terms, number=number)).id for number in ("7", "8")]
    seven, eight = [await store.load(slot_id) for slot_id in ids]
    patches = (seven, build_patch(number="8")), (eight, build_patch(number="7"))
    writes = tuple(decided_update(before, edit, patch, NOW) for before, patch in patches)
    version = CampaignVersion(terms.campaign_id, 1, ("7", "8"))
    commit = store.repositories.slot_writer.commit
    assert await commit(WriteSet(writes[:1], preconditions=(version,))) is CommitResult.CONFLICT
    assert await commit(WriteSet(writes, preconditions=(version,))) is CommitResult.WRITTEN
    assert [(await store.load(slot_id)).slot.number for slot_id in ids] == ["8", "7"]


async def insert_campaign(store: SlotStore) -> CampaignTerms:
    """Insert a campaign, and return its terms."""
    terms = replace(build_terms(), campaign_id=new_campaign_id())
    await store.repositories.campaigns.insert(Campaign(terms.campaign_id, "Spring", terms), NOW)
    return terms
