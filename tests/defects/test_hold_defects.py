"""Defects of five published designs with holds, keys and waitlists, and their guards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from pymongo import MongoClient

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, lock_key, open_deployment
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient, expire_holds
from tests.support.clients.client import Json
from tests.support.polling import wait_until

Pair = tuple[AppProcess, AppProcess]
SWEPT_HOLDS = 24


@pytest.fixture
async def unswept(servers: EmbeddedServers, log_dir: Path) -> AsyncIterator[Deployment]:
    """Yield a deployment whose holds are swept only by processes that the test starts."""
    async with open_deployment(app_environment(servers, "unswept"), log_dir) as deployment:
        yield deployment


async def outcomes_for_another_user(deployment: Deployment, app: AppProcess) -> list[str]:
    """Let another user confirm, extend, move and cancel Ada's hold. Returns the outcomes."""
    slot_id, other_id = await deployment.add_slot(app), await deployment.add_slot(app)
    ada, other = deployment.clients(app, 2)
    hold = (await ada.hold(slot_id))["id"]
    requests = (
        other.confirm(hold),
        other.extend(hold),
        other.move(hold, other_id),
        other.cancel_booking(hold),
    )
    return [(await request)["__typename"] for request in requests]


async def test_another_users_booking_is_not_found(deployment: Deployment, two_apps: Pair) -> None:
    outcomes = await outcomes_for_another_user(deployment, two_apps[0])
    assert outcomes == ["BookingNotFound"] * 4


async def test_control_without_the_owner_check_any_user_confirms_a_hold(
    deployment: Deployment,
) -> None:
    outcomes = await outcomes_for_another_user(deployment, deployment.app("owner-of-booking"))
    assert "BookingNotFound" not in outcomes
    assert outcomes[0] == "BookingConfirmed"


async def confirm_expired_hold(deployment: Deployment, without_guards: str) -> str:
    """Let Ada confirm a hold that has expired and was not swept. Returns the outcome."""
    app = deployment.app(f"sweeper {without_guards}")
    slot_id = await deployment.add_slot(app)
    ada = deployment.client(app, 0)
    hold = await ada.hold(slot_id)
    expire_holds(deployment.mongo_url, slot_id, expired_for_s=1)
    return str((await ada.confirm(hold["id"]))["__typename"])


async def test_an_expired_hold_is_not_confirmed_before_the_sweep(unswept: Deployment) -> None:
    assert await confirm_expired_hold(unswept, "") == "HoldExpired"


async def test_control_without_the_expiry_check_an_expired_hold_is_confirmed(
    unswept: Deployment,
) -> None:
    assert await confirm_expired_hold(unswept, "hold-expiry") == "BookingConfirmed"


async def confirm_while_hold_expires(
    deployment: Deployment, without_guards: str
) -> tuple[str, str, set[str]]:
    """Let Ada's hold expire and Ben book the place while Ada's confirmation is about to commit.

    Returns Ada's outcome, Ben's outcome and the names of those with a booking.
    """
    app = deployment.app("sweeper")
    slow_app, pause_point = deployment.paused_app("commit", f"sweeper {without_guards}")
    slot_id = await deployment.add_slot(app)
    hold = await deployment.client(app, 0).hold(slot_id)
    adas = asyncio.create_task(deployment.client(slow_app, 0).confirm(hold["id"]))
    await asyncio.to_thread(pause_point.wait_until_reached)
    expire_holds(deployment.mongo_url, slot_id, expired_for_s=1)
    deployment.redis.delete(lock_key(slot_id))  # so that Ben need not wait for Ada
    bens = await deployment.client(app, 1).book_slot(slot_id)
    pause_point.resume()
    names = {hold["id"][-24:]: "Ada", bens["booking"]["id"][-24:]: "Ben"}
    booked = {names[booking_id] for booking_id in deployment.booking_ids(slot_id)}
    return (await adas)["__typename"], bens["__typename"], booked


