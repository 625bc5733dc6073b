"""Requests that come together lock their idempotency keys together, and each leaves by itself."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack

import pytest
from pymongo.errors import AutoReconnect

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.mongo.client import CommitUnknownError, Document
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecords
from slotlock.infrastructure.mongo.slots import writer
from slotlock.infrastructure.mongo.slots.write_set import WriteSet, inserts_of
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, Reply
from slotlock.infrastructure.redis.keys import IDEMPOTENCY_LOCK_PREFIX, idempotency_lock, lock_keys
from slotlock.infrastructure.redis.locks.redis_locks import RedisLocks
from slotlock.services.booking.book import BookingOptions, BookSlotCommand
from slotlock.services.commands import idempotency
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.key_locks import KeyHolder, KeyLocks
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW
from tests.support.model.service_pair import ManualClock, PausableSlotWriter, open_services
from tests.support.stores.group_bookings import (
    CALLERS,
    add_slots,
    book_each,
    book_one,
    count_bookings,
    services,
)
from tests.support.stores.lock_nodes import open_lock_node

__all__ = ["services"]

ADA, BEN = CALLERS[:2]
# A lease is renewed after a third of it: a busy machine may hold up each step for 2 s.
SHORT_TTL_MS = 3_000


@pytest.fixture
async def other(servers: EmbeddedServers) -> AsyncIterator[Services]:
    """Yield the services of another process."""
    url = database_url(servers, "group_bookings")
    async with AsyncExitStack() as stack:
        yield await open_services(stack, url, servers.redis_url, ManualClock(NOW))


def key_of(caller: Caller, slot_id: SlotId, text: str) -> IdempotencyKey:
    """Return the key of a booking of this slot."""
    key = BookingOptions(key=text).to_idempotency_key(
        caller, BookSlotCommand.name, slot_id, caller.user_id
    )
    assert key is not None
    return key


async def is_locked(services: Services, key: IdempotencyKey) -> bool:
    """Return whether a key is locked after all releases that were requested."""
    await services.locks.wait_for_releases()
    return await services.locks.is_held(idempotency_lock(key.record_id))


async def test_one_command_locks_the_keys_of_requests_that_come_together_and_one_releases_them(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_ids, key_counts = await add_slots(services), list[int]()
    original_send = AutoPipeline.send

    def send(self: AutoPipeline, *command: str | bytes | int) -> asyncio.Future[Reply]:
        names = [part for part in command if str(part).endswith(":lock")]
        key_counts.append(sum(IDEMPOTENCY_LOCK_PREFIX in str(name) for name in names))
        return original_send(self, *command)

    monkeypatch.setattr(AutoPipeline, "send", send)
    assert await book_each(services, slot_ids, key=slot_ids[0]) == ["Booked"] * len(CALLERS)
    await services.locks.wait_for_releases()
    assert [count for count in key_counts if count] == [len(CALLERS)] * 2


async def test_the_outcome_of_a_written_booking_with_a_key_needs_no_other_read(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise AutoReconnect("the connection is lost")

    slot_ids = await add_slots(services, 1)
    monkeypatch.setattr(IdempotencyRecords, "find", fail)
    assert await book_each(services, slot_ids, [ADA], slot_ids[0]) == ["Booked"]


def pausing(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> tuple[asyncio.Event, asyncio.Event]:
    """Let the first call of a method pause after its end. Returns the events: reached, go on."""
    original: Callable[..., Awaitable[object]] = getattr(owner, name)
    reached, resumed = asyncio.Event(), asyncio.Event()

    async def pause(*arguments: object) -> object:
        result = await original(*arguments)
        if not reached.is_set():
            reached.set()
            await resumed.wait()
        return result

    monkeypatch.setattr(owner, name, pause)
    return reached, resumed


def leave_if_locked(self: KeyLocks, holder: KeyHolder) -> None:
    """Release only what is locked already."""
    if holder.lease is not None:
        self._locks.release_soon(holder.lease)


async def cancel_one_of_two(
    services: Services, reached: asyncio.Event, resumed: asyncio.Event
) -> tuple[SlotId, list[CommandResult[object]]]:
    """Cancel a request of a group at its pause. Returns its slot, and the result of the other."""
    slot_ids = await add_slots(services, 2)
    cancelled, remaining = [
        asyncio.create_task(book_one(services, caller, slot_id, slot_ids[0]))
        for caller, slot_id in zip((ADA, BEN), slot_ids, strict=True)
    ]
    await reached.wait()
    cancelled.cancel()
    await asyncio.wait([cancelled])
    resumed.set()
    return slot_ids[0], [await remaining]


@pytest.mark.parametrize(
    ("owner", "name"),
    [(RedisLocks, "acquire_each"), (IdempotencyRecords, "find_each")],
    ids=["while Redis grants the locks", "while MongoDB is read"],
)
async def test_a_request_that_is_cancelled_leaves_no_lock_and_delays_no_other(
    services: Services, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    slot_id, others = await cancel_one_of_two(services, *pausing(monkeypatch, owner, name))
    assert [type(each.outcome).__name__ for each in others] == ["Booked"]
    assert not await is_locked(services, key_of(ADA, slot_id, slot_id))
    assert await book_each(services, [slot_id], [ADA], slot_id) == ["Booked"]


async def test_control_a_group_that_does_not_know_who_left_leaves_a_lock(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KeyLocks, "leave", leave_if_locked)
    events = pausing(monkeypatch, RedisLocks, "acquire_each")
    slot_id, _ = await cancel_one_of_two(services, *events)
    assert await is_locked(services, key_of(ADA, slot_id, slot_id))


async def test_a_request_that_is_cancelled_before_its_group_begins_locks_nothing(
    services: Services,
) -> None:
    slot_ids = await add_slots(services, 2)
    requests = [
        asyncio.create_task(book_one(services, caller, slot_id, slot_ids[0]))
        for caller, slot_id in zip((ADA, BEN), slot_ids, strict=True)
    ]
    await asyncio.sleep(0)  # each has submitted its key
    requests[0].cancel()
    await asyncio.wait(requests)
    assert type(requests[1].result().outcome).__name__ == "Booked"
    assert not await is_locked(services, key_of(ADA, slot_ids[0], slot_ids[0]))


async def test_a_record_that_cannot_be_read_fails_its_own_request_only(services: Services) -> None:
    slot_ids = await add_slots(services, 2)
    key = key_of(ADA, slot_ids[0], slot_ids[0])
    records = services.slot_writer._database["idempotency_records"]
    await records.insert_one({"_id": key.record_id, "outcome": {"_type": "Unknown"}})
    outcomes = await book_each(services, slot_ids, [ADA, BEN], slot_ids[0])
    assert outcomes == ["KeyError", "Booked"]
    assert not await is_locked(services, key)


def inserts_without_records(changes: WriteSet) -> Iterator[tuple[str, list[Document]]]:
    """Yield what a change inserts, but for the records of keys."""
    return (each for each in inserts_of(changes) if each[0] != "idempotency_records")


@pytest.mark.parametrize("is_recorded", [True, False], ids=["guard on", "control"])
async def test_a_key_whose_lock_is_lost_has_one_effect(
    services: Services, other: Services, monkeypatch: pytest.MonkeyPatch, is_recorded: bool
) -> None:
    if not is_recorded:
        monkeypatch.setattr(writer, "inserts_of", inserts_without_records)
    slot_ids = await add_slots(services, 2)
    assert isinstance(services.slot_writer, PausableSlotWriter)
    reached = services.slot_writer.pause_next_commit()
    first = asyncio.create_task(book_each(services, slot_ids[:1], [ADA], slot_ids[0]))
    await reached.wait()
    key = key_of(ADA, slot_ids[0], slot_ids[0])
    assert await is_locked(other, key)
    await other.locks.pipeline.send("DEL", lock_keys(idempotency_lock(key.record_id)).lock)
    second = await book_each(other, slot_ids[1:], [ADA], slot_ids[0])
    services.slot_writer.resume_event.set()
    assert [await first, second] == [["KeyReused" if is_recorded else "Booked"], ["Booked"]]
    assert await count_bookings(services, slot_ids) == (1 if is_recorded else 2)


@pytest.mark.parametrize("is_dead", [True, False], ids=["killed", "control: alive"])
async def test_the_keys_of_a_process_that_was_killed_are_free_soon(
    servers: EmbeddedServers,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    is_dead: bool,
) -> None:
    # The control waits longer than a lease lasts that nobody renews.
    wait_s = 20.0 if is_dead else 1.3 * SHORT_TTL_MS / 1000
    monkeypatch.setattr(idempotency, "KEY_LOCK_TIMEOUT_S", wait_s)
    slot_ids = await add_slots(services, 2)
    async with open_lock_node(servers.redis_url, SHORT_TTL_MS) as node:
        locks = KeyLocks(node, services.idempotency_records, services.key_reservations)
        holders = [
            KeyHolder(key_of(caller, slot_id, slot_ids[0]))
            for caller, slot_id in zip((ADA, BEN), slot_ids, strict=True)
        ]
        await asyncio.gather(*map(locks.enter, holders))
        if is_dead:
            node._redis_locks._renewer.stop()
        outcomes = await book_each(services, slot_ids, [ADA, BEN], slot_ids[0])
        expected = "Booked" if is_dead else CommitUnknownError.__name__
        assert outcomes == [expected] * 2
        for holder in holders:
            locks.leave(holder)
        await node.wait_for_releases()
