"""Waiters are granted a lock in order of arrival and woken by its release."""

import asyncio
from collections.abc import Callable

import pytest

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks import waiters
from slotlock.infrastructure.redis.locks.lock_leases import LockLease
from slotlock.infrastructure.redis.locks.lock_scripts import HEARTBEAT_S
from slotlock.infrastructure.redis.locks.locks import Locks
from tests.support.apps.redis_topologies import RedisTopology
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import (
    ON_ONE_SERVER,
    LockNodes,
    acquire_lease,
    open_lock_node,
    release_lease,
    start_waiter,
    wait_for_waiters,
    waiter_count,
)

WAITERS = 50
WORK_S = 0.02
# To join, to be granted, to renew and to release, including the commands inside scripts. A waiter
# that polled every 10 ms would send 50 commands for each waiter before it.
COMMANDS_PER_WAITER = 30


@pytest.fixture
def busy_waiters(disable_script_guard: Callable[[str], None]) -> None:
    """Let no waiter count as dead, though a busy machine may hold up its heartbeats."""
    disable_script_guard("heartbeat")


async def grant_order(lock_nodes: LockNodes, count: int) -> list[int]:
    """Return the order in which waiters that arrived one after the other are granted the lock."""
    slot_id, order = new_slot_id(), list[int]()
    first = await acquire_lease(lock_nodes[0], slot_id)
    tasks = [await start_waiter(lock_nodes[n % 2], slot_id) for n in range(count)]

    async def release_when_granted(n: int) -> None:
        lease = await tasks[n]
        assert lease is not None
        order.append(n)
        await release_lease(lock_nodes[n % 2], lease)

    releasing = [asyncio.create_task(release_when_granted(n)) for n in range(count)]
    await release_lease(lock_nodes[0], first)
    await asyncio.gather(*releasing)
    return order


async def test_waiters_of_two_nodes_are_granted_the_lock_in_order_of_arrival(
    lock_nodes: LockNodes, busy_waiters: None
) -> None:
    assert await grant_order(lock_nodes, 10) == list(range(10))


async def test_a_lease_says_when_the_next_waiter_came_or_the_lock_was_granted(
    lock_nodes: LockNodes,
) -> None:
    first, second = lock_nodes
    slot_id, clock = new_slot_id(), asyncio.get_running_loop().time
    times = [clock()]
    free = asyncio.create_task(first.acquire(slot_id))
    await asyncio.sleep(0)  # the command is sent, and its reply may come much later
    times.append(clock())
    leases = [await free]
    waiters = [await start_waiter(first, slot_id)]
    times.append(clock())
    waiters.append(await start_waiter(second, slot_id))
    times.append(clock())
    for waiter in waiters:
        assert leases[-1] is not None
        await release_lease(first, leases[-1])
        leases.append(await waiter)
    assert leases[-1] is not None
    await release_lease(second, leases[-1])
    of_free, of_second, of_grant = (lease.next_arrival for lease in leases if lease is not None)
    assert times[0] <= of_free <= times[1] < of_second < times[3]
    assert times[2] < of_grant


@pytest.mark.parametrize(("give_way_s", "order"), [(0.0, [0, 1, 2]), (60.0, [1, 2, 0])])
async def test_a_waiter_that_yields_goes_after_those_who_came_soon_after_it(
    lock_nodes: LockNodes, busy_waiters: None, give_way_s: float, order: list[int]
) -> None:
    # Of two tokens at one place, the lower one would go first: those of either node.
    for yielding, other in (lock_nodes, lock_nodes[::-1]):
        slot_id, granted = new_slot_id(), list[int]()
        # Long before the others: its place is reckoned when Redis runs its command, maybe late.
        arrival = asyncio.get_running_loop().time() - 20.0
        lease = await acquire_lease(yielding, slot_id)
        waiters = {number: await start_waiter(other, slot_id) for number in (1, 2)}
        waiters[0] = asyncio.create_task(
            yielding.acquire(slot_id, wait_s=20.0, arrival=arrival, give_way_s=give_way_s)
        )

        await wait_for_waiters(yielding, slot_id, 3)
        for number in order:
            await release_lease(yielding, lease)
            next_lease = await asyncio.wait_for(waiters[number], 10)
            assert next_lease is not None
            lease = next_lease
            granted.append(number)
        assert granted == order


@ON_ONE_SERVER
async def test_control_without_fairness_the_last_waiter_is_granted_the_lock_first(
    lock_nodes: LockNodes, busy_waiters: None, disable_script_guard: Callable[[str], None]
) -> None:
    disable_script_guard("fairness")
    assert await grant_order(lock_nodes, 10) == list(range(10))[::-1]


