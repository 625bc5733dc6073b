"""What the five designs wrote wrong: each defect bites without its guard and is gone with it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.apps.deployment import (
    Deployment,
    assert_slot_consistent,
    kill_at_pause,
    open_deployment,
)
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import BOOK_SLOT

Pair = tuple[AppProcess, AppProcess]
AS_D2 = "lock slot-version relative-counts"


@pytest.fixture
async def deployment(two_apps: Pair, log_dir: Path) -> AsyncIterator[Deployment]:
    """A scene beside two processes that lack nothing."""
    async with open_deployment(two_apps[0].environment, log_dir) as deployment:
        yield deployment


async def two_drop_at_once(deployment: Deployment, app: AppProcess, off: str) -> tuple[int, int]:
    """Ada is about to write that she drops a course when Ben drops it: places taken, and left."""
    slow, stage = deployment.paused_app("commit", off)
    slot_id = await deployment.add_slot(app, capacity=2)
    bookings = [
        (await each.book_slot(slot_id))["booking"]["id"] for each in deployment.clients(app, 2)
    ]
    adas = asyncio.create_task(deployment.client(slow, 0).cancel_booking(bookings[0]))
    await asyncio.to_thread(stage.wait_until_reached)
    deployment.redis.flushall()  # so that Ben need not wait for Ada
    bens = await deployment.client(app, 1).cancel_booking(bookings[1])
    stage.resume()
    assert [o["__typename"] for o in (await adas, bens)] == ["BookingCancelled"] * 2
    truth = deployment.slot_document(slot_id)
    return len(truth["bookings"]), truth["remaining"]


async def test_two_who_drop_at_once_both_free_their_place(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await two_drop_at_once(deployment, two_apps[0], off="") == (0, 2)


async def test_control_without_guards_of_a_drop_one_of_two_places_is_lost(
    deployment: Deployment,
) -> None:
    assert await two_drop_at_once(deployment, deployment.app(AS_D2), AS_D2) == (0, 1)


async def late_stock(deployment: Deployment, app: AppProcess, off: str) -> tuple[int, int]:
    """Ada is about to write when her lock is lost and two others book: places taken, and left."""
    slow, stage = deployment.paused_app("commit", off)
    slot_id = await deployment.add_slot(app, capacity=2)
    adas = asyncio.create_task(deployment.client(slow, 0).book_slot(slot_id))
    await asyncio.to_thread(stage.wait_until_reached)
    deployment.redis.flushall()
    for number in (1, 2):
        assert (await deployment.client(app, number).book_slot(slot_id))["__typename"] == "Booked"
    stage.resume()
    await adas
    truth = deployment.slot_document(slot_id)
    return len(truth["bookings"]), truth["remaining"]


async def test_a_stock_read_before_the_lock_was_lost_is_not_written(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await late_stock(deployment, two_apps[0], off="") == (2, 0)


async def test_control_without_relative_counts_a_late_stock_sells_a_place_again(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await late_stock(deployment, two_apps[0], "slot-version relative-counts") == (3, 1)


async def killed_while_cancelling(
    deployment: Deployment, point: str, off: str
) -> tuple[bool, bool, int]:
    """Ada's process dies while she cancels: is her booking live, is it kept as ended, places."""
    doomed, stage = deployment.paused_app(point, off)
    slot_id = await deployment.add_slot(doomed)
    ada = deployment.client(doomed, 0)
    booking_id = (await ada.book_slot(slot_id))["booking"]["id"]
    await kill_at_pause(stage, doomed, ada.cancel_booking(booking_id))
    return (
        booking_id[-24:] in deployment.booking_ids(slot_id),
        deployment.ended_booking(booking_id) is not None,
        deployment.slot_document(slot_id)["remaining"],
    )


@pytest.mark.parametrize("point", ["record", "transaction"])
async def test_a_booking_whose_cancellation_was_cut_short_is_as_before(
    deployment: Deployment, point: str
) -> None:
    assert await killed_while_cancelling(deployment, point, "") == (True, False, 0)


async def test_control_without_a_transaction_a_live_booking_is_recorded_as_ended(
    deployment: Deployment,
) -> None:
    assert await killed_while_cancelling(deployment, "record", "transaction") == (True, True, 0)


async def after_the_cache_is_lost(deployment: Deployment, app: AppProcess) -> str:
    """What somebody is told who wants the only place, taken before Redis lost everything."""
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    assert (await ada.book_slot(slot_id))["__typename"] == "Booked"
    assert (await ben.book_slot(slot_id))["__typename"] == "SlotFull"
    deployment.redis.flushall()
    return str((await ben.book_slot(slot_id))["__typename"])


async def test_a_redis_that_lost_everything_gives_no_place_back(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await after_the_cache_is_lost(deployment, two_apps[0]) == "SlotFull"


async def test_control_without_the_truth_in_mongodb_an_empty_cache_sells_all_places_again(
    deployment: Deployment,
) -> None:
    assert await after_the_cache_is_lost(deployment, deployment.app("counts-in-mongo")) == "Booked"


async def killed_while_booking(deployment: Deployment, point: str, off: str) -> tuple[int, int]:
    """Ada's process dies while she books: how many bookings there are, and places left."""
    doomed, stage = deployment.paused_app(point, off)
    slot_id = await deployment.add_slot(doomed, capacity=2)
    await kill_at_pause(stage, doomed, deployment.client(doomed, 0).book_slot(slot_id))
    truth = deployment.slot_document(slot_id)
    return len(truth["bookings"]), truth["remaining"]


async def test_killed_before_the_write_a_place_is_free(deployment: Deployment) -> None:
    assert await killed_while_booking(deployment, "commit", "") == (0, 2)


async def test_killed_after_the_write_a_place_is_taken(deployment: Deployment) -> None:
    assert await killed_while_booking(deployment, "release", "") == (1, 1)


async def test_control_without_one_write_for_count_and_booking_a_place_is_nobodys(
    deployment: Deployment,
) -> None:
    assert await killed_while_booking(deployment, "between-steps", "one-write") == (0, 1)


async def after_an_error(deployment: Deployment, off: str) -> str:
    """What somebody is told who wants the only place, when another's booking was an error."""
    app = deployment.app(f"first-write {off}")
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    assert "errors" in await ada.send(BOOK_SLOT, slot=slot_id)
    outcome = await ben.book_slot(slot_id)
    assert_slot_consistent(
        deployment.slot_document(slot_id), int(outcome["__typename"] == "Booked")
    )
    return str(outcome["__typename"])


async def test_an_error_costs_no_place(deployment: Deployment) -> None:
    assert await after_an_error(deployment, "") == "Booked"


async def test_control_without_one_count_a_place_is_lost_with_an_error(
    deployment: Deployment,
) -> None:
    assert await after_an_error(deployment, "no-redis-counter") == "SlotFull"


async def late_comer(deployment: Deployment, app: AppProcess) -> tuple[str, bool]:
    """What somebody is told who wants a place that is taken, and whether they have one."""
    slot_id = await deployment.add_slot(app)
    ada, ben = deployment.clients(app, 2)
    await ada.book_slot(slot_id)
    outcome = await ben.book_slot(slot_id)
    return outcome["__typename"], (await ben.fetch_slot(slot_id))["myBooking"] is not None


async def test_who_is_told_booked_is_booked(deployment: Deployment, two_apps: Pair) -> None:
    assert await late_comer(deployment, two_apps[0]) == ("SlotFull", False)


async def test_control_without_refusals_sold_out_is_answered_as_success(
    deployment: Deployment,
) -> None:
    assert await late_comer(deployment, deployment.app("refusals")) == ("Booked", False)
