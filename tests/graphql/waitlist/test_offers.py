"""Freed places are offered to waiting users, one after the other, for a limited time."""

import pytest

from tests.support.clients.booking_client import BookingClient, expire_holds
from tests.support.clients.client import Json
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


async def test_accepting_an_offer_books_the_place(clients: Five, mongo_url: str) -> None:
    _, ben, cleo, *_ = clients
    slot_id = await offering(clients)
    offer = await offered_to(ben, slot_id)
    confirmed = (await ben.confirm(offer["id"]))["booking"]
    assert [entry["action"] for entry in confirmed["history"]] == ["OFFERED", "CONFIRMED"]
    expire_holds(mongo_url, slot_id)
    assert (await cleo.fetch_slot(slot_id))["myWaitlistEntry"]["position"] == 1


async def test_an_expired_offer_passes_to_the_next_entry_again_and_again(
    clients: Five, mongo_url: str
) -> None:
    _, ben, cleo, dan, organizer = clients
    slot_id, other_id = await offering(clients), await organizer.add_slot()
    offers = []
    for user in (ben, cleo, dan):
        offers.append(await offered_to(user, slot_id))
        expire_holds(mongo_url, slot_id)
        for late in (user.confirm(offers[-1]["id"]), user.move(offers[-1]["id"], other_id)):
            assert (await late)["code"] == "HOLD_EXPIRED"
    assert (await ben.fetch_slot(slot_id))["remaining"] == 1
    ended = await poll_until(
        lambda: organizer.fetch_slot_history(slot_id),
        lambda history: len(history) == 1 + len(offers),
        "the sweeper has recorded the end of each offer",
    )
    assert [(b["id"], b["status"]) for b in ended[1:]] == [(o["id"], "EXPIRED") for o in offers]
    assert (await ben.book_slot(slot_id))["__typename"] == "Booked"


@pytest.mark.parametrize("minutes", [0, 10081])
async def test_an_offer_lasts_1_minute_to_7_days(clients: Five, minutes: int) -> None:
    *_, organizer = clients
    slot_id = await organizer.add_slot()
    assert (await organizer.update_slot(slot_id, waitlistOfferMinutes=minutes))["code"] == (
        "INVALID_INPUT"
    )
