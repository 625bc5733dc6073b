"""Several locks are acquired together or not at all, without deadlocks."""

import asyncio

import pytest

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks.locks import Locks
from tests.support.apps.redis_topologies import RedisTopology
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import (
    LockNodes,
    acquire_lease,
    open_lock_node,
    release_lease,
    stored_lock,
    wait_for_waiters,
    waiter_count,
)

ROUNDS = 30


async def test_several_locks_are_held_and_released_together(lock_nodes: LockNodes) -> None:
    first, second = new_slot_id(), new_slot_id()
    lease = await acquire_lease(lock_nodes[0], second, first, second)
    assert lease.names == (first, second)
    for slot_id in (first, second):
        assert await lock_nodes[1].acquire(slot_id) is None
    await release_lease(lock_nodes[0], lease)
    await acquire_lease(lock_nodes[1], first, second)


async def test_requests_in_opposite_orders_do_not_deadlock(lock_nodes: LockNodes) -> None:
    first, second = new_slot_id(), new_slot_id()

    async def acquire_and_release(node: Locks, *names: str) -> None:
        for _ in range(ROUNDS):
            await release_lease(node, await acquire_lease(node, *names, wait_s=20))

    async with asyncio.timeout(20):
        await asyncio.gather(
            *(acquire_and_release(node, first, second) for node in lock_nodes),
            *(acquire_and_release(node, second, first) for node in lock_nodes),
        )


async def test_a_lease_on_several_locks_has_a_higher_fencing_token_than_each_before(
    lock_nodes: LockNodes,
) -> None:
    first, second = new_slot_id(), new_slot_id()
    for node in lock_nodes:
        single = [await acquire_lease(node, slot_id) for slot_id in (first, second)]
        for lease in single:
            await release_lease(node, lease)
        together = await acquire_lease(node, first, second)
        assert together.fencing_token > max(lease.fencing_token for lease in single)
        await release_lease(node, together)


@pytest.mark.parametrize("reason", ["not waiting", "timeout", "cancelled"])
async def test_a_caller_that_does_not_get_all_locks_holds_none(
    lock_nodes: LockNodes, reason: str
) -> None:
    first, second = new_slot_id(), new_slot_id()
    blocking = await acquire_lease(lock_nodes[0], second)
    wait_s = {"not waiting": 0.0, "timeout": 0.05, "cancelled": 20.0}[reason]
    acquiring = asyncio.create_task(lock_nodes[1].acquire(first, second, wait_s=wait_s))
    if reason == "cancelled":
        await wait_for_waiters(lock_nodes[0], second, 1)
        acquiring.cancel()
    await asyncio.gather(acquiring, return_exceptions=True)
    assert acquiring.cancelled() or acquiring.result() is None

    async def nothing_left() -> bool:
        is_free = await stored_lock(lock_nodes[0], first) is None
        return is_free and await waiter_count(lock_nodes[0], second) == 0

    await eventually(nothing_left, "a free first lock and no waiter for the second")
    await release_lease(lock_nodes[0], blocking)
    assert await stored_lock(lock_nodes[0], second) is None


async def test_a_caller_who_loses_a_lock_while_waiting_for_the_next_gets_none(
    lock_nodes: LockNodes, redis_topology: RedisTopology
) -> None:
    first_id, second_id = sorted(new_slot_id() for _ in range(2))
    held = await acquire_lease(lock_nodes[0], second_id)
    async with open_lock_node(redis_topology.url, ttl_ms=300) as node:
        acquiring = asyncio.create_task(node.acquire(first_id, second_id, wait_s=20))
        await wait_for_waiters(node, second_id, 1)
        await node.pipeline.send("SET", lock_keys(first_id).lock, "another:1")
        await eventually(lambda: not node._redis_locks._renewer._renewals, "the loss is noticed")
        await release_lease(lock_nodes[0], held)
        assert await acquiring is None
        await node.wait_for_releases()
        assert await stored_lock(node, second_id) is None
