"""The lock on a real Redis: exclusive, owned, and gone when nobody holds it."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from slotlock.api.embedded import Servers
from slotlock.domain.slots import SlotId
from slotlock.stores.locks import LOCK_TTL_MS, Locks
from slotlock.stores.redis import RedisLine, redis_client
from slotlock.stores.slots import new_slot_id

CANCELLATIONS = 10_000


@pytest.fixture
async def line(servers: Servers) -> AsyncIterator[RedisLine]:
    """A line to the Redis of the tests."""
    opened = RedisLine(redis_client(servers.redis_url))
    try:
        yield opened
    finally:
        await opened.close()


async def ttl(line: RedisLine, slot_id: SlotId) -> int:
    """What is left of a lock, in ms; -2 when there is none."""
    return int(await line.send("PTTL", f"slotlock:{{{slot_id}}}:lock"))


async def test_of_many_who_ask_at_once_one_gets_the_lease(line: RedisLine) -> None:
    slot_id, offices = new_slot_id(), [Locks(line), Locks(line)]
    leases = await asyncio.gather(*(offices[n % 2].acquire(slot_id) for n in range(200)))
    assert len([lease for lease in leases if lease]) == 1


async def test_a_lease_lasts_ten_seconds_and_ends_with_its_release(line: RedisLine) -> None:
    slot_id, locks = new_slot_id(), Locks(line)
    lease = await locks.acquire(slot_id)
    assert lease is not None
    assert LOCK_TTL_MS - 2_000 < await ttl(line, slot_id) <= LOCK_TTL_MS
    await locks.release(lease)
    assert await ttl(line, slot_id) == -2


async def test_slots_do_not_wait_for_each_other(line: RedisLine) -> None:
    locks = Locks(line)
    leases = await asyncio.gather(*(locks.acquire(new_slot_id()) for _ in range(50)))
    assert all(leases)


async def test_acquisitions_cancelled_at_any_moment_leave_no_key(line: RedisLine) -> None:
    locks, chance = Locks(line), random.Random(20_301)
    slot_ids = [new_slot_id() for _ in range(CANCELLATIONS)]

    async def hold(slot_id: SlotId) -> None:
        lease = await locks.acquire(slot_id)
        assert lease is not None
        try:
            await asyncio.sleep(chance.random() / 1000)
        finally:
            await locks.release(lease)

    for start in range(0, CANCELLATIONS, 100):
        tasks = [asyncio.create_task(hold(slot_id)) for slot_id in slot_ids[start : start + 100]]
        for task in chance.sample(tasks, len(tasks)):
            if chance.random() < 0.2:
                await asyncio.sleep(chance.random() / 2000)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert await ttl(line, new_slot_id()) == -2  # whatever was in line has been sent by now
    left = [slot_id for slot_id in slot_ids if await ttl(line, slot_id) != -2]
    assert left == []
