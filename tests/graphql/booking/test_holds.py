"""Holds over HTTP: they really take a place, for a while and not for longer."""

import asyncio

import httpx
import pytest
from bson import ObjectId

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import (
    create_booking_clients,
    expire_all_holds,
    expire_holds,
)
from tests.support.clients.client import (
    CREATE_SLOT,
    WATCH_AVAILABILITY,
    open_websocket,
    slot_input,
)
from tests.support.clients.fixtures import Three
from tests.support.clients.series import create_series
from tests.support.polling import wait_until
from tests.support.stores.empty_database import stored_database


async def test_a_hold_occupies_a_place(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot()
    hold = await ada.hold(slot_id)
    assert (hold["status"], [entry["action"] for entry in hold["history"]]) == ("HELD", ["HELD"])
    assert (await ben.book_slot(slot_id))["__typename"] == "SlotFull"
    assert (await ben.book_slot(slot_id, hold=True))["__typename"] == "SlotFull"
    assert (await ben.fetch_slot(slot_id))["remaining"] == 0
    assert (await ada.fetch_slot(slot_id))["myBooking"] == hold


@pytest.mark.parametrize("minutes", [0, 61, -1])
async def test_a_slot_holds_for_1_to_60_minutes(clients: Three, minutes: int) -> None:
    *_, organizer = clients
    refused = await organizer.execute(CREATE_SLOT, input={**slot_input(), "holdMinutes": minutes})
    assert refused["code"] == "INVALID_INPUT"
    assert [problem["field"] for problem in refused["fields"]] == ["holdMinutes"]
    slot_id = await organizer.add_slot()
    assert (await organizer.update_slot(slot_id, holdMinutes=minutes))["code"] == "INVALID_INPUT"


async def test_the_owner_confirms_a_hold_and_confirming_again_returns_the_same(
    clients: Three, mongo_url: str
) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot()
    hold = await ada.hold(slot_id)
    confirmed = await ada.confirm(hold["id"])
    assert confirmed["__typename"] == "BookingConfirmed"
    booking = confirmed["booking"]
    assert (booking["id"], booking["status"], booking["heldUntil"]) == (
        hold["id"],
        "CONFIRMED",
        None,
    )
    assert [entry["action"] for entry in booking["history"]] == ["HELD", "CONFIRMED"]
    assert [entry["before"] for entry in booking["history"]] == [None, "HELD"]
    assert await ada.confirm(hold["id"]) == confirmed
    expire_holds(mongo_url, slot_id)
    assert (await ben.book_slot(slot_id))["__typename"] == "SlotFull"


async def test_other_users_cannot_act_on_a_hold_or_learn_that_it_exists(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id, other_id = await organizer.add_slot(), await organizer.add_slot()
    hold = await ada.hold(slot_id)
    for call in (
        ben.confirm(hold["id"]),
        ben.extend(hold["id"]),
        ben.cancel_booking(hold["id"]),
        ben.move(hold["id"], other_id),
    ):
        assert (await call)["code"] == "BOOKING_NOT_FOUND"
    assert await ben.fetch_booking(hold["id"]) is None
    assert await ada.fetch_booking(hold["id"]) == hold


async def test_subscribers_of_the_other_process_see_the_place_of_an_expired_hold(
    two_apps: Pair, clients: Three, mongo_url: str
) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot()
    await ada.hold(slot_id)
    async with open_websocket(two_apps[1], ben.token) as watcher:
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot_id])
        assert (await watcher.next_result())["isBooked"]
        expire_holds(mongo_url, slot_id)
        assert (await watcher.next_result())["remaining"] == 1


async def test_1000_holds_in_200_slots_that_expire_together_are_all_released(
    two_apps: Pair, http: httpx.AsyncClient, mongo_url: str
) -> None:
    users, organizer = create_booking_clients(http, 5, *two_apps)
    series = await create_series(organizer, "FREQ=DAILY;COUNT=200", capacity=5)
    slot_ids = [slot["id"] for slot in series["slots"]]
    for begin in range(0, 200, 50):
        claims = [{"slotId": slot_id} for slot_id in slot_ids[begin : begin + 50]]
        held = await asyncio.gather(
            *(user.book_all(*claims, hold=True, waitMs=20_000) for user in users)
        )
        assert {outcome["__typename"] for outcome in held} == {"AllBooked"}
    expire_all_holds(mongo_url, slot_ids)
    here = {"$in": [ObjectId(slot_id[-24:]) for slot_id in slot_ids]}
    database = stored_database(mongo_url)
    free = {"_id": here, "remaining": 5, "bookings": [], "nextDeadline": {"$exists": False}}
    wait_until(lambda: database["slots"].count_documents(free) == 200, "all are swept up", 60)
    assert database["ended_bookings"].count_documents({"slot": here}) == 1000


async def test_confirming_at_the_moment_of_expiry_returns_the_true_state(
    two_apps: Pair, http: httpx.AsyncClient, mongo_url: str
) -> None:
    users, organizer = create_booking_clients(http, 20, *two_apps)
    slot_id = await organizer.add_slot(capacity=20)
    holds = [await user.hold(slot_id, waitMs=20_000) for user in users]
    confirming = [user.confirm(h["id"]) for user, h in zip(users, holds, strict=True)]
    ending = asyncio.to_thread(expire_holds, mongo_url, slot_id)
    outcomes, _ = await asyncio.gather(asyncio.gather(*confirming), ending)
    became = [await user.fetch_booking(h["id"]) for user, h in zip(users, holds, strict=True)]
    expected = {"CONFIRMED": "BookingConfirmed", "EXPIRED": "HoldExpired"}
    assert [expected[booking["status"]] for booking in became] == [
        outcome["__typename"] for outcome in outcomes
    ]
    confirmed = sum(booking["status"] == "CONFIRMED" for booking in became)
    assert (await users[0].fetch_slot(slot_id))["remaining"] == 20 - confirmed