async def test_a_waiter_is_woken_by_the_release_without_asking_again(
    lock_nodes: LockNodes, busy_waiters: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "HEARTBEAT_S", 60.0)
    for node in lock_nodes:
        slot_id = new_slot_id()
        lease = await acquire_lease(lock_nodes[0], slot_id)
        waiter = await start_waiter(node, slot_id)
        await release_lease(lock_nodes[0], lease)
        assert await asyncio.wait_for(waiter, 10)


@ON_ONE_SERVER
async def test_control_a_waiter_that_receives_no_messages_is_not_woken(
    lock_nodes: LockNodes, redis_topology: RedisTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "HEARTBEAT_S", 60.0)
    async with open_lock_node(redis_topology.url, subscribe=False) as unsubscribed:
        slot_id = new_slot_id()
        lease = await acquire_lease(lock_nodes[0], slot_id)
        waiter = await start_waiter(unsubscribed, slot_id, wait_s=HEARTBEAT_S)
        await release_lease(lock_nodes[0], lease)
        assert await waiter is None


async def test_a_heartbeat_replaces_a_lost_wakeup(
    lock_nodes: LockNodes, redis_topology: RedisTopology
) -> None:
    async with open_lock_node(redis_topology.url, subscribe=False) as unsubscribed:
        slot_id = new_slot_id()
        lease = await acquire_lease(lock_nodes[0], slot_id)
        waiter = await start_waiter(unsubscribed, slot_id)
        await release_lease(lock_nodes[0], lease)
        assert await asyncio.wait_for(waiter, 10)
        assert await waiter_count(unsubscribed, slot_id) == 0


async def test_a_granted_lock_soon_has_the_full_time_to_live(lock_nodes: LockNodes) -> None:
    slot_id = new_slot_id()
    lease = await acquire_lease(lock_nodes[0], slot_id)
    waiter = await start_waiter(lock_nodes[1], slot_id)
    await release_lease(lock_nodes[0], lease)
    granted = await waiter
    assert granted is not None
    assert granted.fencing_token > lease.fencing_token

    async def is_renewed() -> bool:
        return int(await lock_nodes[1].pipeline.send("PTTL", lock_keys(slot_id).lock)) > 5_000

    await eventually(is_renewed, "the full time to live")
    assert not granted.lost.is_set()


async def newcomer_and_waiter(
    lock_nodes: LockNodes, wait_s: float
) -> tuple[LockLease | None, LockLease | None]:
    """Let a lock expire that has a waiter. Return the leases of a new caller and of the waiter."""
    slot_id = new_slot_id()
    await acquire_lease(lock_nodes[0], slot_id)
    waiter = await start_waiter(lock_nodes[0], slot_id, wait_s)
    await lock_nodes[0].pipeline.send("DEL", lock_keys(slot_id).lock)
    newcomer = await lock_nodes[1].acquire(slot_id)
    return newcomer, await waiter


async def test_an_expired_lock_is_granted_to_the_waiter_and_not_to_a_new_caller(
    lock_nodes: LockNodes, busy_waiters: None
) -> None:
    newcomer, waiter = await newcomer_and_waiter(lock_nodes, wait_s=20.0)
    assert newcomer is None
    assert waiter is not None


@ON_ONE_SERVER
async def test_control_a_new_caller_that_ignores_the_queue_gets_an_expired_lock(
    lock_nodes: LockNodes,
    disable_script_guard: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disable_script_guard("barging")
    monkeypatch.setattr(waiters, "HEARTBEAT_S", 60.0)  # a heartbeat gets an expired lock, too
    newcomer, waiter = await newcomer_and_waiter(lock_nodes, wait_s=1.0)
    assert newcomer is not None
    assert waiter is None


async def test_50_waiters_send_a_few_commands_each_and_do_not_poll(
    lock_nodes: LockNodes, redis_topology: RedisTopology
) -> None:
    slot_id = new_slot_id()

    async def work(node: Locks) -> None:
        lease = await acquire_lease(node, slot_id, wait_s=20)
        await asyncio.sleep(WORK_S)
        await release_lease(node, lease)

    before = redis_topology.commands_processed()
    await asyncio.gather(*(work(lock_nodes[n % 2]) for n in range(WAITERS)))
    assert redis_topology.commands_processed() - before <= COMMANDS_PER_WAITER * WAITERS
