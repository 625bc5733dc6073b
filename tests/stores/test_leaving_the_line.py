"""Who leaves the line, by will or by death, does not hold up those behind."""

import asyncio
from collections.abc import Callable

import pytest

from slotlock.stores.locks import Lease, Locks
from slotlock.stores.slots import new_slot_id
from tests.support.fleets import Fleet
from tests.support.offices import doomed_office, held, in_line, lock_of, stand, until

Offices = tuple[Locks, Locks]
# The line is free again after so long, however many of a dead process stand in it.
STALL_S = 2.0
DEAD = 10
only_one = pytest.mark.parametrize("fleet", ["one server"], indirect=True)


@pytest.mark.parametrize("how", ["time", "cancelled"])
async def test_who_gives_up_leaves_the_line(offices: Offices, how: str) -> None:
    slot_id = new_slot_id()
    lease = await held(offices[0], slot_id)
    quitter = await stand(offices[1], slot_id, wait_s=0.05 if how == "time" else 20)
    if how == "cancelled":
        quitter.cancel()
    await asyncio.gather(quitter, return_exceptions=True)
    assert quitter.cancelled() or quitter.result() is None

    async def nobody() -> bool:
        return await in_line(offices[0], slot_id) == 0

    await until(nobody, "an empty line")
    await offices[0].release(lease)
    assert await lock_of(offices[0], slot_id) is None


async def test_who_is_cancelled_at_any_moment_of_its_turn_hands_it_on(offices: Offices) -> None:
    got, moment = False, 0
    while not got:
        slot_id = new_slot_id()
        lease = await held(offices[0], slot_id)
        quitter, next_one = [await stand(offices[1], slot_id) for _ in range(2)]
        releasing = asyncio.create_task(offices[0].release(lease))
        for _ in range(moment):
            await asyncio.sleep(0)
        got, moment = quitter.done(), moment + 1
        quitter.cancel()
        await asyncio.gather(quitter, releasing, return_exceptions=True)
        if not got:
            assert await asyncio.wait_for(next_one, 10)
    assert moment > 5, "not one was cancelled before it had its turn"
    next_one.cancel()


async def behind_the_dead(offices: Offices, fleet: Fleet, wait_s: float) -> Lease | None:
    """What one gets who waits so long behind many of a process that was killed."""
    slot_id = new_slot_id()
    lease = await held(offices[0], slot_id)
    with doomed_office(fleet.url, slot_id, DEAD) as doomed:

        async def they_stand() -> bool:
            return await in_line(offices[0], slot_id) == DEAD

        await until(they_stand, "all of them in line")
        behind = await stand(offices[1], slot_id)
        doomed.kill()
        doomed.wait()
    await offices[0].release(lease)
    done, _ = await asyncio.wait([behind], timeout=wait_s)
    behind.cancel()
    await asyncio.gather(behind, return_exceptions=True)
    return behind.result() if done else None


async def test_a_process_killed_with_many_in_line_holds_it_up_for_two_seconds_at_most(
    offices: Offices, fleet: Fleet
) -> None:
    assert await behind_the_dead(offices, fleet, STALL_S)


@only_one
async def test_control_without_heartbeats_the_dead_hold_up_the_line(
    offices: Offices, fleet: Fleet, take_away: Callable[[str], None]
) -> None:
    take_away("heartbeat")
    assert await behind_the_dead(offices, fleet, STALL_S) is None


async def test_those_in_line_get_their_turns_though_redis_forgot_them(
    offices: Offices, fleet: Fleet
) -> None:
    slot_id = new_slot_id()
    await held(offices[0], slot_id)
    people = [await stand(offices[n % 2], slot_id) for n in range(4)]
    fleet.flush()

    async def serve(n: int) -> None:
        lease = await people[n]
        assert lease is not None
        await offices[n % 2].release(lease)

    async with asyncio.timeout(10):
        await asyncio.gather(*map(serve, range(4)))
