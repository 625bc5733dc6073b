"""Callers who wait get places in the order in which they come, at two processes of the app."""

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.support.apps.deployment import Deployment, lock_key
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BOOK_WITH_OPTIONS
from tests.support.transport.simultaneous_requests import send_in_order

MEMBER_COUNT = 200
# A busy machine delays requests. A caller may pass those who came this many callers before.
MAX_PASSED = 50


async def winners_of(
    deployment: Deployment,
    apps: Sequence[AppProcess],
    callers: int,
    places: int,
    gap_s: float,
    *,
    locked: bool = True,
) -> list[int]:
    """Let callers reach two processes by turns; return the numbers of those who get a place.

    `locked`: somebody else has the lock until all of them have come.
    """
    slot_id = await deployment.add_slot(apps[0], capacity=places)
    if locked:
        deployment.redis.set(lock_key(slot_id), "somebody-else:1")
    booking = {"input": {"slotId": slot_id, "waitMs": 20_000}}
    calls = [
        (apps[number % 2].url, token, BOOK_WITH_OPTIONS, booking)
        for number, token in enumerate(deployment.user_tokens.members[:callers])
    ]

    async def unlock() -> None:
        for app in apps:  # responds after the requests before it have joined the queue
            await deployment.organizer(app).fetch_slot(slot_id)
        deployment.redis.delete(lock_key(slot_id))

    outcomes = await send_in_order(calls, gap_s, unlock)
    names = [outcome["__typename"] for outcome in outcomes]
    assert Counter(names) == {"Booked": places, "SlotFull": callers - places}
    return [number for number, name in enumerate(names) if name == "Booked"]


async def test_the_first_of_12_callers_behind_a_lock_get_the_places(
    deployment: Deployment, two_apps: tuple[AppProcess, AppProcess]
) -> None:
    assert await winners_of(deployment, two_apps, 12, places=3, gap_s=0.05) == [0, 1, 2]


@pytest.mark.parametrize("locked", [True, False])
async def test_the_first_half_of_200_callers_gets_the_100_places(
    deployment: Deployment, two_apps: tuple[AppProcess, AppProcess], *, locked: bool
) -> None:
    winners = await winners_of(deployment, two_apps, 200, 100, gap_s=0.004, locked=locked)
    assert winners[:MAX_PASSED] == list(range(MAX_PASSED))
    assert winners[-1] < 100 + MAX_PASSED


async def test_control_without_the_order_between_processes_later_callers_get_the_places(
    deployment: Deployment,
) -> None:
    apps = [deployment.app("order-between-processes") for _ in range(2)]
    few = await winners_of(deployment, apps, 12, places=3, gap_s=0.05)
    assert few in ([0, 2, 4], [1, 3, 5])
    many = await winners_of(deployment, apps, 200, places=100, gap_s=0.004)
    assert many[-1] >= 100 + MAX_PASSED
    assert many[:MAX_PASSED] != list(range(MAX_PASSED))
