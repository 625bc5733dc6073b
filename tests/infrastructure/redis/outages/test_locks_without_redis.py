"""Locks while Redis is unavailable, and after it recovers or another server takes over."""

import asyncio
from pathlib import Path

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks.lock_leases import InProcessLockLease, RedisLockLease
from slotlock.infrastructure.redis.locks.locks import Locks
from tests.support.apps.redis_topologies import sentinel_topology
from tests.support.apps.restartable_servers import RestartableServer
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import (
    acquire_lease,
    open_lock_node,
    release_lease,
    start_waiter,
    stored_lock,
    waiter_count,
)


async def kill_redis(locks: Locks, valkey: RestartableServer) -> None:
    """Kill Redis and let the node notice."""
    valkey.kill()
    assert not await locks.pipeline.check()


async def wait_for_recovery(locks: Locks) -> None:
    """Wait until the node uses Redis again."""
    await eventually(lambda: not locks.pipeline.is_unavailable, "Redis in use again")


async def completion_order(tasks: list[asyncio.Task[int]]) -> list[int]:
    """Return the results in the order in which the tasks end."""
    return [await task for task in asyncio.as_completed(tasks, timeout=20)]


async def acquire_in_process(locks: Locks, slot_id: str, n: int) -> int:
    """Wait for a lock inside this process, release it and return the number."""
    lease = await acquire_lease(locks, slot_id, wait_s=20)
    assert isinstance(lease, InProcessLockLease)
    await release_lease(locks, lease)
    return n


async def test_without_redis_a_lock_is_granted_inside_the_process_in_order_of_arrival(
    locks: Locks, valkey: RestartableServer
) -> None:
    slot_id = new_slot_id()
    await kill_redis(locks, valkey)
    lease = await acquire_lease(locks, slot_id)
    assert isinstance(lease, InProcessLockLease)
    assert await locks.acquire(slot_id) is None
    assert await locks.acquire(slot_id, wait_s=0.01) is None
    tasks = [asyncio.create_task(acquire_in_process(locks, slot_id, n)) for n in range(10)]
    await asyncio.sleep(0)
    tasks[3].cancel()
    await release_lease(locks, lease)
    del tasks[3]
    assert await completion_order(tasks) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
    assert (await acquire_lease(locks, slot_id)).fencing_token > lease.fencing_token


async def test_waiters_retain_their_order_when_redis_becomes_unavailable(
    locks: Locks, valkey: RestartableServer
) -> None:
    slot_id = new_slot_id()
    await acquire_lease(locks, slot_id)
    tasks = []
    for n in range(5):
        tasks.append(asyncio.create_task(acquire_in_process(locks, slot_id, n)))
        await asyncio.sleep(0)
    while await waiter_count(locks, slot_id) < len(tasks):
        await asyncio.sleep(0.005)
    await kill_redis(locks, valkey)
    assert await completion_order(tasks) == list(range(5))


async def test_without_redis_several_locks_are_acquired_together_or_not_at_all(
    locks: Locks, valkey: RestartableServer
) -> None:
    first, second = new_slot_id(), new_slot_id()
    await kill_redis(locks, valkey)
    lease = await acquire_lease(locks, second)
    assert await locks.acquire(first, second) is None
    assert await locks.acquire(first, second, wait_s=0.01) is None
    await release_lease(locks, await acquire_lease(locks, first))
    await release_lease(locks, lease)
    assert (await acquire_lease(locks, first, second)).names == (first, second)


async def test_releases_that_a_hung_redis_missed_are_sent_after_it_recovers(
    locks: Locks, valkey: RestartableServer
) -> None:
    leases = [await acquire_lease(locks, new_slot_id()) for _ in range(5)]
    awaited_name = leases[-1].names[0]
    waiter = await start_waiter(locks, awaited_name)
    valkey.pause()
    waiter.cancel()
    for lease in leases[:-1]:
        await release_lease(locks, lease)
    valkey.resume()
    await wait_for_recovery(locks)
    for lease in leases[:-1]:

        async def is_free(name: str = lease.names[0]) -> bool:
            return await stored_lock(locks, name) is None

        await eventually(is_free, "a released lock")
    assert await waiter_count(locks, awaited_name) == 0


async def test_a_lease_is_lost_when_it_cannot_be_renewed_within_its_time_to_live(
    valkey: RestartableServer,
) -> None:
    async with open_lock_node(valkey.url, ttl_ms=300) as locks:
        lease = await acquire_lease(locks, new_slot_id())
        valkey.kill()
        await asyncio.wait_for(lease.lost.wait(), 10)


async def test_locks_work_again_after_sentinel_promotes_another_master(tmp_path: Path) -> None:
    with sentinel_topology(tmp_path, replicas=1) as topology:
        async with open_lock_node(topology.url) as one, open_lock_node(topology.url) as other:
            slot_id = new_slot_id()
            first = await acquire_lease(one, slot_id)
            await release_lease(one, first)
            topology.nodes[0].run_command("WAIT 1 1500")  # until the replica has the fencing token
            topology.nodes[0].process.kill()
            assert not await one.pipeline.check()
            assert not await other.pipeline.check()
            await wait_for_recovery(one)
            await wait_for_recovery(other)
            lease = await acquire_lease(one, slot_id)
            assert isinstance(lease, RedisLockLease)
            assert lease.fencing_token > first.fencing_token
            assert b"master" in topology.nodes[1].run_command("ROLE").encode()
            stored = topology.nodes[1].run_command(f"GET {lock_keys(slot_id).lock}")
            assert stored.startswith(lease.token)
            waiter = await start_waiter(other, slot_id)
            await release_lease(one, lease)
            assert await asyncio.wait_for(waiter, 10)
