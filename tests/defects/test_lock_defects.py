"""Defects of the locks of five published designs: each occurs without its guard, and only then."""

import asyncio

import pytest

from slotlock.infrastructure.redis.keys import HOLD_SWEEPER_LOCK
from tests.support.apps.deployment import Deployment, kill_at_pause, lock_key
from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.client import BOOK_SLOT
from tests.support.polling import wait_until

OTHER_OWNER = f"{'0' * 48}:1"


def expire_lock(deployment: Deployment, slot_id: str) -> None:
    """Let the lock of a slot expire now, if it has not expired on a busy machine."""
    deployment.redis.pexpire(lock_key(slot_id), 1)
    wait_until(lambda: not deployment.redis.exists(lock_key(slot_id)), "the lock expired")


def is_locked(deployment: Deployment, slot_id: str) -> bool:
    """Return whether a slot is locked."""
    return bool(deployment.redis.exists(lock_key(slot_id)))


@pytest.mark.parametrize(
    ("without", "point", "same_user", "is_deleted"),
    [
        ("", "release", False, False),
        ("", "release", True, False),
        ("one-step-release", "between-steps", False, True),
        ("lock-owner", "release", False, True),
        ("token-per-acquisition", "release", True, True),
    ],
)
async def test_a_release_leaves_the_lock_of_another_request_even_of_the_same_user(
    deployment: Deployment, without: str, point: str, same_user: bool, is_deleted: bool
) -> None:
    slow_app, before_release = deployment.paused_app(point, without)
    app, before_commit = deployment.paused_app("commit", without if same_user else "")
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
    lock = deployment.redis.get(lock_key(slot_id))
    assert lock is not None
    deployment.redis.persist(lock_key(slot_id))  # no stall of the machine ends it
    before_release.resume()
    await first
    await deployment.wait_for_releases(slow_app)
    assert deployment.redis.get(lock_key(slot_id)) == (None if is_deleted else lock)
    before_commit.resume()
    await second


@pytest.mark.parametrize(("without", "stays_locked"), [("", False), ("finally", True)])
async def test_a_refusal_leaves_no_lock(
    deployment: Deployment, app: AppProcess, without: str, stays_locked: bool
) -> None:
    slot_id = await deployment.add_slot(app, capacity=2)
    ada = deployment.client(app, 0)
    assert (await ada.book_slot(slot_id))["__typename"] == "Booked"
    assert (await ada.book_slot(slot_id))["__typename"] == "AlreadyBooked"
    await deployment.wait_for_releases(app)
    assert is_locked(deployment, slot_id) == stays_locked


@pytest.mark.parametrize(("without", "outcome"), [("", "Booked"), ("finally", "Locked")])
async def test_an_error_leaves_no_lock(deployment: Deployment, without: str, outcome: str) -> None:
    app = deployment.app(f"first-write {without}")
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    assert "errors" in await ada.send(BOOK_SLOT, slot=slot_id)
    await deployment.wait_for_releases(app)
    assert is_locked(deployment, slot_id) == (outcome == "Locked")
    assert (await ben.book_slot(slot_id, waitMs=0))["__typename"] == outcome


@pytest.mark.parametrize(
    ("without", "are_locked"), [("", [False, True]), ("all-locks", [True, True])]
)
async def test_a_request_that_does_not_get_all_locks_holds_none(
    deployment: Deployment, app: AppProcess, without: str, are_locked: list[bool]
) -> None:
    slot_ids = sorted([await deployment.add_slot(app), await deployment.add_slot(app)])
    deployment.redis.set(lock_key(slot_ids[1]), OTHER_OWNER, px=600_000)
    claims = [{"slotId": slot_id} for slot_id in slot_ids]
    assert (await deployment.client(app, 0).book_all(*claims, waitMs=0))["__typename"] == "Locked"
    await deployment.wait_for_releases(app)
    assert [is_locked(deployment, slot_id) for slot_id in slot_ids] == are_locked
    deployment.redis.delete(*map(lock_key, slot_ids))


@pytest.mark.parametrize(
    ("without", "is_extended"), [("", False), ("no-extension-by-losers", True)]
)
async def test_a_refused_request_does_not_extend_a_dead_holders_lock(
    deployment: Deployment, app: AppProcess, without: str, is_extended: bool
) -> None:
    slot_id = await deployment.add_slot(app)
    deployment.redis.set(lock_key(slot_id), OTHER_OWNER, px=5_000)
    outcome = await deployment.client(app, 0).book_slot(slot_id, waitMs=0)
    assert outcome["__typename"] == "Locked"
    assert (deployment.redis.pttl(lock_key(slot_id)) > 5_000) == is_extended
    deployment.redis.delete(lock_key(slot_id))


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize(
    ("without", "adas_outcome"), [("", "SlotFull"), ("slot-version", "Booked")]
)
async def test_a_write_after_a_lost_lock_does_not_overwrite_another(
    deployment: Deployment, two_apps: Pair, without: str, adas_outcome: str, flush: bool
) -> None:
    slow_app, before_commit = deployment.paused_app("commit", without)
    slot_id = await deployment.add_slot(two_apps[0])
    adas = asyncio.create_task(deployment.client(slow_app, 0).book_slot(slot_id))
    await asyncio.to_thread(before_commit.wait_until_reached)
    if flush:
        deployment.redis.flushall()
    else:
        expire_lock(deployment, slot_id)
    bens = await deployment.client(two_apps[0], 1).book_slot(slot_id)
    before_commit.resume()
    assert ((await adas)["__typename"], bens["__typename"]) == (adas_outcome, "Booked")
    acknowledged = [each for each in (await adas, bens) if each["__typename"] == "Booked"]
    booking_ids = {each["booking"]["id"][-24:] for each in acknowledged}
    assert deployment.booking_ids(slot_id) == booking_ids


@pytest.mark.parametrize(("without", "expires"), [("", True), ("ttl", False)])
async def test_a_process_killed_between_write_and_release_loses_no_booking(
    deployment: Deployment, two_apps: Pair, without: str, expires: bool
) -> None:
    slow_app, before_release = deployment.paused_app("release", without)
    slot_id = await deployment.add_slot(slow_app, capacity=2)
    await kill_at_pause(before_release, slow_app, deployment.client(slow_app, 0).book_slot(slot_id))
    remaining_ms = deployment.redis.pttl(lock_key(slot_id))
    if not expires:
        assert remaining_ms == -1
        # The killed process may also have had the lease of the sweeper, which later tests need.
        deployment.redis.delete(lock_key(slot_id), lock_key(HOLD_SWEEPER_LOCK))
        return
    assert 0 < remaining_ms <= 10_000
    ada, ben = deployment.clients(two_apps[0], 2)
    assert (await ben.book_slot(slot_id, waitMs=0))["__typename"] == "Locked"
    expire_lock(deployment, slot_id)
    assert (await ben.book_slot(slot_id))["__typename"] == "Booked"
    assert (await ada.book_slot(slot_id))["__typename"] == "AlreadyBooked"
    assert len(deployment.consistent_booking_ids(slot_id)) == 2
