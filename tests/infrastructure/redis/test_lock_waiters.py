"""Waiting for a lock: first come, first served, and woken in turn."""

import asyncio
from collections.abc import Callable

import pytest

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks import waiters
from slotlock.infrastructure.redis.locks.leases import Lease
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.locks.scripts import HEARTBEAT_S
from tests.support.apps.redis_topologies import RedisTopology
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import acquire_lease, open_lock_node, start_waiter

Offices = tuple[Locks, Locks]
CROWD = 50
WORK_S = 0.02
# To join, to be handed the lock, to renew it, to release it, what scripts call inside counted too;
# one who polled every 10 ms would ask 50 times for each turn before theirs.
COMMANDS_A_TURN = 30
only_one = pytest.mark.parametrize("redis_topology", ["one server"], indirect=True)


async def served(lock_nodes: Offices, count: int) -> list[int]:
    """The order in which those are served who came one after the other, to two offices."""
    slot_id, order = new_slot_id(), list[int]()
    first = await acquire_lease(lock_nodes[0], slot_id)
    people = [await start_waiter(lock_nodes[n % 2], slot_id) for n in range(count)]

    async def serve(n: int) -> None:
        lease = await people[n]
        assert lease is not None
        order.append(n)
        await lock_nodes[n % 2].release(lease)

    serving = [asyncio.create_task(serve(n)) for n in range(count)]
    await lock_nodes[0].release(first)
    await asyncio.gather(*serving)
    return order


async def test_those_who_wait_are_served_in_the_order_they_came_whatever_their_office(
    lock_nodes: Offices,
) -> None:
    assert await served(lock_nodes, 10) == list(range(10))


@only_one
async def test_control_without_fairness_those_who_came_last_are_served_first(
    lock_nodes: Offices, disable_script_guard: Callable[[str], None]
) -> None:
    disable_script_guard("fairness")
    assert await served(lock_nodes, 10) == list(range(10))[::-1]


async def test_who_waits_is_woken_by_the_release_and_has_not_to_ask_again(
    lock_nodes: Offices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "HEARTBEAT_S", 60.0)
    for waiter in lock_nodes:
        slot_id = new_slot_id()
        lease = await acquire_lease(lock_nodes[0], slot_id)
        turn = await start_waiter(waiter, slot_id)
        await lock_nodes[0].release(lease)
        assert await asyncio.wait_for(turn, 10)


@only_one
async def test_control_who_does_not_hear_is_not_woken(
    lock_nodes: Offices, redis_topology: RedisTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiters, "HEARTBEAT_S", 60.0)
    async with open_lock_node(redis_topology.url, subscribe=False) as deaf:
        slot_id = new_slot_id()
        lease = await acquire_lease(lock_nodes[0], slot_id)
        turn = await start_waiter(deaf, slot_id, wait_s=HEARTBEAT_S)
        await lock_nodes[0].release(lease)
        assert await turn is None


async def test_a_wake_up_that_was_lost_heals(
    lock_nodes: Offices, redis_topology: RedisTopology
) -> None:
    async with open_lock_node(redis_topology.url, subscribe=False) as deaf:
        slot_id = new_slot_id()
        lease = await acquire_lease(lock_nodes[0], slot_id)
        turn = await start_waiter(deaf, slot_id)
        await lock_nodes[0].release(lease)
        assert await asyncio.wait_for(turn, 10)


async def test_what_is_handed_on_is_soon_held_as_long_as_any_lease(lock_nodes: Offices) -> None:
    slot_id = new_slot_id()
    lease = await acquire_lease(lock_nodes[0], slot_id)
    turn = await start_waiter(lock_nodes[1], slot_id)
    await lock_nodes[0].release(lease)
    later = await turn
    assert later is not None
    assert later.fencing_token > lease.fencing_token

    async def lasts() -> bool:
        return int(await lock_nodes[1].pipeline.send("PTTL", lock_keys(slot_id).lock)) > 5_000

    await eventually(lasts, "the full time to live")
    assert not later.lost.is_set()


async def run_out_before(lock_nodes: Offices) -> tuple[Lease | None, Lease | None]:
    """Somebody waits for a lock that runs out; what a newcomer gets, and the one who waited."""
    slot_id = new_slot_id()
    await acquire_lease(lock_nodes[0], slot_id)
    turn = await start_waiter(lock_nodes[0], slot_id, wait_s=1.0)
    await lock_nodes[0].pipeline.send("DEL", lock_keys(slot_id).lock)
    newcomer = await lock_nodes[1].acquire(slot_id)
    return newcomer, await turn


async def test_a_newcomer_never_passes_by_those_in_line(lock_nodes: Offices) -> None:
    newcomer, first = await run_out_before(lock_nodes)
    assert newcomer is None
    assert first is not None


@only_one
async def test_control_a_newcomer_who_does_not_look_at_the_line_passes_it_by(
    lock_nodes: Offices, disable_script_guard: Callable[[str], None]
) -> None:
    disable_script_guard("barging")
    newcomer, first = await run_out_before(lock_nodes)
    assert newcomer is not None
    assert first is None


async def test_a_crowd_in_line_asks_redis_a_few_times_a_turn_and_not_again_and_again(
    lock_nodes: Offices, redis_topology: RedisTopology
) -> None:
    slot_id = new_slot_id()

    async def work(lock_node: Locks) -> None:
        lease = await acquire_lease(lock_node, slot_id, wait_s=20)
        await asyncio.sleep(WORK_S)
        await lock_node.release(lease)

    before = redis_topology.commands_processed()
    await asyncio.gather(*(work(lock_nodes[n % 2]) for n in range(CROWD)))
    assert redis_topology.commands_processed() - before <= COMMANDS_A_TURN * CROWD
