"""Organizers act for anyone: recorded by whom, with every limit they override by name."""

import secrets

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import hours_from_now

Pair = tuple[AppProcess, AppProcess]
Three = tuple[BookingClient, BookingClient, BookingClient]
NOBODY = "user_" + "0" * 24


@pytest.fixture
def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Return clients for Ada and Ben, who share no team, and an organizer."""
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    return ada, ben, organizer


async def test_an_organizer_books_for_anyone_and_is_recorded(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot()
    adas, organizers = await ada.fetch_user_id(), await organizer.fetch_user_id()
    booking = (await organizer.book_slot(slot_id, userId=adas))["booking"]
    assert (booking["user"]["id"], booking["madeBy"]["id"]) == (adas, organizers)
    assert (booking["onBehalf"], booking["overriddenLimits"]) == (True, [])
    (first,) = booking["history"]
    assert (first["action"], first["by"]["id"]) == ("BOOKED", organizers)
    assert (await ada.fetch_slot(slot_id))["myBooking"] == booking


async def test_a_users_own_booking_is_not_on_behalf(clients: Three) -> None:
    ada, _, organizer = clients
    for user in (ada, organizer):
        own = await user.fetch_user_id()
        slot_id = await organizer.add_slot(capacity=2)
        booking = (await user.book_slot(slot_id, userId=own))["booking"]
        assert (booking["onBehalf"], booking["madeBy"]["id"]) == (False, own)


async def test_an_organizer_holds_a_place_for_somebody_who_confirms_it(clients: Three) -> None:
    ada, _, organizer = clients
    hold = await organizer.hold(await organizer.add_slot(), userId=await ada.fetch_user_id())
    assert (hold["status"], hold["onBehalf"]) == ("HELD", True)
    confirmed = (await ada.confirm(hold["id"]))["booking"]
    assert [entry["by"]["id"] for entry in confirmed["history"]] == [
        await organizer.fetch_user_id(),
        await ada.fetch_user_id(),
    ]


async def test_not_even_an_organizer_exceeds_the_capacity(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id, other_id = await organizer.add_slot(), await organizer.add_slot()
    await ada.book_slot(slot_id)
    assert (await organizer.book_slot(slot_id, userId=await ben.fetch_user_id()))[
        "code"
    ] == "SLOT_FULL"
    booking = (await ben.book_slot(other_id))["booking"]
    assert (await organizer.move(booking["id"], slot_id))["code"] == "SLOT_FULL"
    await organizer.update_slot(slot_id, startTime=hours_from_now(-1))
    assert (await organizer.book_slot(slot_id, userId=await ben.fetch_user_id()))[
        "code"
    ] == "SLOT_FULL"
    assert (await ben.fetch_slot(slot_id))["remaining"] == 0


async def test_an_organizer_cannot_bypass_the_waitlist(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(waitlistOfferMinutes=30)
    booking = (await ada.book_slot(slot_id))["booking"]
    await ben.join(slot_id)
    await ada.cancel_booking(booking["id"])
    assert (await organizer.book_slot(slot_id, userId=await ada.fetch_user_id()))[
        "code"
    ] == "SLOT_FULL"


@pytest.mark.parametrize("user_id", [NOBODY, "", "nobody", "slot_" + "0" * 24])
async def test_an_unknown_user_is_never_booked(clients: Three, user_id: str) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot()
    assert (await organizer.book_slot(slot_id, userId=user_id))["code"] == "USER_NOT_FOUND"
    assert (await ada.fetch_slot(slot_id))["remaining"] == 1


async def test_a_user_has_one_place_in_a_slot_even_if_others_book_it(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot(capacity=5)
    booking = (await ada.book_slot(slot_id))["booking"]
    again = await organizer.book_slot(slot_id, userId=await ada.fetch_user_id())
    assert (again["code"], again["booking"]["id"]) == ("ALREADY_BOOKED", booking["id"])


async def test_an_organizer_can_book_others_into_a_started_slot(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot(startTime=hours_from_now(-1))
    assert (await ada.book_slot(slot_id))["code"] == "SLOT_STARTED"
    assert (await organizer.book_slot(slot_id))["code"] == "SLOT_STARTED"
    booking = (await organizer.book_slot(slot_id, userId=await ada.fetch_user_id()))["booking"]
    assert (
        booking["overriddenLimits"] == booking["history"][0]["overriddenLimits"] == ["SLOT_STARTED"]
    )
    assert (await ada.fetch_booking(booking["id"]))["overriddenLimits"] == ["SLOT_STARTED"]


async def test_an_organizer_can_give_a_second_place_of_a_choice_group(clients: Three) -> None:
    ada, _, organizer = clients
    room = secrets.token_hex(8)
    bed, other_bed = [await organizer.add_slot(choiceGroup=room) for _ in range(2)]
    await ada.book_slot(bed)
    assert (await ada.book_slot(other_bed))["code"] == "LIMIT_REACHED"
    booking = (await organizer.book_slot(other_bed, userId=await ada.fetch_user_id()))["booking"]
    assert booking["overriddenLimits"] == ["ONE_OF_CHOICE"]


async def test_an_organizer_moves_a_booking_and_the_overridden_limits_are_named(
    clients: Three,
) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot(cancelCutoffMinutes=3 * 24 * 60)
    other_id = await organizer.add_slot(startTime=hours_from_now(-1))
    adas, organizers = await ada.fetch_user_id(), await organizer.fetch_user_id()
    booking = (await ada.book_slot(slot_id))["booking"]
    assert (await ada.move(booking["id"], other_id))["code"] == "CUTOFF_PASSED"
    moved = await organizer.move(booking["id"], other_id)
    new, old = moved["booking"], moved["oldBooking"]
    assert (new["user"]["id"], new["madeBy"]["id"], new["onBehalf"]) == (adas, organizers, True)
    assert (old["overriddenLimits"], new["overriddenLimits"]) == (
        ["CANCEL_CUTOFF"],
        ["SLOT_STARTED"],
    )
    assert old["history"][-1]["by"]["id"] == new["history"][-1]["by"]["id"] == organizers
    assert await ada.fetch_booking(old["id"]) == old
    assert await organizer.fetch_slot_history(slot_id) == [old]


async def test_an_organizer_cancels_for_somebody_and_is_recorded(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot()
    booking = (await ada.book_slot(slot_id))["booking"]
    cancelled = (await organizer.cancel_booking(booking["id"]))["booking"]
    assert cancelled["onBehalf"] is False
    assert [entry["by"]["id"] for entry in cancelled["history"]] == [
        await ada.fetch_user_id(),
        await organizer.fetch_user_id(),
    ]
    assert await organizer.fetch_slot_history(slot_id) == [cancelled]


async def test_a_hold_in_a_started_slot_can_be_confirmed_until_it_expires(
    clients: Three,
) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot(startTime=hours_from_now(-1), holdMinutes=5)
    hold = await organizer.hold(slot_id, userId=await ada.fetch_user_id())
    assert hold["overriddenLimits"] == ["SLOT_STARTED"]
    confirmed = (await ada.confirm(hold["id"]))["booking"]
    assert (confirmed["status"], confirmed["overriddenLimits"]) == ("CONFIRMED", [])


async def test_an_organizer_books_several_for_several_and_each_override_is_named(
    clients: Three,
) -> None:
    ada, ben, organizer = clients
    begun, coming = (
        await organizer.add_slot(startTime=hours_from_now(-1)),
        await organizer.add_slot(),
    )
    claims = [
        {"slotId": begun, "userId": await ada.fetch_user_id()},
        {"slotId": coming, "userId": await ben.fetch_user_id()},
    ]
    outcome = await organizer.book_all(*claims)
    assert [booking["overriddenLimits"] for booking in outcome["bookings"]] == [
        ["SLOT_STARTED"],
        [],
    ]
    assert {booking["madeBy"]["id"] for booking in outcome["bookings"]} == {
        await organizer.fetch_user_id()
    }


async def test_the_history_shows_its_owner_who_did_what(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_ids = [await organizer.add_slot() for _ in range(2)]
    hold = await ada.hold(slot_ids[0])
    await organizer.confirm(hold["id"])
    moved = (await organizer.move(hold["id"], slot_ids[1]))["booking"]
    await ada.cancel_booking(moved["id"])
    adas, organizers = await ada.fetch_user_id(), await organizer.fetch_user_id()
    recorded = [
        (entry["action"], entry["by"]["id"])
        for booking_id in (hold["id"], moved["id"])
        for entry in (await ada.fetch_booking(booking_id))["history"]
    ]
    assert recorded == [
        ("HELD", adas),
        ("CONFIRMED", organizers),
        ("MOVED", organizers),
        ("MOVED", organizers),
        ("CANCELLED", adas),
    ]
    assert await ben.fetch_booking(hold["id"]) is None
