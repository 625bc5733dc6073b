"""A refusal reveals to teammates that a user has a booking, and nothing about its history."""

import secrets

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import Json

Pair = tuple[AppProcess, AppProcess]
Four = tuple[BookingClient, BookingClient, BookingClient, BookingClient]
ALREADY_BOOKED = """... on AlreadyBooked {
  code booking { id history { action by { id } } madeBy { id } }
  slot { bookedBy { id } myBooking { id } }
}"""
LIMIT_REACHED = """... on LimitReached {
  code otherBookingId slot { bookedBy { id } myBooking { id } }
}"""
BOOK_ONE = f"""mutation($input: BookSlotInput!) {{
  bookSlot(input: $input) {{ {ALREADY_BOOKED} {LIMIT_REACHED} }}
}}"""
BOOK_SEVERAL = f"""mutation($input: BookSlotsInput!) {{
  bookSlots(input: $input) {{
    ... on ClaimsRefused {{ refusals {{ refusal {{ {ALREADY_BOOKED} {LIMIT_REACHED} }} }} }}
  }}
}}"""


@pytest.fixture
async def clients(two_apps: Pair, http: httpx.AsyncClient) -> Four:
    """Return clients for Ada, Ben and Cleo, who form a team, and an organizer."""
    (ada, ben, cleo), organizer = create_booking_clients(http, 3, *two_apps)
    await ada.create_team_with(ben, cleo)
    return ada, ben, cleo, organizer


async def refusal_for(client: BookingClient, slot_id: str, user_id: str) -> Json:
    """Return the refusal of a booking for a user; check that `bookSlots` refuses it alike."""
    claim = {"slotId": slot_id, "userId": user_id}
    refusal: Json = await client.execute(BOOK_ONE, input=claim)
    (claimed,) = (await client.execute(BOOK_SEVERAL, input={"claims": [claim]}))["refusals"]
    assert claimed["refusal"] == refusal
    return refusal


async def test_a_teammate_does_not_see_the_history_of_a_booking_they_did_not_make(
    clients: Four,
) -> None:
    ada, ben, cleo, organizer = clients
    slot_id, ben_id = await organizer.add_slot(), await ben.fetch_user_id()
    booking = (await ben.book_slot(slot_id))["booking"]
    refusal = await refusal_for(ada, slot_id, ben_id)
    assert refusal == {
        "code": "ALREADY_BOOKED",
        "booking": {"id": booking["id"], "history": [], "madeBy": None},
        "slot": {"bookedBy": None, "myBooking": None},
    }
    # The id of the booking does not reveal it either.
    assert await cleo.fetch_booking(booking["id"]) is None


@pytest.mark.parametrize("booker_name", ["teammate", "organizer"])
async def test_a_teammate_does_not_see_the_booker_of_a_booking_on_behalf(
    clients: Four, booker_name: str
) -> None:
    ada, ben, cleo, organizer = clients
    booker = cleo if booker_name == "teammate" else organizer
    slot_id, ben_id = await organizer.add_slot(), await ben.fetch_user_id()
    await booker.book_slot(slot_id, userId=ben_id)
    refusal = await refusal_for(ada, slot_id, ben_id)
    assert (refusal["booking"]["history"], refusal["booking"]["madeBy"]) == ([], None)


async def test_the_user_the_booker_and_organizers_see_the_history(clients: Four) -> None:
    ada, ben, _, organizer = clients
    slot_id = await organizer.add_slot()
    ben_id, ada_id = await ben.fetch_user_id(), await ada.fetch_user_id()
    await ada.book_slot(slot_id, userId=ben_id)
    for reader in (ada, ben, organizer):
        booking = (await refusal_for(reader, slot_id, ben_id))["booking"]
        assert booking["madeBy"] == {"id": ada_id}
        assert booking["history"] == [{"action": "BOOKED", "by": {"id": ada_id}}]


async def test_a_teammate_does_not_see_the_booking_in_the_choice_group(clients: Four) -> None:
    ada, ben, cleo, organizer = clients
    choice_group, ben_id = secrets.token_hex(8), await ben.fetch_user_id()
    bed, other = [await organizer.add_slot(choiceGroup=choice_group) for _ in range(2)]
    # The booker of the other booking does not see it either: they may have left the team since.
    booking = (await ada.book_slot(bed, userId=ben_id))["booking"]
    for teammate in (ada, cleo):
        refusal = await refusal_for(teammate, other, ben_id)
        assert refusal == {
            "code": "LIMIT_REACHED",
            "otherBookingId": None,
            "slot": {"bookedBy": None, "myBooking": None},
        }
    assert (await refusal_for(ben, other, ben_id))["otherBookingId"] == booking["id"]


async def test_a_history_of_several_changes_is_hidden_too(clients: Four) -> None:
    ada, ben, _, organizer = clients
    slot_id, other_id = await organizer.add_slot(), await organizer.add_slot()
    ben_id = await ben.fetch_user_id()
    hold = await ben.hold(slot_id)
    await organizer.confirm(hold["id"])
    moved = (await organizer.move(hold["id"], other_id))["booking"]
    refusal = (await refusal_for(ada, other_id, ben_id))["booking"]
    assert refusal == {"id": moved["id"], "history": [], "madeBy": None}
