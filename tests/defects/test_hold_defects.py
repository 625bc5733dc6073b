"""What the five designs did wrong with holds, keys and who is next: each defect with its guard."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, lock_key, open_deployment
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient, expire_holds
from tests.support.polling import wait_until

Pair = tuple[AppProcess, AppProcess]


@pytest.fixture
async def deployment(two_apps: Pair, log_dir: Path) -> AsyncIterator[Deployment]:
    """A scene beside two processes that lack nothing."""
    async with open_deployment(two_apps[0].environment, log_dir) as deployment:
        yield deployment


@pytest.fixture
async def unswept(servers: EmbeddedServers, log_dir: Path) -> AsyncIterator[Deployment]:
    """A scene where nobody sweeps but the processes of the test."""
    async with open_deployment(app_environment(servers, "unswept"), log_dir) as deployment:
        yield deployment


async def a_strangers_acts(deployment: Deployment, app: AppProcess) -> list[str]:
    """What a stranger is told who confirms, extends, moves and cancels what is Ada's."""
    slot_id, other_id = await deployment.add_slot(app), await deployment.add_slot(app)
    ada, stranger = deployment.clients(app, 2)
    hold = (await ada.hold(slot_id))["id"]
    acts = stranger.confirm(hold), stranger.extend(hold), stranger.move(hold, other_id)
    received = [(await act)["__typename"] for act in acts]
    return [*received, (await stranger.cancel_booking(hold))["__typename"]]


