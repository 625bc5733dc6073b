"""Several slots locked together: all or none, and nobody waits for somebody who waits for them."""

import asyncio

import pytest

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.locks.locks import Locks
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import acquire_lease, stored_lock, waiter_count

Offices = tuple[Locks, Locks]
ROUNDS = 30


async def test_several_slots_are_held_together_and_released_together(lock_nodes: Offices) -> None:
    first, second = new_slot_id(), new_slot_id()
    lease = await acquire_lease(lock_nodes[0], second, first, second)
    assert lease.names == (first, second)
    for slot_id in (first, second):
        assert await lock_nodes[1].acquire(slot_id) is None
    await lock_nodes[0].release(lease)
    await acquire_lease(lock_nodes[1], first, second)


async def test_opposite_orders_never_wait_for_each_other_for_ever(lock_nodes: Offices) -> None:
    first, second = new_slot_id(), new_slot_id()

    async def work(lock_node: Locks, *wanted: str) -> None:
        for _ in range(ROUNDS):
            lease = await acquire_lease(lock_node, *wanted, wait_s=20)
            await lock_node.release(lease)

    async with asyncio.timeout(20):
        await asyncio.gather(
            *(work(lock_node, first, second) for lock_node in lock_nodes),
            *(work(lock_node, second, first) for lock_node in lock_nodes),
        )


async def test_a_lease_on_several_has_a_higher_fence_than_each_had_before(
    lock_nodes: Offices,
) -> None:
    first, second = new_slot_id(), new_slot_id()
    for lock_node in lock_nodes:
        alone = [await acquire_lease(lock_node, slot_id) for slot_id in (first, second)]
        for lease in alone:
            await lock_node.release(lease)
        together = await acquire_lease(lock_node, first, second)
        assert together.fencing_token > max(lease.fencing_token for lease in alone)
        await lock_node.release(together)


@pytest.mark.parametrize("why", ["refused", "time", "cancelled"])
async def test_who_does_not_get_all_keeps_none(lock_nodes: Offices, why: str) -> None:
    first, second = new_slot_id(), new_slot_id()
    theirs = await acquire_lease(lock_nodes[0], second)
    wait_s = {"refused": 0.0, "time": 0.05, "cancelled": 20.0}[why]
    asking = asyncio.create_task(lock_nodes[1].acquire(first, second, wait_s=wait_s))
    if why == "cancelled":

        async def waits() -> bool:
            return await waiter_count(lock_nodes[0], second) == 1

        await eventually(waits, "a place in line for the second")
        asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert asking.cancelled() or asking.result() is None

    async def nothing_kept() -> bool:
        free = await stored_lock(lock_nodes[0], first) is None
        return free and await waiter_count(lock_nodes[0], second) == 0

    await eventually(nothing_kept, "the first is free again, and no place in line for the second")
    await lock_nodes[0].release(theirs)
    assert await stored_lock(lock_nodes[0], second) is None