async def test_a_confirmation_that_is_written_after_the_expiry_is_refused(
    unswept: Deployment,
) -> None:
    result = await confirm_while_hold_expires(unswept, "")
    assert result == ("HoldExpired", "Booked", {"Ben"})


async def test_control_without_the_version_an_expired_hold_is_confirmed_to_its_user(
    unswept: Deployment,
) -> None:
    result = await confirm_while_hold_expires(unswept, "slot-version")
    assert result == ("BookingConfirmed", "Booked", {"Ben"})


async def replay_after_cancellation(deployment: Deployment, app: AppProcess) -> tuple[bool, int]:
    """Let Ada book, cancel the booking and send the first request again.

    Returns whether both results are equal, and the number of her bookings.
    """
    slot_id = await deployment.add_slot(app)
    ada = deployment.client(app, 0)
    first = await ada.book_slot(slot_id, idempotencyKey="once")
    await ada.cancel_booking(first["booking"]["id"])
    second = await ada.book_slot(slot_id, idempotencyKey="once")
    return second == first, len(deployment.booking_ids(slot_id))


async def test_a_repeated_request_has_no_second_effect(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await replay_after_cancellation(deployment, two_apps[0]) == (True, 0)


async def test_control_without_idempotency_keys_a_repeated_request_books_again(
    deployment: Deployment,
) -> None:
    app = deployment.app("idempotency-keys")
    assert await replay_after_cancellation(deployment, app) == (False, 1)


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
    with closing(MongoClient[Json](mongo_url)) as client:
        return client.get_default_database()["ended_bookings"].count_documents({})


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


async def promoted_user(deployment: Deployment, app: AppProcess) -> tuple[str | None, str]:
    """Let Ada cancel while Ben and Cy wait, and let another user book.

    Returns the name of the promoted user and the outcome of the other user.
    """
    slot_id, booking_id, ada = await book_with_waitlist(deployment, app, 2)
    await ada.cancel_booking(booking_id)
    outcome = (await deployment.client(app, 3).book_slot(slot_id))["__typename"]
    for name, number in (("Ben", 1), ("Cy", 2)):
        if (await deployment.client(app, number).fetch_slot(slot_id))["myBooking"]:
            return name, outcome
    return None, outcome


async def test_a_freed_place_goes_to_the_first_user_on_the_waitlist(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await promoted_user(deployment, two_apps[0]) == ("Ben", "SlotFull")


async def test_control_without_promotion_another_user_overtakes_the_waitlist(
    unswept: Deployment,
) -> None:
    assert await promoted_user(unswept, unswept.app("waitlist-order")) == (None, "Booked")


async def test_control_in_reverse_order_the_last_user_on_the_waitlist_is_promoted(
    unswept: Deployment,
) -> None:
    assert await promoted_user(unswept, unswept.app("first-in-first-out")) == ("Cy", "SlotFull")


async def book_offered_place(deployment: Deployment, app: AppProcess) -> tuple[str, str, int]:
    """Let another user book while a place is offered to Ben, who then accepts the offer.

    Returns the outcome of the other user, Ben's outcome and the number of free places.
    """
    slot_id, booking_id, ada = await book_with_waitlist(deployment, app, 1, waitlistOfferMinutes=5)
    await ada.cancel_booking(booking_id)
    ben = deployment.client(app, 1)
    others = await deployment.client(app, 3).book_slot(slot_id)
    offer = (await ben.fetch_slot(slot_id))["myBooking"]
    assert offer["status"] == "HELD"
    bens = await ben.confirm(offer["id"])
    remaining = deployment.slot_document(slot_id)["remaining"]
    return others["__typename"], bens["__typename"], remaining


async def test_an_offered_place_is_not_free(deployment: Deployment, two_apps: Pair) -> None:
    result = await book_offered_place(deployment, two_apps[0])
    assert result == ("SlotFull", "BookingConfirmed", 0)


async def test_control_without_a_hold_for_the_offer_two_users_get_the_place(
    unswept: Deployment,
) -> None:
    result = await book_offered_place(unswept, unswept.app("offers"))
    assert result == ("Booked", "BookingConfirmed", 0)
