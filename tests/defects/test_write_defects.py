"""Defects of five published designs in writes to MongoDB: each occurs only without its guard."""

import asyncio

import pytest

from tests.support.apps.deployment import Deployment, assert_slot_consistent, kill_at_pause
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import BOOK_SLOT

Pair = tuple[AppProcess, AppProcess]
GUARDS_MISSING_IN_D2 = "lock slot-version relative-counts"


async def cancel_two_at_once(
    deployment: Deployment, app: AppProcess, without_guards: str
) -> tuple[int, int]:
    """Let Ben cancel while Ada's cancellation is about to commit.

    Returns the number of bookings and of free places.
    """
    slow_app, pause_point = deployment.paused_app("commit", without_guards)
    slot_id = await deployment.add_slot(app, capacity=2)
    ada, ben = deployment.clients(app, 2)
    booking_ids = [(await each.book_slot(slot_id))["booking"]["id"] for each in (ada, ben)]
    slow_ada = deployment.client(slow_app, 0)
    adas = asyncio.create_task(slow_ada.cancel_booking(booking_ids[0]))
    await asyncio.to_thread(pause_point.wait_until_reached)
    deployment.redis.flushall()  # so that Ben need not wait for Ada
    bens = await ben.cancel_booking(booking_ids[1])
    pause_point.resume()
    for outcome in (await adas, bens):
        assert outcome["__typename"] == "BookingCancelled"
    slot = deployment.slot_document(slot_id)
    return len(slot["bookings"]), slot["remaining"]


