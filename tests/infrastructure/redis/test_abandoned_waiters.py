"""A waiter that leaves or dies does not delay the waiters after it."""

import asyncio
import time
from collections.abc import Callable

import pytest

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.keys import lock_keys, wakeup_channel
from slotlock.infrastructure.redis.locks.lock_leases import RedisLockLease
from slotlock.infrastructure.redis.locks.lock_scripts import GRANT_TTL_MS, INSTANCE_ID_CHARS
from tests.support.apps.redis_topologies import RedisTopology
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import (
    ON_ONE_SERVER,
    LockNodes,
    acquire_lease,
    release_lease,
    start_waiter,
    stored_lock,
    wait_for_waiters,
    wait_until_free,
    waiter_count,
    waiting_process,
)

# A dead process delays the waiters after it by less, however many waiters it had.
MAX_DELAY_MS = 2_000
DEAD_WAITERS = 10


@pytest.mark.parametrize("reason", ["timeout", "cancelled"])
async def test_a_waiter_that_gives_up_leaves_the_queue(lock_nodes: LockNodes, reason: str) -> None:
    slot_id = new_slot_id()
    lease = await acquire_lease(lock_nodes[0], slot_id)
    waiter = await start_waiter(lock_nodes[1], slot_id, wait_s=0.05 if reason == "timeout" else 20)
    if reason == "cancelled":
        waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    assert waiter.cancelled() or waiter.result() is None

    await lock_nodes[1].wait_for_releases()
    assert await waiter_count(lock_nodes[0], slot_id) == 0
    await lock_nodes[0].release(lease)
    assert await stored_lock(lock_nodes[0], slot_id) is None


async def test_a_waiter_cancelled_at_any_moment_of_its_grant_passes_the_lock_on(
    lock_nodes: LockNodes,
) -> None:
    was_granted, moment = False, 0
    while not was_granted:
        slot_id = new_slot_id()
        lease = await acquire_lease(lock_nodes[0], slot_id)
        cancelled, next_waiter = [await start_waiter(lock_nodes[1], slot_id) for _ in range(2)]
        releasing = asyncio.create_task(lock_nodes[0].release(lease))
        for _ in range(moment):
            await asyncio.sleep(0)
        was_granted, moment = cancelled.done(), moment + 1
        cancelled.cancel()
        await asyncio.gather(cancelled, releasing, return_exceptions=True)
        if not was_granted:
            assert await asyncio.wait_for(next_waiter, 10)
    assert moment > 5, "no waiter was cancelled before its grant"
    next_waiter.cancel()


async def test_a_lock_that_a_failover_gives_to_a_waiter_who_left_is_released(
    lock_nodes: LockNodes,
) -> None:
    node, slot_id = lock_nodes[0], new_slot_id()
    # A replica that was behind still has the waiter, and its instance is alive.
    instance_id, key = node._redis_locks._instance_id, lock_keys(slot_id).lock
    lock = f"{instance_id}ff:1"
    await node.pipeline.send("SET", key, lock, "PX", 100_000)
    await lock_nodes[1].pipeline.send("PUBLISH", wakeup_channel(instance_id), f"{key} {lock}")
    await wait_until_free(node, slot_id)


async def test_a_waiter_whose_process_has_been_silent_is_passed_over(
    lock_nodes: LockNodes,
) -> None:
    node, slot_id, silent = lock_nodes[0], new_slot_id(), "0" * INSTANCE_ID_CHARS
    lease, keys = await acquire_lease(node, slot_id), lock_keys(slot_id)
    await node.pipeline.send("HSET", keys.heartbeats, silent, int((time.time() - 60) * 1e6))
    await node.pipeline.send("ZADD", keys.queue, 0, f"{silent}1")
    waiter = await start_waiter(lock_nodes[1], slot_id)
    await release_lease(node, lease)
    lock = await stored_lock(node, slot_id)
    assert lock is not None
    assert lock.startswith(lock_nodes[1]._redis_locks._instance_id.encode())
    assert await waiter


async def grants_to_dead_waiters(
    lock_nodes: LockNodes, redis_topology: RedisTopology
) -> set[bytes]:
    """Return the locks granted to a killed process before a later waiter got one, at most two."""
    slot_id = new_slot_id()
    lease = await acquire_lease(lock_nodes[0], slot_id)
    sample = await acquire_lease(lock_nodes[1], new_slot_id())
    assert isinstance(sample, RedisLockLease)
    await lock_nodes[1].release(sample)
    live_instance = sample.token[:INSTANCE_ID_CHARS].encode()
    with waiting_process(redis_topology.url, slot_id, DEAD_WAITERS) as doomed:
        await wait_for_waiters(lock_nodes[0], slot_id, DEAD_WAITERS)
        later_waiter = await start_waiter(lock_nodes[1], slot_id)
        doomed.kill()
        doomed.wait()
    await lock_nodes[0].release(lease)
    dead_grants = set[bytes]()

    async def is_decided() -> bool:
        lock = await stored_lock(lock_nodes[0], slot_id)
        if lock and not lock.startswith(live_instance):
            dead_grants.add(lock)
        return later_waiter.done() or len(dead_grants) > 1

    await eventually(is_decided, "a grant to the later waiter or two to dead ones")
    later_waiter.cancel()
    await asyncio.gather(later_waiter, return_exceptions=True)
    return dead_grants


def test_a_lock_granted_to_a_dead_waiter_lasts_less_than_two_seconds() -> None:
    assert GRANT_TTL_MS < MAX_DELAY_MS


async def test_at_most_one_waiter_of_a_killed_process_is_granted_the_lock(
    lock_nodes: LockNodes, redis_topology: RedisTopology
) -> None:
    assert len(await grants_to_dead_waiters(lock_nodes, redis_topology)) <= 1


@ON_ONE_SERVER
async def test_control_without_heartbeats_several_dead_waiters_are_granted_the_lock(
    lock_nodes: LockNodes,
    redis_topology: RedisTopology,
    disable_script_guard: Callable[[str], None],
) -> None:
    disable_script_guard("heartbeat")
    assert len(await grants_to_dead_waiters(lock_nodes, redis_topology)) > 1


async def test_waiters_are_granted_the_lock_though_redis_lost_its_queue(
    lock_nodes: LockNodes, redis_topology: RedisTopology
) -> None:
    slot_id = new_slot_id()
    await acquire_lease(lock_nodes[0], slot_id)
    waiters = [await start_waiter(lock_nodes[n % 2], slot_id) for n in range(4)]
    redis_topology.flush_all()

    async def release_when_granted(n: int) -> None:
        lease = await waiters[n]
        assert lease is not None
        await lock_nodes[n % 2].release(lease)

    async with asyncio.timeout(10):
        await asyncio.gather(*map(release_when_granted, range(4)))
