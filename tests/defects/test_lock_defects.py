"""Defects of the locks of five published designs: each occurs without its guard, and only then."""

import asyncio

from tests.support.apps.deployment import Deployment, lock_key
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import BOOK_SLOT
from tests.support.polling import wait_until

Pair = tuple[AppProcess, AppProcess]
OTHER_OWNER = f"{'0' * 48}:1"


def expire_lock(deployment: Deployment, slot_id: str) -> None:
    """Let the lock of a slot expire now."""
    assert deployment.redis.pexpire(lock_key(slot_id), 1)
    wait_until(lambda: not deployment.redis.exists(lock_key(slot_id)), "the lock expired")


async def release_expired_lock(
    deployment: Deployment, point: str, without_guards: str = "", *, same_user: bool = False
) -> tuple[object, object]:
    """Let Ada release a lock that has expired and that another request holds by now.

    The other request is Ben's, or a cancellation by Ada herself. Returns its lock before and after
    the release.
    """
    (slow_app, before_release), (app, before_commit) = (
        deployment.paused_app(point, without_guards),
        deployment.paused_app("commit", without_guards),
    )
    slot_id = await deployment.add_slot(app, capacity=2)
    first = asyncio.create_task(deployment.client(slow_app, 0).book_slot(slot_id))
    await asyncio.to_thread(before_release.wait_until_reached)
    expire_lock(deployment, slot_id)
    if same_user:
        ada = deployment.client(app, 0)
        booking_id = (await ada.fetch_slot(slot_id))["myBooking"]["id"]
        second = asyncio.create_task(ada.cancel_booking(booking_id, wait=0))
    else:
        second = asyncio.create_task(deployment.client(app, 1).book_slot(slot_id))
    await asyncio.to_thread(before_commit.wait_until_reached)
    lock_before = deployment.redis.get(lock_key(slot_id))
    before_release.resume()
    await first
    await deployment.wait_for_releases(slow_app)
    lock_after = deployment.redis.get(lock_key(slot_id))
    before_commit.resume()
    await second
    return lock_before, lock_after


async def test_a_release_compares_and_deletes_in_one_step(deployment: Deployment) -> None:
    before, after = await release_expired_lock(deployment, "release")
    assert before is not None
    assert after == before


async def test_control_a_release_in_two_steps_deletes_the_lock_of_another(
    deployment: Deployment,
) -> None:
    before, after = await release_expired_lock(deployment, "between-steps", "one-step-release")
    assert before is not None
    assert after is None


async def test_a_second_request_of_a_user_retains_its_lock_when_the_first_one_releases(
    deployment: Deployment,
) -> None:
    before, after = await release_expired_lock(deployment, "release", same_user=True)
    assert before is not None
    assert after == before


async def test_control_with_one_token_per_user_the_first_request_deletes_the_lock_of_the_second(
    deployment: Deployment,
) -> None:
    before, after = await release_expired_lock(
        deployment, "release", "token-per-acquisition", same_user=True
    )
    assert before is not None
    assert after is None


async def is_locked_after_refusal(deployment: Deployment, app: AppProcess) -> bool:
    """Return whether a slot with a free place is locked after it refused a booking."""
    slot_id = await deployment.add_slot(app, capacity=2)
    ada = deployment.client(app, 0)
    assert (await ada.book_slot(slot_id))["__typename"] == "Booked"
    assert (await ada.book_slot(slot_id))["__typename"] == "AlreadyBooked"
    await deployment.wait_for_releases(app)
    return bool(deployment.redis.exists(lock_key(slot_id)))


async def test_a_refusal_leaves_no_lock(deployment: Deployment, two_apps: Pair) -> None:
    assert not await is_locked_after_refusal(deployment, two_apps[0])


async def test_control_without_finally_a_refusal_leaves_the_lock(deployment: Deployment) -> None:
    assert await is_locked_after_refusal(deployment, deployment.app("finally"))


async def lock_and_outcome_after_error(
    deployment: Deployment, without_guards: str
) -> tuple[bool, str]:
    """Return whether a slot is locked after an error, and the outcome of the next booking."""
    app = deployment.app(f"first-write {without_guards}")
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    assert "errors" in await ada.send(BOOK_SLOT, slot=slot_id)
    await deployment.wait_for_releases(app)
    is_locked = bool(deployment.redis.exists(lock_key(slot_id)))
    return is_locked, (await ben.book_slot(slot_id))["__typename"]


async def test_an_error_leaves_no_lock(deployment: Deployment) -> None:
    assert await lock_and_outcome_after_error(deployment, "") == (False, "Booked")


async def test_control_without_finally_an_error_leaves_the_lock(deployment: Deployment) -> None:
    assert await lock_and_outcome_after_error(deployment, "finally") == (True, "Locked")


async def locks_after_failed_acquisition(deployment: Deployment, app: AppProcess) -> list[bool]:
    """Return which of two slots are locked after a request for both, if the second was locked."""
    slot_ids = sorted([await deployment.add_slot(app), await deployment.add_slot(app)])
    deployment.redis.set(lock_key(slot_ids[1]), OTHER_OWNER, px=10_000)
    claims = [{"slotId": slot_id} for slot_id in slot_ids]
    assert (await deployment.client(app, 0).book_all(*claims))["__typename"] == "Locked"
    await deployment.wait_for_releases(app)
    locked = [bool(deployment.redis.exists(lock_key(slot_id))) for slot_id in slot_ids]
    deployment.redis.delete(*map(lock_key, slot_ids))
    return locked


async def test_a_request_that_does_not_get_all_locks_holds_none(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await locks_after_failed_acquisition(deployment, two_apps[0]) == [False, True]


async def test_control_without_all_or_none_a_failed_request_holds_some_locks(
    deployment: Deployment,
) -> None:
    app = deployment.app("all-locks")
    assert await locks_after_failed_acquisition(deployment, app) == [True, True]


async def ttl_after_refusal(deployment: Deployment, app: AppProcess) -> int:
    """Return the remaining ms of a dead holder's lock of 5,000 ms after it refused a request."""
    slot_id = await deployment.add_slot(app)
    deployment.redis.set(lock_key(slot_id), OTHER_OWNER, px=5_000)
    assert (await deployment.client(app, 0).book_slot(slot_id))["__typename"] == "Locked"
    ttl_ms: int = deployment.redis.pttl(lock_key(slot_id))
    deployment.redis.delete(lock_key(slot_id))
    return ttl_ms


async def test_a_refused_request_does_not_extend_a_dead_holders_lock(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await ttl_after_refusal(deployment, two_apps[0]) <= 5_000


async def test_control_refused_requests_extend_a_dead_holders_lock(deployment: Deployment) -> None:
    assert await ttl_after_refusal(deployment, deployment.app("no-extension-by-losers")) > 5_000
