"""Callers who wait get places in the order in which they come, at two processes of the app."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from tests.support.apps.deployment import Deployment, lock_key
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BOOK_WITH_OPTIONS
from tests.support.transport.simultaneous_requests import send_in_order

MEMBER_COUNT = 200
# A busy machine delays requests. A caller may pass those who came this many callers before.
MAX_PASSED = 80


async def wait_for_arrivals(
    deployment: Deployment, apps: Sequence[AppProcess], slot_id: str
) -> None:
    """Wait until the processes have responded to a request that came after all others."""
    for app in apps:
        await deployment.organizer(app).fetch_slot(slot_id)


async def book_in_order(
    deployment: Deployment,
    apps: Sequence[AppProcess],
    slot_id: str,
    callers: int,
    after_each: Callable[[int], Awaitable[None]],
) -> list[int]:
    """Let callers who wait reach two processes by turns; return the numbers of the winners."""
    booking = {"input": {"slotId": slot_id, "waitMs": 20_000}}
    calls = [
        (apps[number % 2].url, token, BOOK_WITH_OPTIONS, booking)
        for number, token in enumerate(deployment.user_tokens.members[:callers])
    ]
    outcomes = await send_in_order(calls, after_each)
    names = [outcome["__typename"] for outcome in outcomes]
    assert set(names) == {"Booked", "SlotFull"}
    return [number for number, name in enumerate(names) if name == "Booked"]


async def winners_behind_a_lock(deployment: Deployment, apps: Sequence[AppProcess]) -> list[int]:
    """Let 12 callers come 50 ms apart for three places while somebody else has the lock."""
    slot_id = await deployment.add_slot(apps[0], capacity=3)
    deployment.redis.set(lock_key(slot_id), "somebody-else:1")

    async def after_each(number: int) -> None:
        await wait_for_arrivals(deployment, [apps[number % 2]], slot_id)
        await asyncio.sleep(0.05)
        if number == 11:
            deployment.redis.delete(lock_key(slot_id))

    return await book_in_order(deployment, apps, slot_id, 12, after_each)


async def winners_of_a_crowd(
    deployment: Deployment, apps: Sequence[AppProcess], *, is_locked: bool
) -> list[int]:
    """Let 200 callers come 4 ms apart for 100 places, perhaps while somebody else has the lock."""
    slot_id = await deployment.add_slot(apps[0], capacity=100)
    if is_locked:
        deployment.redis.set(lock_key(slot_id), "somebody-else:1")

    async def after_each(number: int) -> None:
        await asyncio.sleep(0.004)
        if is_locked and number == 199:
            await wait_for_arrivals(deployment, apps, slot_id)
            deployment.redis.delete(lock_key(slot_id))

    winners = await book_in_order(deployment, apps, slot_id, 200, after_each)
    assert len(winners) == 100
    return winners


async def test_the_first_of_12_callers_behind_a_lock_get_the_places(
    deployment: Deployment, two_apps: tuple[AppProcess, AppProcess]
) -> None:
    assert await winners_behind_a_lock(deployment, two_apps) == [0, 1, 2]


@pytest.mark.parametrize("is_locked", [True, False])
async def test_the_first_half_of_200_callers_gets_the_100_places(
    deployment: Deployment, two_apps: tuple[AppProcess, AppProcess], *, is_locked: bool
) -> None:
    winners = await winners_of_a_crowd(deployment, two_apps, is_locked=is_locked)
    assert winners[:MAX_PASSED] == list(range(MAX_PASSED))
    assert winners[-1] < 100 + MAX_PASSED


async def test_control_without_the_order_between_processes_later_callers_get_the_places(
    deployment: Deployment,
) -> None:
    apps = [deployment.app("order-between-processes") for _ in range(2)]
    assert await winners_behind_a_lock(deployment, apps) in ([0, 2, 4], [1, 3, 5])
    winners = await winners_of_a_crowd(deployment, apps, is_locked=True)
    assert winners[-1] >= 100 + MAX_PASSED
    assert winners[:MAX_PASSED] != list(range(MAX_PASSED))
