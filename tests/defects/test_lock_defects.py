"""What the five designs' locks did wrong: each defect bites without its guard, and only then."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.apps.deployment import Deployment, lock_key, open_deployment
from tests.support.apps.processes import AppProcess
from tests.support.polling import wait_until

Pair = tuple[AppProcess, AppProcess]
SOMEBODY = f"{'0' * 48}:1"


@pytest.fixture
async def deployment(two_apps: Pair, log_dir: Path) -> AsyncIterator[Deployment]:
    """A scene beside two processes that lack nothing."""
    async with open_deployment(two_apps[0].environment, log_dir) as deployment:
        yield deployment


def run_out(deployment: Deployment, slot_id: str) -> None:
    """Let the lock of a slot run out now."""
    assert deployment.redis.pexpire(lock_key(slot_id), 1)
    wait_until(lambda: not deployment.redis.exists(lock_key(slot_id)), "the lock ran out")


async def release_after_the_lock_ran_out(
    deployment: Deployment, point: str, off: str = "", *, her_own: bool = False
) -> tuple[object, object]:
    """Ada is about to release a lock that ran out; the next one's lock before and after she does.

    It is Ben's, who books too, or her own, since she gives her place back from another device.
    """
    (slow, releasing), (other, committing) = (
        deployment.paused_app(point, off),
        deployment.paused_app("commit", off),
    )
    slot_id = await deployment.add_slot(other, capacity=2)
    adas = asyncio.create_task(deployment.client(slow, 0).book_slot(slot_id))
    also_ada = deployment.client(other, 0)
    await asyncio.to_thread(releasing.wait_until_reached)
    run_out(deployment, slot_id)
    if her_own:
        booking_id = (await also_ada.fetch_slot(slot_id))["myBooking"]["id"]
        nexts = asyncio.create_task(also_ada.cancel_booking(booking_id, wait=0))
    else:
        nexts = asyncio.create_task(deployment.client(other, 1).book_slot(slot_id))
    await asyncio.to_thread(committing.wait_until_reached)
    held = deployment.redis.get(lock_key(slot_id))
    releasing.resume()
    await adas
    left = deployment.redis.get(lock_key(slot_id))
    committing.resume()
    await nexts
    return held, left


async def test_a_release_compares_and_deletes_in_one_step(deployment: Deployment) -> None:
    held, left = await release_after_the_lock_ran_out(deployment, "release")
    assert held is not None
    assert left == held


async def test_control_without_one_step_a_release_deletes_what_it_did_not_compare(
    deployment: Deployment,
) -> None:
    held, left = await release_after_the_lock_ran_out(
        deployment, "between-steps", "one-step-release"
    )
    assert held is not None
    assert left is None


async def test_a_person_who_asks_twice_does_not_free_their_own_second_lock(
    deployment: Deployment,
) -> None:
    held, left = await release_after_the_lock_ran_out(deployment, "release", her_own=True)
    assert held is not None
    assert left == held


async def test_control_without_a_token_an_acquisition_a_person_frees_their_own_second_lock(
    deployment: Deployment,
) -> None:
    held, left = await release_after_the_lock_ran_out(
        deployment, "release", "token-per-acquisition", her_own=True
    )
    assert held is not None
    assert left is None


async def refused(deployment: Deployment, app: AppProcess) -> bool:
    """Whether a slot is still locked when somebody was told that it is full."""
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    assert (await ada.book_slot(slot_id))["__typename"] == "Booked"
    assert (await ben.book_slot(slot_id))["__typename"] == "SlotFull"
    return bool(deployment.redis.exists(lock_key(slot_id)))


async def test_a_refusal_leaves_no_lock(deployment: Deployment, two_apps: Pair) -> None:
    assert not await refused(deployment, two_apps[0])


async def test_control_without_finally_a_refusal_leaves_the_lock(deployment: Deployment) -> None:
    assert await refused(deployment, deployment.app("finally"))


async def failed(deployment: Deployment, off: str) -> tuple[bool, str]:
    """Whether a slot is still locked after an error, and what the next person is told."""
    app = deployment.app(f"first-write {off}")
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    assert "errors" in await ada.send(
        "mutation($id: ID!) { bookSlot(input: {slotId: $id}) { __typename } }", id=slot_id
    )
    locked = bool(deployment.redis.exists(lock_key(slot_id)))
    return locked, (await ben.book_slot(slot_id))["__typename"]


async def test_an_error_leaves_no_lock(deployment: Deployment) -> None:
    assert await failed(deployment, "") == (False, "Booked")


async def test_control_without_finally_an_error_leaves_the_lock(deployment: Deployment) -> None:
    assert await failed(deployment, "finally") == (True, "Locked")


async def locked_besides(deployment: Deployment, app: AppProcess) -> list[bool]:
    """Which of two slots are locked after somebody wanted both, of which the second was locked."""
    slot_ids = sorted([await deployment.add_slot(app), await deployment.add_slot(app)])
    deployment.redis.set(lock_key(slot_ids[1]), SOMEBODY, px=10_000)
    claims = [{"slotId": slot_id} for slot_id in slot_ids]
    assert (await deployment.client(app, 0).book_all(*claims))["__typename"] == "Locked"
    locked = [bool(deployment.redis.exists(lock_key(slot_id))) for slot_id in slot_ids]
    deployment.redis.delete(*map(lock_key, slot_ids))
    return locked


async def test_who_does_not_get_all_the_locks_keeps_none(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await locked_besides(deployment, two_apps[0]) == [False, True]


async def test_control_without_all_locks_or_none_a_loser_keeps_some(deployment: Deployment) -> None:
    assert await locked_besides(deployment, deployment.app("all-locks")) == [True, True]


async def life_left(deployment: Deployment, app: AppProcess) -> int:
    """How many ms a dead holder's lock, that had 5,000, has when somebody was refused by it."""
    slot_id = await deployment.add_slot(app)
    deployment.redis.set(lock_key(slot_id), SOMEBODY, px=5_000)
    assert (await deployment.client(app, 0).book_slot(slot_id))["__typename"] == "Locked"
    life: int = deployment.redis.pttl(lock_key(slot_id))
    deployment.redis.delete(lock_key(slot_id))
    return life


async def test_who_is_refused_does_not_lengthen_a_dead_holders_lock(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await life_left(deployment, two_apps[0]) <= 5_000


async def test_control_without_that_losers_keep_a_dead_holders_lock_alive(
    deployment: Deployment,
) -> None:
    assert await life_left(deployment, deployment.app("no-extension-by-losers")) > 5_000
