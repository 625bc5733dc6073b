"""What the five designs wrote wrong: each defect bites without its guard and is gone with it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.client import BOOK
from tests.support.processes import AppProcess
from tests.support.stage import Scene, assert_whole, killed_at, scene_on

Pair = tuple[AppProcess, AppProcess]
AS_D2 = "lock version relative-counts"


@pytest.fixture
async def scene(two_apps: Pair, logs: Path) -> AsyncIterator[Scene]:
    """A scene beside two processes that lack nothing."""
    async with scene_on(two_apps[0].environment, logs) as scene:
        yield scene


async def two_drop_at_once(scene: Scene, app: AppProcess, off: str) -> tuple[int, int]:
    """Ada is about to write that she drops a course when Ben drops it: places taken, and left."""
    slow, stage = scene.paused("commit", off)
    slot_id = await scene.slot(app, capacity=2)
    bookings = [(await each.wish(slot_id))["booking"]["id"] for each in scene.people(app, 2)]
    adas = asyncio.create_task(scene.person(slow, 0).give_back(bookings[0]))
    await asyncio.to_thread(stage.wait_until_reached)
    scene.redis.flushall()  # so that Ben need not wait for Ada
    bens = await scene.person(app, 1).give_back(bookings[1])
    stage.go()
    assert [o["__typename"] for o in (await adas, bens)] == ["BookingCancelled"] * 2
    truth = scene.truth(slot_id)
    return len(truth["bookings"]), truth["remaining"]


async def test_two_who_drop_at_once_both_free_their_place(scene: Scene, two_apps: Pair) -> None:
    assert await two_drop_at_once(scene, two_apps[0], off="") == (0, 2)


async def test_control_without_guards_of_a_drop_one_of_two_places_is_lost(scene: Scene) -> None:
    assert await two_drop_at_once(scene, scene.app(AS_D2), AS_D2) == (0, 1)


async def late_stock(scene: Scene, app: AppProcess, off: str) -> tuple[int, int]:
    """Ada is about to write when her lock is lost and two others book: places taken, and left."""
    slow, stage = scene.paused("commit", off)
    slot_id = await scene.slot(app, capacity=2)
    adas = asyncio.create_task(scene.person(slow, 0).wish(slot_id))
    await asyncio.to_thread(stage.wait_until_reached)
    scene.redis.flushall()
    for number in (1, 2):
        assert (await scene.person(app, number).wish(slot_id))["__typename"] == "Booked"
    stage.go()
    await adas
    truth = scene.truth(slot_id)
    return len(truth["bookings"]), truth["remaining"]


async def test_a_stock_read_before_the_lock_was_lost_is_not_written(
    scene: Scene, two_apps: Pair
) -> None:
    assert await late_stock(scene, two_apps[0], off="") == (2, 0)


async def test_control_without_relative_counts_a_late_stock_sells_a_place_again(
    scene: Scene, two_apps: Pair
) -> None:
    assert await late_stock(scene, two_apps[0], "version relative-counts") == (3, 1)


async def killed_while_cancelling(scene: Scene, point: str, off: str) -> tuple[bool, bool, int]:
    """Ada's process dies while she cancels: is her booking live, is it kept as ended, places."""
    doomed, stage = scene.paused(point, off)
    slot_id = await scene.slot(doomed)
    ada = scene.person(doomed, 0)
    booking_id = (await ada.wish(slot_id))["booking"]["id"]
    await killed_at(stage, doomed, ada.give_back(booking_id))
    return (
        booking_id[-24:] in scene.who(slot_id),
        scene.ended(booking_id) is not None,
        scene.truth(slot_id)["remaining"],
    )


@pytest.mark.parametrize("point", ["record", "transaction"])
async def test_a_booking_whose_cancellation_was_cut_short_is_as_before(
    scene: Scene, point: str
) -> None:
    assert await killed_while_cancelling(scene, point, "") == (True, False, 0)


async def test_control_without_a_transaction_a_live_booking_is_recorded_as_ended(
    scene: Scene,
) -> None:
    assert await killed_while_cancelling(scene, "record", "transaction") == (True, True, 0)


async def after_the_cache_is_lost(scene: Scene, app: AppProcess) -> str:
    """What somebody is told who wants the only place, taken before Redis lost everything."""
    slot_id = await scene.slot(app)
    ada, ben = scene.people(app, 2)
    assert (await ada.wish(slot_id))["__typename"] == "Booked"
    assert (await ben.wish(slot_id))["__typename"] == "SlotFull"
    scene.redis.flushall()
    return str((await ben.wish(slot_id))["__typename"])


async def test_a_redis_that_lost_everything_gives_no_place_back(
    scene: Scene, two_apps: Pair
) -> None:
    assert await after_the_cache_is_lost(scene, two_apps[0]) == "SlotFull"


async def test_control_without_the_truth_in_mongodb_an_empty_cache_sells_all_places_again(
    scene: Scene,
) -> None:
    assert await after_the_cache_is_lost(scene, scene.app("stock")) == "Booked"


async def killed_while_booking(scene: Scene, point: str, off: str) -> tuple[int, int]:
    """Ada's process dies while she books: how many bookings there are, and places left."""
    doomed, stage = scene.paused(point, off)
    slot_id = await scene.slot(doomed, capacity=2)
    await killed_at(stage, doomed, scene.person(doomed, 0).wish(slot_id))
    truth = scene.truth(slot_id)
    return len(truth["bookings"]), truth["remaining"]


async def test_killed_before_the_write_a_place_is_free(scene: Scene) -> None:
    assert await killed_while_booking(scene, "commit", "") == (0, 2)


async def test_killed_after_the_write_a_place_is_taken(scene: Scene) -> None:
    assert await killed_while_booking(scene, "release", "") == (1, 1)


async def test_control_without_one_write_for_count_and_booking_a_place_is_nobodys(
    scene: Scene,
) -> None:
    assert await killed_while_booking(scene, "between", "one-write") == (0, 1)


async def after_an_error(scene: Scene, off: str) -> str:
    """What somebody is told who wants the only place, when another's booking was an error."""
    app = scene.app(f"first-write {off}")
    slot_id = await scene.slot(app)
    ada, ben = scene.people(app, 2)
    assert "errors" in await ada.send(BOOK, slot=slot_id)
    outcome = await ben.wish(slot_id)
    assert_whole(scene.truth(slot_id), int(outcome["__typename"] == "Booked"))
    return str(outcome["__typename"])


async def test_an_error_costs_no_place(scene: Scene) -> None:
    assert await after_an_error(scene, "") == "Booked"


async def test_control_without_one_count_a_place_is_lost_with_an_error(scene: Scene) -> None:
    assert await after_an_error(scene, "admission") == "SlotFull"


async def late_comer(scene: Scene, app: AppProcess) -> tuple[str, bool]:
    """What somebody is told who wants a place that is taken, and whether they have one."""
    slot_id = await scene.slot(app)
    ada, ben = scene.people(app, 2)
    await ada.wish(slot_id)
    outcome = await ben.wish(slot_id)
    return outcome["__typename"], (await ben.mine(slot_id))["myBooking"] is not None


async def test_who_is_told_booked_is_booked(scene: Scene, two_apps: Pair) -> None:
    assert await late_comer(scene, two_apps[0]) == ("SlotFull", False)


async def test_control_without_refusals_sold_out_is_answered_as_success(scene: Scene) -> None:
    assert await late_comer(scene, scene.app("refusals")) == ("Booked", False)
