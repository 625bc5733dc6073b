"""Cancelling: who may cancel, until when, and what is recorded."""

import asyncio

import pytest

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import CANCEL_WITH_OPTIONS, SLOT_HISTORY, BookingClient
from tests.support.clients.client import GraphQLTestClient
from tests.support.clients.fixtures import Three
from tests.support.transport.simultaneous_requests import send_simultaneously

NOTHING = "0" * 24


async def booked(user: BookingClient, slot_id: str) -> str:
    """Return the id of a user's new booking."""
    return str((await user.book_slot(slot_id))["booking"]["id"])


async def test_cancelling_again_returns_the_same_booking_each_time(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot()
    booking_id = await booked(ada, slot_id)
    first = await ada.cancel_booking(booking_id)
    await ben.book_slot(slot_id)
    for again in (await ada.cancel_booking(booking_id), await organizer.cancel_booking(booking_id)):
        assert (again["__typename"], again["booking"]) == ("BookingCancelled", first["booking"])
    assert (await ben.fetch_slot(slot_id))["myBooking"]["status"] == "CONFIRMED"


async def test_of_20_cancellations_at_once_one_has_an_effect_and_all_give_the_same_booking(
    two_apps: Pair, clients: Three
) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(capacity=2)
    await ben.book_slot(slot_id)
    booking_id = await booked(ada, slot_id)
    version = (await ada.fetch_slot(slot_id))["version"]
    urls = [two_apps[i % 2].url for i in range(20)]
    variables = {"booking": booking_id, "wait": 20_000}
    outcomes = await send_simultaneously(
        [(url, ada.token or "", CANCEL_WITH_OPTIONS, variables) for url in urls]
    )
    assert {outcome["__typename"] for outcome in outcomes} == {"BookingCancelled"}
    assert all(outcome["booking"] == outcomes[0]["booking"] for outcome in outcomes)
    seen = await ada.fetch_slot(slot_id)
    assert (seen["remaining"], seen["version"]) == (1, version + 1)
    assert len(await organizer.fetch_slot_history(slot_id)) == 1


@pytest.mark.parametrize(
    "booking_id", ["", "x", "booking_", f"booking_{NOTHING}{NOTHING}", f"slot_{NOTHING}", "$where"]
)
async def test_an_unknown_booking_id_is_booking_not_found_for_every_mutation(
    clients: Three, booking_id: str
) -> None:
    ada, _, organizer = clients
    for call in (
        ada.cancel_booking(booking_id),
        ada.confirm(booking_id),
        ada.extend(booking_id),
        ada.move(booking_id, await organizer.add_slot()),
        organizer.cancel_booking(booking_id),
    ):
        refused = await call
        assert refused["code"] == "BOOKING_NOT_FOUND"
        assert refused["message"] == "This booking does not exist or has ended."


async def test_a_booking_is_found_only_in_its_own_slot(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id, other_id = await organizer.add_slot(), await organizer.add_slot()
    booking_id = await booked(ada, slot_id)
    forged = f"booking_{other_id[-24:]}{booking_id[-24:]}"
    assert (await ada.cancel_booking(forged))["code"] == "BOOKING_NOT_FOUND"
    await ada.cancel_booking(booking_id)
    assert (await ada.cancel_booking(forged))["code"] == "BOOKING_NOT_FOUND"
    assert await ada.fetch_booking(forged) is None


async def test_confirming_and_cancelling_at_once_have_one_final_state(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot()
    elsewhere = BookingClient(ada.http, organizer.url, ada.token)
    for _ in range(10):
        hold = await ada.hold(slot_id)
        confirmed, cancelled = await asyncio.gather(
            ada.confirm(hold["id"]), ada.cancel_booking(hold["id"])
        )
        assert cancelled["__typename"] == "BookingCancelled"
        assert confirmed["__typename"] in ("BookingConfirmed", "BookingNotFound")
        assert (await elsewhere.fetch_booking(hold["id"]))["status"] == "CANCELLED"
        assert (await elsewhere.fetch_slot(slot_id))["remaining"] == 1


async def test_a_booking_of_a_slot_that_was_cancelled_shows_as_cancelled(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot()
    booking_id = await booked(ada, slot_id)
    await organizer.cancel_slot(slot_id)
    assert (await ada.fetch_booking(booking_id))["status"] == "CANCELLED"
    assert (await ada.cancel_booking(booking_id))["__typename"] == "BookingCancelled"


async def test_ended_bookings_of_a_slot_are_listed_for_organizers(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(capacity=2)
    ended = []
    # The clocks of two processes differ a little, so that one of them makes all the changes.
    ben = BookingClient(ben.http, ada.url, ben.token)
    for user in (ada, ben, ada, ben, ada):
        booking_id = await booked(user, slot_id)
        await user.cancel_booking(booking_id)
        ended.append(booking_id)
    assert [booking["id"] for booking in await organizer.fetch_slot_history(slot_id)] == ended
    page = """query($slot: ID!, $after: String) {
      slotHistory(slotId: $slot, first: 2, after: $after) {
        nodes { id }
        pageInfo { hasNextPage endCursor }
      }
    }"""
    walked = await organizer.all_nodes(page, slot=slot_id)
    assert [booking["id"] for booking in walked] == ended
    assert await ada.error_code(SLOT_HISTORY, slot=slot_id) == "FORBIDDEN"
    nobody = GraphQLTestClient(ada.http, ada.url)
    assert await nobody.error_code(SLOT_HISTORY, slot=slot_id) == "UNAUTHENTICATED"
    assert await organizer.execute(SLOT_HISTORY, slot=f"slot_{NOTHING}") is None
    assert await organizer.error_code(page, slot=slot_id, after="nonsense") == "BAD_USER_INPUT"
