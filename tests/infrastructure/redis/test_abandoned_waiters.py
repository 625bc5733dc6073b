"""Who leaves the line, by will or by death, does not hold up those behind."""

import asyncio
from collections.abc import Callable

import pytest

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.locks.leases import RedisLease
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.locks.scripts import GRANT_TTL_MS, INSTANCE_ID_CHARS
from tests.support.apps.redis_topologies import RedisTopology
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import (
    acquire_lease,
    start_waiter,
    stored_lock,
    waiter_count,
    waiting_process,
)

Offices = tuple[Locks, Locks]
# A dead process holds up the line for less, however many of it stand there.
STALL_MS = 2_000
DEAD = 10
only_one = pytest.mark.parametrize("redis_topology", ["one server"], indirect=True)


@pytest.mark.parametrize("how", ["time", "cancelled"])
async def test_who_gives_up_leaves_the_line(lock_nodes: Offices, how: str) -> None:
    slot_id = new_slot_id()
    lease = await acquire_lease(lock_nodes[0], slot_id)
    quitter = await start_waiter(lock_nodes[1], slot_id, wait_s=0.05 if how == "time" else 20)
    if how == "cancelled":
        quitter.cancel()
    await asyncio.gather(quitter, return_exceptions=True)
    assert quitter.cancelled() or quitter.result() is None

    async def anonymous() -> bool:
        return await waiter_count(lock_nodes[0], slot_id) == 0

    await eventually(anonymous, "an empty line")
    await lock_nodes[0].release(lease)
    assert await stored_lock(lock_nodes[0], slot_id) is None


async def test_who_is_cancelled_at_any_moment_of_its_turn_hands_it_on(lock_nodes: Offices) -> None:
    got, moment = False, 0
    while not got:
        slot_id = new_slot_id()
        lease = await acquire_lease(lock_nodes[0], slot_id)
        quitter, next_one = [await start_waiter(lock_nodes[1], slot_id) for _ in range(2)]
        releasing = asyncio.create_task(lock_nodes[0].release(lease))
        for _ in range(moment):
            await asyncio.sleep(0)
        got, moment = quitter.done(), moment + 1
        quitter.cancel()
        await asyncio.gather(quitter, releasing, return_exceptions=True)
        if not got:
            assert await asyncio.wait_for(next_one, 10)
    assert moment > 5, "not one was cancelled before it had its turn"
    next_one.cancel()


async def turns_of_the_dead(lock_nodes: Offices, redis_topology: RedisTopology) -> set[bytes]:
    """The locks handed to those of a killed process before one behind them had its turn, or two."""
    slot_id = new_slot_id()
    lease = await acquire_lease(lock_nodes[0], slot_id)
    other = await acquire_lease(lock_nodes[1], new_slot_id())
    assert isinstance(other, RedisLease)
    await lock_nodes[1].release(other)
    theirs = other.token[:INSTANCE_ID_CHARS].encode()
    with waiting_process(redis_topology.url, slot_id, DEAD) as doomed:

        async def they_stand() -> bool:
            return await waiter_count(lock_nodes[0], slot_id) == DEAD

        await eventually(they_stand, "all of them in line")
        behind = await start_waiter(lock_nodes[1], slot_id)
        doomed.kill()
        doomed.wait()
    await lock_nodes[0].release(lease)
    stalling = set[bytes]()

    async def served_or_stalled() -> bool:
        lock = await stored_lock(lock_nodes[0], slot_id)
        if lock and not lock.startswith(theirs):
            stalling.add(lock)
        return behind.done() or len(stalling) > 1

    await eventually(served_or_stalled, "one turn or the other")
    behind.cancel()
    await asyncio.gather(behind, return_exceptions=True)
    return stalling


def test_a_lock_that_the_dead_never_heard_of_lasts_less_than_two_seconds() -> None:
    assert GRANT_TTL_MS < STALL_MS


async def test_of_a_killed_process_one_at_most_has_a_turn_before_those_behind(
    lock_nodes: Offices, redis_topology: RedisTopology
) -> None:
    assert len(await turns_of_the_dead(lock_nodes, redis_topology)) <= 1


@only_one
async def test_control_without_heartbeats_the_dead_hold_up_the_line(
    lock_nodes: Offices, redis_topology: RedisTopology, disable_script_guard: Callable[[str], None]
) -> None:
    disable_script_guard("heartbeat")
    assert len(await turns_of_the_dead(lock_nodes, redis_topology)) > 1


async def test_those_in_line_get_their_turns_though_redis_forgot_them(
    lock_nodes: Offices, redis_topology: RedisTopology
) -> None:
    slot_id = new_slot_id()
    await acquire_lease(lock_nodes[0], slot_id)
    people = [await start_waiter(lock_nodes[n % 2], slot_id) for n in range(4)]
    redis_topology.flush_all()

    async def serve(n: int) -> None:
        lease = await people[n]
        assert lease is not None
        await lock_nodes[n % 2].release(lease)

    async with asyncio.timeout(10):
        await asyncio.gather(*map(serve, range(4)))
