"""Commands that depend on a user or have an idempotency key share one transaction."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules.booking_changes import cancel
from slotlock.infrastructure.mongo.client import CommitUnknownError
from slotlock.infrastructure.mongo.slots.write_set import CommitResult, WriteSet
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.commands import group_commit
from slotlock.services.container import Services
from tests.support.stores.group_bookings import (
    CALLERS,
    add_campaign_slots,
    add_slots,
    book_each,
    book_one,
    count_bookings,
    services,
)

__all__ = ["services"]


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many slots each transaction updates, in a list that grows."""
    sizes: list[int] = []
    original_commit = SlotWriter._commit_transaction

    async def record(self: SlotWriter, changes: WriteSet, **options: bool) -> CommitResult:
        if changes.slot_writes:
            sizes.append(len(changes.slot_writes))
        return await original_commit(self, changes, **options)

    monkeypatch.setattr(SlotWriter, "_commit_transaction", record)
    return sizes


async def test_bookings_that_count_in_a_campaign_share_one_transaction(
    services: Services, commits: list[int]
) -> None:
    slot_ids = await add_campaign_slots(services)
    assert await book_each(services, slot_ids) == ["Booked"] * len(CALLERS)
    assert commits == [len(CALLERS)]
    assert await count_bookings(services, slot_ids) == len(CALLERS)


@pytest.mark.parametrize("users", ["AAA", "ABA", "ABBA"])
async def test_a_user_who_books_several_slots_at_once_gets_as_many_as_the_campaign_allows(
    services: Services, users: str
) -> None:
    slot_ids = await add_campaign_slots(services, len(users))
    outcomes = await book_each(services, slot_ids, [CALLERS["AB".index(user)] for user in users])
    assert Counter(outcomes)["Booked"] == len(set(users))
    assert await count_bookings(services, slot_ids) == len(set(users))


async def test_control_if_a_group_books_twice_for_a_user_the_limit_does_not_hold(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "without_overlaps", lambda _, decided: decided)
    slot_ids = await add_campaign_slots(services, 3)
    await book_each(services, slot_ids, [CALLERS[0]] * 3)
    assert await count_bookings(services, slot_ids) == 3


async def test_bookings_with_idempotency_keys_share_one_transaction_and_replay(
    services: Services, commits: list[int]
) -> None:
    slot_ids = await add_slots(services)
    assert await book_each(services, slot_ids, key="k" * 16) == ["Booked"] * len(CALLERS)
    assert await book_each(services, slot_ids, key="k" * 16) == ["Booked"] * len(CALLERS)
    assert commits == [len(CALLERS)]
    assert await count_bookings(services, slot_ids) == len(CALLERS)


async def test_cancellations_of_different_slots_share_one_transaction(
    services: Services, commits: list[int]
) -> None:
    slot_ids = await add_campaign_slots(services)
    booked = await asyncio.gather(*map(book_one, [services] * len(CALLERS), CALLERS, slot_ids))
    outcomes = [result.outcome for result in booked]
    requests = [
        BookingChangeRequest(slot_id, outcome.booking.id, caller)
        for slot_id, caller, outcome in zip(slot_ids, CALLERS, outcomes, strict=True)
        if isinstance(outcome, Booked)
    ]
    cancelled = await asyncio.gather(
        *(change_booking(services, cancel, request) for request in requests)
    )
    assert {type(result.outcome).__name__ for result in cancelled} == {"BookingCancelled"}
    assert commits == [len(CALLERS)] * 2
    assert await count_bookings(services, slot_ids) == 0


async def test_a_slot_that_another_writer_changed_leaves_its_neighbors_booked(
    services: Services, commits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_ids = await add_campaign_slots(services)
    original_commit = SlotWriter.commit_group

    async def commit_stale(self: SlotWriter, changes: WriteSet) -> CommitResult:
        first, *others = changes.slot_writes
        stale = replace(first, before=replace(first.before, version=0))
        return await original_commit(self, replace(changes, slot_writes=(stale, *others)))

    monkeypatch.setattr(SlotWriter, "commit_group", commit_stale)
    assert await book_each(services, slot_ids) == ["Booked"] * len(CALLERS)
    assert commits == [len(CALLERS), *[1] * len(CALLERS)]
    assert await count_bookings(services, slot_ids) == len(CALLERS)


async def test_a_transaction_that_is_not_confirmed_fails_its_own_callers_only(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, limited = await add_slots(services, 10), await add_campaign_slots(services, 10)

    async def commit(_self: SlotWriter, _changes: WriteSet) -> CommitResult:
        return CommitResult.UNKNOWN

    monkeypatch.setattr(SlotWriter, "commit_group", commit)
    outcomes = await book_each(services, [*plain, *limited])
    assert outcomes == ["Booked"] * 10 + [CommitUnknownError.__name__] * 10
    await services.locks.wait_for_releases()
    assert not services.caller_queues._queues


async def test_a_transaction_that_fails_is_repeated_slot_by_slot(
    services: Services, commits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_ids = await add_campaign_slots(services)
    original_write = SlotWriter._write_all

    async def write(self: SlotWriter, changes: WriteSet, *rest: object) -> None:
        if len(changes.slot_writes) > 1:
            raise ZeroDivisionError
        await original_write(self, changes, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(SlotWriter, "_write_all", write)
    assert await book_each(services, slot_ids) == ["Booked"] * len(CALLERS)
    assert commits == [len(CALLERS), *[1] * len(CALLERS)]


async def test_a_slot_that_another_transaction_is_writing_does_not_delay_its_neighbors(
    services: Services,
) -> None:
    slot_ids = await add_campaign_slots(services)
    slots = services.slot_writer._slots
    async with slots.database.client.start_session() as session, await session.start_transaction():
        by_id = {"_id": ObjectId(slot_ids[0])}
        await slots.update_one(by_id, {"$inc": {"version": 1}}, session=session)
        tasks = [
            asyncio.create_task(book_one(services, caller, slot_id))
            for caller, slot_id in zip(CALLERS, slot_ids, strict=True)
        ]
        results = await asyncio.gather(*tasks[1:])
        assert {type(result.outcome).__name__ for result in results} == {"Booked"}
        assert not tasks[0].done()
        await session.abort_transaction()
    assert isinstance((await tasks[0]).outcome, Booked)