async def test_two_concurrent_cancellations_free_two_places(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await cancel_two_at_once(deployment, two_apps[0], "") == (0, 2)


async def test_control_without_guards_two_concurrent_cancellations_free_one_place(
    deployment: Deployment,
) -> None:
    app = deployment.app(GUARDS_MISSING_IN_D2)
    assert await cancel_two_at_once(deployment, app, GUARDS_MISSING_IN_D2) == (0, 1)


async def commit_outdated_count(
    deployment: Deployment, app: AppProcess, without_guards: str
) -> tuple[int, int]:
    """Let two users book after Ada lost her lock and before her booking commits.

    Returns the number of bookings and of free places.
    """
    slow_app, pause_point = deployment.paused_app("commit", without_guards)
    slot_id = await deployment.add_slot(app, capacity=2)
    adas = asyncio.create_task(deployment.client(slow_app, 0).book_slot(slot_id))
    await asyncio.to_thread(pause_point.wait_until_reached)
    deployment.redis.flushall()
    for number in (1, 2):
        outcome = await deployment.client(app, number).book_slot(slot_id)
        assert outcome["__typename"] == "Booked"
    pause_point.resume()
    await adas
    slot = deployment.slot_document(slot_id)
    return len(slot["bookings"]), slot["remaining"]


async def test_a_count_that_was_read_before_the_lock_was_lost_is_not_written(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await commit_outdated_count(deployment, two_apps[0], "") == (2, 0)


async def test_control_without_relative_counts_an_outdated_count_sells_a_place_twice(
    deployment: Deployment, two_apps: Pair
) -> None:
    guards = "slot-version relative-counts"
    assert await commit_outdated_count(deployment, two_apps[0], guards) == (3, 1)


async def kill_during_cancellation(
    deployment: Deployment, point: str, without_guards: str
) -> tuple[bool, bool, int]:
    """Kill the process that cancels Ada's booking.

    Returns whether the booking is live, whether it is recorded as ended, and the free places.
    """
    app, pause_point = deployment.paused_app(point, without_guards)
    slot_id = await deployment.add_slot(app)
    ada = deployment.client(app, 0)
    booking_id = (await ada.book_slot(slot_id))["booking"]["id"]
    await kill_at_pause(pause_point, app, ada.cancel_booking(booking_id))
    return (
        booking_id[-24:] in deployment.booking_ids(slot_id),
        deployment.ended_booking(booking_id) is not None,
        deployment.slot_document(slot_id)["remaining"],
    )


@pytest.mark.parametrize("point", ["record", "transaction"])
async def test_a_killed_cancellation_leaves_the_booking_unchanged(
    deployment: Deployment, point: str
) -> None:
    assert await kill_during_cancellation(deployment, point, "") == (True, False, 0)


async def test_control_without_a_transaction_a_live_booking_is_recorded_as_ended(
    deployment: Deployment,
) -> None:
    assert await kill_during_cancellation(deployment, "record", "transaction") == (True, True, 0)


async def book_after_redis_loss(deployment: Deployment, app: AppProcess) -> str:
    """Return the outcome of a booking of the only place, which was taken before Redis lost it."""
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    assert (await ada.book_slot(slot_id))["__typename"] == "Booked"
    assert (await ben.book_slot(slot_id))["__typename"] == "SlotFull"
    deployment.redis.flushall()
    return str((await ben.book_slot(slot_id))["__typename"])


async def test_a_redis_that_lost_everything_frees_no_place(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await book_after_redis_loss(deployment, two_apps[0]) == "SlotFull"


async def test_control_with_counts_in_redis_a_lost_counter_sells_all_places_again(
    deployment: Deployment,
) -> None:
    assert await book_after_redis_loss(deployment, deployment.app("counts-in-mongo")) == "Booked"


async def kill_during_booking(
    deployment: Deployment, point: str, without_guards: str
) -> tuple[int, int]:
    """Kill the process that books for Ada. Returns the number of bookings and of free places."""
    app, pause_point = deployment.paused_app(point, without_guards)
    slot_id = await deployment.add_slot(app, capacity=2)
    await kill_at_pause(pause_point, app, deployment.client(app, 0).book_slot(slot_id))
    slot = deployment.slot_document(slot_id)
    return len(slot["bookings"]), slot["remaining"]


async def test_a_process_killed_before_the_write_leaves_the_place_free(
    deployment: Deployment,
) -> None:
    assert await kill_during_booking(deployment, "commit", "") == (0, 2)


async def test_a_process_killed_after_the_write_leaves_the_place_booked(
    deployment: Deployment,
) -> None:
    assert await kill_during_booking(deployment, "release", "") == (1, 1)


async def test_control_with_two_writes_a_killed_process_takes_a_place_without_a_booking(
    deployment: Deployment,
) -> None:
    assert await kill_during_booking(deployment, "between-steps", "one-write") == (0, 1)


async def book_after_error(deployment: Deployment, without_guards: str) -> str:
    """Return the outcome of a booking of the only place after another booking failed."""
    app = deployment.app(f"first-write {without_guards}")
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    assert "errors" in await ada.send(BOOK_SLOT, slot=slot_id)
    outcome = await ben.book_slot(slot_id)
    slot = deployment.slot_document(slot_id)
    assert_slot_consistent(slot, int(outcome["__typename"] == "Booked"))
    return str(outcome["__typename"])


async def test_an_error_takes_no_place(deployment: Deployment) -> None:
    assert await book_after_error(deployment, "") == "Booked"


async def test_control_with_a_counter_in_redis_an_error_takes_a_place(
    deployment: Deployment,
) -> None:
    assert await book_after_error(deployment, "no-redis-counter") == "SlotFull"


async def book_full_slot(deployment: Deployment, app: AppProcess) -> tuple[str, bool]:
    """Return the outcome of a booking in a full slot, and whether the user has a booking."""
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    await ada.book_slot(slot_id)
    outcome = await ben.book_slot(slot_id)
    return outcome["__typename"], (await ben.fetch_slot(slot_id))["myBooking"] is not None


async def test_a_booking_that_is_reported_exists(deployment: Deployment, two_apps: Pair) -> None:
    assert await book_full_slot(deployment, two_apps[0]) == ("SlotFull", False)


async def test_control_without_refusals_a_booking_in_a_full_slot_is_reported_as_success(
    deployment: Deployment,
) -> None:
    assert await book_full_slot(deployment, deployment.app("refusals")) == ("Booked", False)
