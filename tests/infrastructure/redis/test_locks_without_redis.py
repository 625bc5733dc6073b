"""The lock while Redis is away, and when it comes back or another server takes over."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks.leases import InProcessLease, RedisLease
from slotlock.infrastructure.redis.locks.locks import Locks
from tests.support.apps.redis_topologies import sentinel_topology
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import (
    acquire_lease,
    open_lock_node,
    start_waiter,
    stored_lock,
    waiter_count,
)


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[RestartableServer]:
    """A server to harm."""
    with restartable_server(tmp_path / "valkey", "valkey") as server:
        yield server


@pytest.fixture
async def locks(valkey: RestartableServer) -> AsyncIterator[Locks]:
    """An office at it."""
    async with open_lock_node(valkey.url) as opened:
        yield opened


async def away(locks: Locks, valkey: RestartableServer) -> None:
    """Let Redis die, and be noticed."""
    valkey.kill()
    assert not await locks.pipeline.check()


async def back(locks: Locks) -> None:
    """Wait until the line is in use again."""

    async def is_back() -> bool:
        return not locks.pipeline.is_unavailable

    await eventually(is_back, "Redis is in use again")


async def serve_all(locks: Locks, people: list[asyncio.Task[int]]) -> list[int]:
    """Everybody's number, in the order they were served."""
    return [await done for done in asyncio.as_completed(people, timeout=20)]


async def serve(locks: Locks, slot_id: str, n: int) -> int:
    """Wait for a turn that only this process knows, and pass it on."""
    lease = await acquire_lease(locks, slot_id, wait_s=20)
    assert isinstance(lease, InProcessLease)
    await locks.release(lease)
    return n


async def test_without_redis_a_lease_is_this_process_own_and_those_who_wait_are_served_in_order(
    locks: Locks, valkey: RestartableServer
) -> None:
    slot_id = new_slot_id()
    await away(locks, valkey)
    lease = await acquire_lease(locks, slot_id)
    assert isinstance(lease, InProcessLease)
    assert await locks.acquire(slot_id) is None
    assert await locks.acquire(slot_id, wait_s=0.01) is None
    people = [asyncio.create_task(serve(locks, slot_id, n)) for n in range(10)]
    await asyncio.sleep(0)
    people[3].cancel()
    await locks.release(lease)
    del people[3]
    assert await serve_all(locks, people) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert (await acquire_lease(locks, slot_id)).fencing_token > lease.fencing_token


async def test_those_in_line_are_served_in_their_order_when_redis_goes_away(
    locks: Locks, valkey: RestartableServer
) -> None:
    slot_id = new_slot_id()
    await acquire_lease(locks, slot_id)
    people = []
    for n in range(5):
        people.append(asyncio.create_task(serve(locks, slot_id, n)))
        await asyncio.sleep(0)
    while await waiter_count(locks, slot_id) < len(people):
        await asyncio.sleep(0.005)
    await away(locks, valkey)
    assert await serve_all(locks, people) == list(range(5))


async def test_a_lease_on_several_slots_is_rolled_back_without_redis_too(
    locks: Locks, valkey: RestartableServer
) -> None:
    first, second = new_slot_id(), new_slot_id()
    await away(locks, valkey)
    lease = await acquire_lease(locks, second)
    assert await locks.acquire(first, second) is None
    assert await locks.acquire(first, second, wait_s=0.01) is None
    await locks.release(await acquire_lease(locks, first))
    await locks.release(lease)
    assert (await acquire_lease(locks, first, second)).names == (first, second)


async def test_what_could_not_be_released_is_released_when_a_hung_redis_goes_on(
    locks: Locks, valkey: RestartableServer
) -> None:
    held_ones = [await acquire_lease(locks, new_slot_id()) for _ in range(5)]
    waits_for = held_ones[-1].names[0]
    waiter = await start_waiter(locks, waits_for)
    valkey.pause()
    waiter.cancel()
    for lease in held_ones[:-1]:
        await locks.release(lease)
    valkey.resume()
    await back(locks)
    for lease in held_ones[:-1]:

        async def free(slot_id: str = lease.names[0]) -> bool:
            return await stored_lock(locks, slot_id) is None

        await eventually(free, "what was owed is released")
    assert await waiter_count(locks, waits_for) == 0


async def test_who_holds_a_lease_longer_than_redis_would_keep_it_is_told(
    valkey: RestartableServer,
) -> None:
    async with open_lock_node(valkey.url, ttl_ms=300) as locks:
        lease = await acquire_lease(locks, new_slot_id())
        valkey.kill()
        await asyncio.wait_for(lease.lost.wait(), 10)


async def test_the_lock_goes_on_by_itself_when_sentinel_names_another_master(
    tmp_path: Path,
) -> None:
    with sentinel_topology(tmp_path, replicas=1) as fleet:
        async with open_lock_node(fleet.url) as one, open_lock_node(fleet.url) as other:
            slot_id = new_slot_id()
            first = await acquire_lease(one, slot_id)
            await one.release(first)
            fleet.nodes[0].process.kill()
            assert not await one.pipeline.check()
            assert not await other.pipeline.check()
            await back(one)
            await back(other)
            lease = await acquire_lease(one, slot_id)
            assert isinstance(lease, RedisLease)
            assert lease.fencing_token > first.fencing_token
            assert b"master" in fleet.nodes[1].run_command("ROLE").encode()
            stored = fleet.nodes[1].run_command(f"GET {lock_keys(slot_id).lock}")
            assert stored.startswith(lease.token)
            turn = await start_waiter(other, slot_id)
            await one.release(lease)
            assert await asyncio.wait_for(turn, 10)
