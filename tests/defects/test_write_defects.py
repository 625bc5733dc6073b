"""Defects of five published designs in writes to MongoDB: each occurs only without its guard."""

import asyncio

import pytest

from tests.support.apps.deployment import Deployment, assert_slot_consistent, kill_at_pause
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import BOOK_SLOT


def booked_and_free(deployment: Deployment, slot_id: str) -> tuple[int, int]:
    """Return the number of bookings of a slot and of its free places."""
    slot = deployment.slot_document(slot_id)
    return len(slot["bookings"]), slot["remaining"]


@pytest.mark.parametrize(
    ("without", "expected"), [("", (0, 2)), ("lock slot-version relative-counts", (0, 1))]
)
async def test_two_concurrent_cancellations_free_two_places(
    deployment: Deployment, app: AppProcess, without: str, expected: tuple[int, int]
) -> None:
    slow_app, pause_point = deployment.paused_app("commit", without)
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
    assert booked_and_free(deployment, slot_id) == expected


@pytest.mark.parametrize(
    ("without", "expected"), [("", (2, 0)), ("slot-version relative-counts", (3, 1))]
)
async def test_a_count_that_was_read_before_the_lock_was_lost_is_not_written(
    deployment: Deployment,
    two_apps: tuple[AppProcess, AppProcess],
    without: str,
    expected: tuple[int, int],
) -> None:
    slow_app, pause_point = deployment.paused_app("commit", without)
    slot_id = await deployment.add_slot(two_apps[0], capacity=2)
    adas = asyncio.create_task(deployment.client(slow_app, 0).book_slot(slot_id))
    await asyncio.to_thread(pause_point.wait_until_reached)
    deployment.redis.flushall()
    for number in (1, 2):
        outcome = await deployment.client(two_apps[0], number).book_slot(slot_id)
        assert outcome["__typename"] == "Booked"
    pause_point.resume()
    await adas
    assert booked_and_free(deployment, slot_id) == expected


@pytest.mark.parametrize(
    ("without", "point", "is_recorded"),
    [("", "record", False), ("", "transaction", False), ("transaction", "record", True)],
)
async def test_a_killed_cancellation_leaves_the_booking_unchanged(
    deployment: Deployment, without: str, point: str, is_recorded: bool
) -> None:
    app, pause_point = deployment.paused_app(point, without)
    slot_id = await deployment.add_slot(app)
    ada = deployment.client(app, 0)
    booking_id = (await ada.book_slot(slot_id))["booking"]["id"]
    await kill_at_pause(pause_point, app, ada.cancel_booking(booking_id))
    assert deployment.booking_ids(slot_id) == {booking_id[-24:]}
    assert (deployment.ended_booking(booking_id) is not None) == is_recorded
    assert deployment.slot_document(slot_id)["remaining"] == 0


@pytest.mark.parametrize(("without", "outcome"), [("", "SlotFull"), ("counts-in-mongo", "Booked")])
async def test_a_redis_that_lost_everything_frees_no_place(
    deployment: Deployment, app: AppProcess, without: str, outcome: str
) -> None:
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    assert (await ada.book_slot(slot_id))["__typename"] == "Booked"
    assert (await ben.book_slot(slot_id))["__typename"] == "SlotFull"
    deployment.redis.flushall()
    assert (await ben.book_slot(slot_id))["__typename"] == outcome


@pytest.mark.parametrize(
    ("without", "point", "expected"),
    [("", "commit", (0, 2)), ("", "release", (1, 1)), ("one-write", "between-steps", (0, 1))],
)
async def test_a_process_killed_before_or_after_the_write_leaves_the_place_free_or_booked(
    deployment: Deployment, without: str, point: str, expected: tuple[int, int]
) -> None:
    app, pause_point = deployment.paused_app(point, without)
    slot_id = await deployment.add_slot(app, capacity=2)
    await kill_at_pause(pause_point, app, deployment.client(app, 0).book_slot(slot_id))
    assert booked_and_free(deployment, slot_id) == expected


@pytest.mark.parametrize(("without", "outcome"), [("", "Booked"), ("no-redis-counter", "SlotFull")])
async def test_an_error_takes_no_place(deployment: Deployment, without: str, outcome: str) -> None:
    app = deployment.app(f"first-write {without}")
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    assert "errors" in await ada.send(BOOK_SLOT, slot=slot_id)
    assert (await ben.book_slot(slot_id))["__typename"] == outcome
    assert_slot_consistent(deployment.slot_document(slot_id), int(outcome == "Booked"))


@pytest.mark.parametrize(("without", "outcome"), [("", "SlotFull"), ("refusals", "Booked")])
async def test_a_booking_that_is_reported_exists(
    deployment: Deployment, app: AppProcess, without: str, outcome: str
) -> None:
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    await ada.book_slot(slot_id)
    assert (await ben.book_slot(slot_id))["__typename"] == outcome
    assert (await ben.fetch_slot(slot_id))["myBooking"] is None
