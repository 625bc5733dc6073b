"""Defects of five published designs with holds, keys and waitlists, and their guards."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, lock_key, open_deployment
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient, expire_holds
from tests.support.polling import wait_until
from tests.support.stores.empty_database import stored_database

SWEPT_HOLDS = 60


@pytest.fixture
async def unswept(servers: EmbeddedServers, log_dir: Path) -> AsyncIterator[Deployment]:
    """Yield a deployment whose holds are swept only by processes that the test starts."""
    async with open_deployment(app_environment(servers, "unswept"), log_dir) as deployment:
        yield deployment


@pytest.mark.parametrize(
    ("without", "outcomes"),
    [
        ("", ["BookingNotFound"] * 4),
        (
            "owner-of-booking",
            ["BookingConfirmed", "NotHeld", "BookingMoved", "BookingCancelled"],
        ),
    ],
)
async def test_another_users_booking_is_not_found(
    deployment: Deployment, app: AppProcess, without: str, outcomes: list[str]
) -> None:
    slot_id, other_id = await deployment.add_slot(app), await deployment.add_slot(app)
    ada, ben, other = deployment.clients(app, 3)
    hold = (await ada.hold(slot_id))["id"]
    cancelled = (await ben.hold(await deployment.add_slot(app)))["id"]
    requests = (
        other.confirm(hold),
        other.extend(hold),
        other.move(hold, other_id),
        other.cancel_booking(cancelled),
    )
    assert [(await request)["__typename"] for request in requests] == outcomes


@pytest.mark.parametrize(
    ("without", "outcome"), [("", "HoldExpired"), ("hold-expiry", "BookingConfirmed")]
)
async def test_an_expired_hold_is_not_confirmed_before_the_sweep(
    unswept: Deployment, without: str, outcome: str
) -> None:
    app = unswept.app(f"sweeper {without}")
    slot_id = await unswept.add_slot(app)
    ada = unswept.client(app, 0)
    hold = await ada.hold(slot_id)
    expire_holds(unswept.mongo_url, slot_id, expired_for_s=60)
    assert (await ada.confirm(hold["id"]))["__typename"] == outcome


@pytest.mark.parametrize(
    ("without", "outcome"), [("", "HoldExpired"), ("slot-version", "BookingConfirmed")]
)
async def test_a_confirmation_that_is_written_after_the_expiry_is_refused(
    unswept: Deployment, without: str, outcome: str
) -> None:
    app = unswept.app("sweeper")
    slow_app, pause_point = unswept.paused_app("commit", f"sweeper {without}")
    slot_id = await unswept.add_slot(app)
    hold = await unswept.client(app, 0).hold(slot_id)
    adas = asyncio.create_task(unswept.client(slow_app, 0).confirm(hold["id"]))
    await asyncio.to_thread(pause_point.wait_until_reached)
    expire_holds(unswept.mongo_url, slot_id, expired_for_s=60)
    unswept.redis.delete(lock_key(slot_id))  # so that Ben need not wait for Ada
    bens = await unswept.client(app, 1).book_slot(slot_id)
    pause_point.resume()
    assert (await adas)["__typename"] == outcome
    assert bens["__typename"] == "Booked"
    assert unswept.booking_ids(slot_id) == {bens["booking"]["id"][-24:]}


@pytest.mark.parametrize(("without", "booking_count"), [("", 0), ("idempotency-keys", 1)])
async def test_a_repeated_request_has_no_second_effect(
    deployment: Deployment, app: AppProcess, without: str, booking_count: int
) -> None:
    slot_id = await deployment.add_slot(app)
    ada = deployment.client(app, 0)
    first = await ada.book_slot(slot_id, idempotencyKey="once")
    await ada.cancel_booking(first["booking"]["id"])
    second = await ada.book_slot(slot_id, idempotencyKey="once")
    assert (second == first) == (booking_count == 0)
    assert len(deployment.booking_ids(slot_id)) == booking_count


async def test_concurrent_requests_with_one_key_have_one_effect_without_its_lock(
    deployment: Deployment,
) -> None:
    apps = [deployment.app("key-locks") for _ in range(2)]
    slot_id = await deployment.add_slot(apps[0], capacity=5)
    options = {"idempotencyKey": "at once", "waitMs": 20_000}
    requests = (deployment.client(apps[n % 2], 0).book_slot(slot_id, **options) for n in range(12))
    outcomes = await asyncio.gather(*requests)
    assert len(deployment.consistent_booking_ids(slot_id)) == 1
    assert {outcome["__typename"] for outcome in outcomes} == {"Booked"}
    assert all(outcome == outcomes[0] for outcome in outcomes)


async def hold_in_many_slots(deployment: Deployment, app: AppProcess) -> list[str]:
    """Let Ada hold a place in each of many slots. Returns the ids of the slots."""
    ada = deployment.client(app, 0)
    slot_ids = await asyncio.gather(*(deployment.add_slot(app) for _ in range(SWEPT_HOLDS)))
    await asyncio.gather(*map(ada.hold, slot_ids))
    return list(slot_ids)


def ended_booking_count(mongo_url: str) -> int:
    """Return the number of ended bookings in a database."""
    return stored_database(mongo_url)["ended_bookings"].count_documents({})


async def test_all_expired_holds_are_swept_while_a_slow_sweeper_leaves_most(
    servers: EmbeddedServers, log_dir: Path
) -> None:
    """Check promise and control in one run: the slow sweeper has the same time as the other."""
    fast_settings = app_environment(servers, "swept")
    slow_settings = app_environment(servers, "one_a_second")
    async with (
        open_deployment(fast_settings, log_dir) as fast,
        open_deployment(slow_settings, log_dir) as slow,
    ):
        fast_app, slow_app = fast.app(), slow.app("full-sweep")
        fast_slot_ids = await hold_in_many_slots(fast, fast_app)
        slow_slot_ids = await hold_in_many_slots(slow, slow_app)
        expire_holds(slow.mongo_url, *slow_slot_ids)
        expire_holds(fast.mongo_url, *fast_slot_ids)
        wait_until(
            lambda: ended_booking_count(fast.mongo_url) == SWEPT_HOLDS, "all holds are swept"
        )
        assert ended_booking_count(slow.mongo_url) < SWEPT_HOLDS // 2


async def book_with_waitlist(
    deployment: Deployment, app: AppProcess, waiting_count: int, **fields: object
) -> tuple[str, str, BookingClient]:
    """Let Ada book the only place of a slot and others join the waitlist.

    Returns the slot, Ada's booking and Ada's client.
    """
    slot_id = await deployment.add_slot(app, **fields)
    ada, *others = deployment.clients(app, 1 + waiting_count)
    booking_id = (await ada.book_slot(slot_id))["booking"]["id"]
    for other in others:
        assert (await other.join(slot_id))["__typename"] == "WaitlistJoined"
    return slot_id, booking_id, ada


@pytest.mark.parametrize(
    ("without", "promoted", "outcome"),
    [
        ("", [True, False], "SlotFull"),
        ("waitlist-order", [False, False], "Booked"),
        ("first-in-first-out", [False, True], "SlotFull"),
    ],
)
async def test_a_freed_place_goes_to_the_first_user_on_the_waitlist(
    unswept: Deployment, without: str, promoted: list[bool], outcome: str
) -> None:
    app = unswept.app(without)
    slot_id, booking_id, ada = await book_with_waitlist(unswept, app, 2)
    await ada.cancel_booking(booking_id)
    assert (await unswept.client(app, 3).book_slot(slot_id))["__typename"] == outcome
    waiting = [unswept.client(app, number) for number in (1, 2)]
    booked = [(await each.fetch_slot(slot_id))["myBooking"] is not None for each in waiting]
    assert booked == promoted


@pytest.mark.parametrize(("without", "others_outcome"), [("", "SlotFull"), ("offers", "Booked")])
async def test_an_offered_place_is_not_free(
    unswept: Deployment, without: str, others_outcome: str
) -> None:
    app = unswept.app(without)
    slot_id, booking_id, ada = await book_with_waitlist(unswept, app, 1, waitlistOfferMinutes=5)
    await ada.cancel_booking(booking_id)
    ben = unswept.client(app, 1)
    outcome = await unswept.client(app, 3).book_slot(slot_id)
    assert outcome["__typename"] == others_outcome
    offer = (await ben.fetch_slot(slot_id))["myBooking"]
    assert offer["status"] == "HELD"
    assert (await ben.confirm(offer["id"]))["__typename"] == "BookingConfirmed"
    assert unswept.slot_document(slot_id)["remaining"] == 0
