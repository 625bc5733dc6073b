"""Freed places are offered to waiting users, one after the other, for a limited time."""

import asyncio
from datetime import datetime, timedelta

import httpx
import pytest

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients, expire_holds
from tests.support.clients.client import Json, hours_from_now
from tests.support.clients.fixtures import Five
from tests.support.polling import poll_until

MEMBER_COUNT = 4


async def offering(clients: Five, **fields: int | str) -> str:
    """Return a slot of one place that Ada gave back, so that it is offered to Ben, Cleo and Dan."""
    ada, *line, organizer = clients
    slot_id = await organizer.add_slot(**{"waitlistOfferMinutes": 30, **fields})
    booked = (await ada.book_slot(slot_id))["booking"]
    for user in line:
        assert (await user.join(slot_id))["__typename"] == "WaitlistJoined"
    await ada.cancel_booking(booked["id"])
    return slot_id


async def offered_to(user: BookingClient, slot_id: str) -> Json:
    """Wait for the offer of this user and return it."""
    slot = await poll_until(
        lambda: user.fetch_slot(slot_id), lambda seen: seen["myBooking"], "an offer comes"
    )
    offer: Json = slot["myBooking"]
    assert offer["status"] == "HELD"
    assert offer["history"][0]["action"] == "OFFERED"
    return offer


async def test_an_offer_is_a_hold_with_the_time_limit_of_its_slot(clients: Five) -> None:
    _, ben, cleo, *_ = clients
    slot_id = await offering(clients)
    offer = await offered_to(ben, slot_id)
    lasts = datetime.fromisoformat(offer["heldUntil"]) - datetime.fromisoformat(offer["createdAt"])
    assert lasts == timedelta(minutes=30)
    assert (offer["madeBy"], offer["onBehalf"]) == (None, False)
    assert offer["waitedSince"] is not None
    assert (await cleo.fetch_slot(slot_id))["myWaitlistEntry"]["position"] == 1


async def test_accepting_an_offer_books_the_place(clients: Five, mongo_url: str) -> None:
    _, ben, cleo, *_ = clients
    slot_id = await offering(clients)
    offer = await offered_to(ben, slot_id)
    confirmed = (await ben.confirm(offer["id"]))["booking"]
    assert [entry["action"] for entry in confirmed["history"]] == ["OFFERED", "CONFIRMED"]
    expire_holds(mongo_url, slot_id)
    assert (await cleo.fetch_slot(slot_id))["myWaitlistEntry"]["position"] == 1


async def test_an_offered_place_cannot_be_booked_by_others(
    clients: Five, mongo_url: str, two_apps: Pair, http: httpx.AsyncClient
) -> None:
    _, ben, cleo, *_ = clients
    walk_ins, _ = create_booking_clients(http, 10, *two_apps)
    slot_id = await offering(clients)
    await offered_to(ben, slot_id)
    requests = [each.book_slot(slot_id, waitMs=20_000) for each in walk_ins]
    lapsing = asyncio.to_thread(expire_holds, mongo_url, slot_id)
    outcomes, _ = await asyncio.gather(asyncio.gather(*requests), lapsing)
    assert {outcome["__typename"] for outcome in outcomes} == {"SlotFull"}
    await offered_to(cleo, slot_id)


async def test_an_expired_offer_passes_to_the_next_entry_again_and_again(
    clients: Five, mongo_url: str
) -> None:
    _, ben, cleo, dan, organizer = clients
    slot_id = await offering(clients)
    offers = []
    for user in (ben, cleo, dan):
        offers.append(await offered_to(user, slot_id))
        expire_holds(mongo_url, slot_id)
        assert (await user.confirm(offers[-1]["id"]))["code"] == "HOLD_EXPIRED"
    assert (await ben.fetch_slot(slot_id))["remaining"] == 1
    ended = await poll_until(
        lambda: organizer.fetch_slot_history(slot_id),
        lambda history: len(history) == 1 + len(offers),
        "the sweeper has recorded the end of each offer",
    )
    assert [(b["id"], b["status"]) for b in ended[1:]] == [(o["id"], "EXPIRED") for o in offers]
    assert (await ben.book_slot(slot_id))["__typename"] == "Booked"


async def test_a_declined_offer_passes_to_the_next_entry_at_once(clients: Five) -> None:
    _, ben, cleo, dan, _ = clients
    slot_id = await offering(clients)
    declined = await ben.cancel_booking((await offered_to(ben, slot_id))["id"])
    assert declined["booking"]["status"] == "CANCELLED"
    assert declined["slot"]["remaining"] == 0
    seen = await cleo.fetch_slot(slot_id)
    assert (seen["myBooking"]["status"], seen["myWaitlistEntry"]) == ("HELD", None)
    assert (await dan.fetch_slot(slot_id))["myWaitlistEntry"]["position"] == 1


async def test_several_places_are_offered_at_once_to_as_many(clients: Five) -> None:
    ada, ben, cleo, dan, organizer = clients
    slot_id = await organizer.add_slot(waitlistOfferMinutes=30)
    await ada.book_slot(slot_id)
    for user in (ben, cleo, dan):
        await user.join(slot_id)
    assert (await organizer.update_slot(slot_id, capacity=3))["remaining"] == 0
    assert [(await p.fetch_slot(slot_id))["myBooking"] is not None for p in (ben, cleo, dan)] == [
        True,
        True,
        False,
    ]


async def test_a_moved_offer_is_held_no_longer_than_a_hold_may_last(clients: Five) -> None:
    _, ben, *_, organizer = clients
    week = 7 * 24 * 60
    month = {"startTime": hours_from_now(720), "endTime": hours_from_now(721)}
    slot_id = await offering(clients, waitlistOfferMinutes=week, **month)
    other_id = await organizer.add_slot(**month)
    moved = await ben.move((await offered_to(ben, slot_id))["id"], other_id)
    booking = moved["booking"]
    lasts = datetime.fromisoformat(booking["heldUntil"]) - datetime.fromisoformat(
        booking["createdAt"]
    )
    assert lasts <= timedelta(minutes=60)


@pytest.mark.parametrize("minutes", [0, 10081])
async def test_an_offer_lasts_1_minute_to_7_days(clients: Five, minutes: int) -> None:
    *_, organizer = clients
    slot_id = await organizer.add_slot()
    assert (await organizer.update_slot(slot_id, waitlistOfferMinutes=minutes))["code"] == (
        "INVALID_INPUT"
    )