async def test_a_strangers_booking_is_not_there_for_others(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await a_strangers_acts(deployment, two_apps[0]) == ["BookingNotFound"] * 4


async def test_control_without_the_owner_check_anybody_confirms_anybodys_hold(
    deployment: Deployment,
) -> None:
    received = await a_strangers_acts(deployment, deployment.app("owner-of-booking"))
    assert "BookingNotFound" not in received
    assert received[0] == "BookingConfirmed"


async def confirmed_late(deployment: Deployment, off: str) -> str:
    """What Ada is told who confirms a hold that ran out and that nobody swept."""
    app = deployment.app(f"sweeper {off}")
    slot_id = await deployment.add_slot(app)
    ada = deployment.client(app, 0)
    hold = await ada.hold(slot_id)
    expire_holds(deployment.mongo_url, slot_id, expired_for_s=1)
    return str((await ada.confirm(hold["id"]))["__typename"])


async def test_a_hold_that_ran_out_cannot_be_confirmed_though_nobody_swept(
    unswept: Deployment,
) -> None:
    assert await confirmed_late(unswept, "") == "HoldExpired"


async def test_control_without_the_end_of_holds_a_late_payer_gets_the_place(
    unswept: Deployment,
) -> None:
    assert await confirmed_late(unswept, "hold-expiry") == "BookingConfirmed"


async def confirmed_while_it_ran_out(deployment: Deployment, off: str) -> tuple[str, str, set[str]]:
    """Ada's confirmation is about to be written when her hold runs out and Ben books the place.

    What Ada is told, and Ben, and whose bookings there are.
    """
    app = deployment.app("sweeper")
    slow, stage = deployment.paused_app("commit", f"sweeper {off}")
    slot_id = await deployment.add_slot(app)
    hold = await deployment.client(app, 0).hold(slot_id)
    adas = asyncio.create_task(deployment.client(slow, 0).confirm(hold["id"]))
    await asyncio.to_thread(stage.wait_until_reached)
    expire_holds(deployment.mongo_url, slot_id, expired_for_s=1)
    deployment.redis.delete(lock_key(slot_id))  # so that Ben need not wait for Ada
    ben = await deployment.client(app, 1).book_slot(slot_id)
    stage.resume()
    names = {hold["id"][-24:]: "Ada", ben["booking"]["id"][-24:]: "Ben"}
    owner = {names[booking_id] for booking_id in deployment.booking_ids(slot_id)}
    return (await adas)["__typename"], ben["__typename"], owner


async def test_a_confirmation_that_loses_to_the_run_out_is_told_so(unswept: Deployment) -> None:
    received = await confirmed_while_it_ran_out(unswept, "")
    assert received == ("HoldExpired", "Booked", {"Ben"})


async def test_control_without_the_version_a_place_given_on_is_confirmed_too(
    unswept: Deployment,
) -> None:
    received = await confirmed_while_it_ran_out(unswept, "slot-version")
    assert received == ("BookingConfirmed", "Booked", {"Ben"})


async def sent_again(deployment: Deployment, app: AppProcess) -> tuple[bool, int]:
    """Ada books, gives the place back from another device, and her first request comes again.

    Whether both sends got one answer, and how many bookings she has after.
    """
    slot_id = await deployment.add_slot(app)
    ada = deployment.client(app, 0)
    first = await ada.book_slot(slot_id, idempotencyKey="once")
    await ada.cancel_booking(first["booking"]["id"])
    again = await ada.book_slot(slot_id, idempotencyKey="once")
    return again == first, len(deployment.booking_ids(slot_id))


async def test_a_request_that_is_sent_again_has_no_second_effect(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await sent_again(deployment, two_apps[0]) == (True, 0)


async def test_control_without_keys_a_request_that_is_sent_again_books_again(
    deployment: Deployment,
) -> None:
    assert await sent_again(deployment, deployment.app("idempotency-keys")) == (False, 1)


async def test_sends_that_nobody_orders_have_one_effect_all_the_same(
    deployment: Deployment,
) -> None:
    apps = [deployment.app("key-locks") for _ in range(2)]
    slot_id = await deployment.add_slot(apps[0], capacity=5)
    options = {"idempotencyKey": "at once", "waitMs": 20_000}
    sends = (deployment.client(apps[n % 2], 0).book_slot(slot_id, **options) for n in range(12))
    answers = await asyncio.gather(*sends)
    assert len(deployment.consistent_booking_ids(slot_id)) == 1
    assert {answer["__typename"] for answer in answers} == {"Booked"}
    assert all(answer == answers[0] for answer in answers)


HELD = 24


async def held_in_many_slots(deployment: Deployment, app: AppProcess) -> list[str]:
    """Slots in each of which Ada holds a place."""
    ada = deployment.client(app, 0)
    slot_ids = await asyncio.gather(*(deployment.add_slot(app) for _ in range(HELD)))
    await asyncio.gather(*map(ada.hold, slot_ids))
    return list(slot_ids)


def swept(mongo_url: str) -> int:
    """How many holds that ran out were swept up."""
    with closing(MongoClient[dict[str, Any]](mongo_url)) as client:
        return client.get_default_database()["ended_bookings"].count_documents({})


async def test_all_holds_that_ran_out_are_swept_while_one_a_second_leaves_most(
    servers: EmbeddedServers, log_dir: Path
) -> None:
    """The promise and its control in one: what the slow sweep left when the other was through."""
    good, slow = app_environment(servers, "swept"), app_environment(servers, "one_a_second")
    async with open_deployment(good, log_dir) as here, open_deployment(slow, log_dir) as there:
        app, slow_app = here.app(), there.app("full-sweep")
        here_ids = await held_in_many_slots(here, app)
        there_ids = await held_in_many_slots(there, slow_app)
        expire_holds(there.mongo_url, *there_ids)
        expire_holds(here.mongo_url, *here_ids)
        wait_until(lambda: swept(here.mongo_url) == HELD, "all is swept")
        assert swept(there.mongo_url) < HELD // 2


async def line_behind(
    deployment: Deployment, app: AppProcess, waiting: int, **fields: Any
) -> tuple[str, str, BookingClient]:
    """A slot of one place that is Ada's, with others in line: the slot, her booking, Ada."""
    slot_id = await deployment.add_slot(app, **fields)
    ada, *others = deployment.clients(app, 1 + waiting)
    booking_id = (await ada.book_slot(slot_id))["booking"]["id"]
    for other in others:
        assert (await other.join(slot_id))["__typename"] == "WaitlistJoined"
    return slot_id, booking_id, ada


async def who_gets_it(deployment: Deployment, app: AppProcess) -> tuple[str | None, str]:
    """Who of those in line has the place that Ada gave back, and what a walk-in is told."""
    slot_id, booking_id, ada = await line_behind(deployment, app, 2)
    await ada.cancel_booking(booking_id)
    walk_in = (await deployment.client(app, 3).book_slot(slot_id))["__typename"]
    for name, number in (("Ben", 1), ("Cy", 2)):
        if (await deployment.client(app, number).fetch_slot(slot_id))["myBooking"]:
            return name, walk_in
    return None, walk_in


async def test_a_freed_place_is_the_first_ones_in_line(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await who_gets_it(deployment, two_apps[0]) == ("Ben", "SlotFull")


async def test_control_without_the_line_a_walk_in_overtakes_all_who_wait(
    unswept: Deployment,
) -> None:
    assert await who_gets_it(unswept, unswept.app("waitlist-order")) == (None, "Booked")


async def test_control_without_first_come_the_last_in_line_is_served_first(
    unswept: Deployment,
) -> None:
    assert await who_gets_it(unswept, unswept.app("first-in-first-out")) == ("Cy", "SlotFull")


async def offered(deployment: Deployment, app: AppProcess) -> tuple[str, str, int]:
    """What a walk-in is told while Ben is offered a place, Ben when he accepts; places left."""
    slot_id, booking_id, ada = await line_behind(deployment, app, 1, waitlistOfferMinutes=5)
    await ada.cancel_booking(booking_id)
    ben = deployment.client(app, 1)
    walk_in = await deployment.client(app, 3).book_slot(slot_id)
    offer = (await ben.fetch_slot(slot_id))["myBooking"]
    assert offer["status"] == "HELD"
    accepted = await ben.confirm(offer["id"])
    return (
        walk_in["__typename"],
        accepted["__typename"],
        deployment.slot_document(slot_id)["remaining"],
    )


async def test_an_offered_place_is_nobody_elses(deployment: Deployment, two_apps: Pair) -> None:
    assert await offered(deployment, two_apps[0]) == ("SlotFull", "BookingConfirmed", 0)


async def test_control_without_a_hold_for_the_offer_its_place_goes_to_two(
    unswept: Deployment,
) -> None:
    received = await offered(unswept, unswept.app("offers"))
    assert received == ("Booked", "BookingConfirmed", 0)
