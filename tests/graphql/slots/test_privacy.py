"""What a team-mate is told of a booking that stands in the way: that it is there, and no more."""

import secrets

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import Json

Pair = tuple[AppProcess, AppProcess]
Four = tuple[BookingClient, BookingClient, BookingClient, BookingClient]
KEPT = "{ id history { action by { id } } madeBy { id } }"
ALONE = f"""mutation($input: BookSlotInput!) {{ bookSlot(input: $input) {{
  ... on AlreadyBooked {{ code booking {KEPT} slot {{ bookedBy {{ id }} myBooking {{ id }} }} }}
  ... on LimitReached {{ code otherBookingId slot {{ bookedBy {{ id }} myBooking {{ id }} }} }}
}} }}"""
SEVERAL = f"""mutation($input: BookSlotsInput!) {{ bookSlots(input: $input) {{
  ... on ClaimsRefused {{ refusals {{ refusal {{
    ... on AlreadyBooked {{ code booking {KEPT} slot {{ bookedBy {{ id }} myBooking {{ id }} }} }}
    ... on LimitReached {{ code otherBookingId slot {{ bookedBy {{ id }} myBooking {{ id }} }} }}
  }} }} }}
}} }}"""


@pytest.fixture
async def clients(two_apps: Pair, http: httpx.AsyncClient) -> Four:
    """Ada, Ben and Cleo, who are a team, and an organiser."""
    (ada, ben, cleo), organiser = await create_booking_clients(http, 3, *two_apps)
    await ada.create_team_with(ben, cleo)
    return ada, ben, cleo, organiser


async def told(who: BookingClient, slot_id: str, user_id: str) -> Json:
    """What somebody is told who books for a person, alone; the same as among other claims."""
    claim = {"slotId": slot_id, "userId": user_id}
    alone: Json = await who.execute(ALONE, input=claim)
    (refused,) = (await who.execute(SEVERAL, input={"claims": [claim]}))["refusals"]
    assert refused["refusal"] == alone
    return alone


async def test_a_team_mate_sees_no_record_of_a_booking_that_they_did_not_make(
    clients: Four,
) -> None:
    ada, ben, cleo, organiser = clients
    slot_id, bens = await organiser.add_slot(), await ben.fetch_user_id()
    booking = (await ben.book_slot(slot_id))["booking"]
    hidden = await told(ada, slot_id, bens)
    assert hidden == {
        "code": "ALREADY_BOOKED",
        "booking": {"id": booking["id"], "history": [], "madeBy": None},
        "slot": {"bookedBy": None, "myBooking": None},
    }
    # Nor do they by its id.
    assert await cleo.fetch_booking(booking["id"]) is None


@pytest.mark.parametrize("maker", ["a team-mate", "an organiser"])
async def test_who_made_a_booking_for_somebody_is_not_told_to_their_team_mates(
    clients: Four, maker: str
) -> None:
    ada, ben, cleo, organiser = clients
    made_by = cleo if maker == "a team-mate" else organiser
    slot_id, bens = await organiser.add_slot(), await ben.fetch_user_id()
    await made_by.book_slot(slot_id, userId=bens)
    hidden = await told(ada, slot_id, bens)
    assert (hidden["booking"]["history"], hidden["booking"]["madeBy"]) == ([], None)


async def test_its_owner_who_made_it_and_organisers_are_told_who_did_what(clients: Four) -> None:
    ada, ben, _, organiser = clients
    slot_id, bens, adas = (
        await organiser.add_slot(),
        await ben.fetch_user_id(),
        await ada.fetch_user_id(),
    )
    await ada.book_slot(slot_id, userId=bens)
    for reader in (ada, ben, organiser):
        booking = (await told(reader, slot_id, bens))["booking"]
        assert booking["madeBy"] == {"id": adas}
        assert booking["history"] == [{"action": "BOOKED", "by": {"id": adas}}]


async def test_a_team_mate_is_not_told_which_other_of_a_choice_a_person_has(clients: Four) -> None:
    ada, ben, cleo, organiser = clients
    room, bens = secrets.token_hex(8), await ben.fetch_user_id()
    bed, other = [await organiser.add_slot(choiceGroup=room) for _ in range(2)]
    # Not even who booked the other for them: that could be another team's by now.
    booking = (await ada.book_slot(bed, userId=bens))["booking"]
    for mate in (ada, cleo):
        hidden = await told(mate, other, bens)
        assert hidden == {
            "code": "LIMIT_REACHED",
            "otherBookingId": None,
            "slot": {"bookedBy": None, "myBooking": None},
        }
    assert (await told(ben, other, bens))["otherBookingId"] == booking["id"]


async def test_the_record_is_hidden_however_often_it_was_added_to(clients: Four) -> None:
    ada, ben, _, organiser = clients
    slot_id, other_id, bens = (
        await organiser.add_slot(),
        await organiser.add_slot(),
        await ben.fetch_user_id(),
    )
    hold = await ben.hold(slot_id)
    await organiser.confirm(hold["id"])
    moved = (await organiser.move(hold["id"], other_id))["booking"]
    hidden = (await told(ada, other_id, bens))["booking"]
    assert hidden == {"id": moved["id"], "history": [], "madeBy": None}
