"""Bookings, holds and waiting lists of a slot that is cancelled."""

from datetime import datetime

import httpx
import pytest

from tests.support.apps.deployment import slot_document
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import Json
from tests.support.clients.fixtures import Three

MY_BOOKINGS = "{ myBookings { nodes { id status endedAt } } }"
ROSTER = """query($slot: ID!) { slotRoster(slotId: $slot) {
  nodes { id status endedAt history { action by { id } } }
} }"""
CANCEL = """mutation($slot: ID!, $reason: String) { cancelSlot(slotId: $slot, reason: $reason) {
  __typename ... on InvalidInput { fields { field } }
} }"""
REASON = "query($slot: ID!) { slot(id: $slot) { status cancelReason cancelledForMe } }"
LOG = """query($slot: ID!) { auditLog(filter: {slotId: $slot}) {
  nodes { edits { field before after } }
} }"""
WAITLIST = "query($slot: ID!) { slot(id: $slot) { waitlistLength myWaitlistEntry { id } } }"


def assert_cancelled_with_slot(booking: Json, organizer_id: str, before: Json) -> None:
    """Check that the booking ended with its slot, and that its history names the organizer."""
    assert (booking["id"], booking["status"]) == (before["id"], "CANCELLED")
    *earlier, last = booking["history"]
    assert earlier == before["history"]
    assert (last["action"], last["before"], last["after"]) == (
        "CANCELLED",
        before["status"],
        "CANCELLED",
    )
    assert last["by"]["id"] == organizer_id
    assert booking["endedAt"] == last["at"]
    assert datetime.fromisoformat(booking["endedAt"]) >= datetime.fromisoformat(before["createdAt"])


async def test_bookings_end_with_their_slot_and_name_the_organizer(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(capacity=2)
    booked, hold = (await ada.book_slot(slot_id))["booking"], await ben.hold(slot_id)
    await organizer.cancel_slot(slot_id)
    organizer_id = await organizer.fetch_user_id()
    for client, before in ((ada, booked), (ben, hold)):
        cancelled = await client.fetch_booking(before["id"])
        assert_cancelled_with_slot(cancelled, organizer_id, before)
        assert (await client.fetch_slot(slot_id))["myBooking"] == cancelled
        assert (await client.cancel_booking(before["id"]))["booking"] == cancelled
        assert await organizer.fetch_booking(before["id"]) == cancelled
        (listed,) = (await client.execute(MY_BOOKINGS))["nodes"]
        shown = {name: cancelled[name] for name in ("id", "status", "endedAt")}
        assert listed == shown
    roster = (await organizer.execute(ROSTER, slot=slot_id))["nodes"]
    assert [(b["id"], b["status"]) for b in roster] == [
        (booked["id"], "CANCELLED"),
        (hold["id"], "CANCELLED"),
    ]
    assert {b["history"][-1]["by"]["id"] for b in roster} == {organizer_id}


async def test_the_waiting_list_ends_with_its_slot(clients: Three, mongo_url: str) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(waitlistOfferMinutes=30)
    await ada.book_slot(slot_id)
    assert (await ben.join(slot_id))["__typename"] == "WaitlistJoined"
    await organizer.cancel_slot(slot_id)
    assert await ben.execute(WAITLIST, slot=slot_id) == {
        "waitlistLength": 0,
        "myWaitlistEntry": None,
    }
    assert (await ben.leave(slot_id))["code"] == "NOT_WAITING"
    assert (await ben.join(slot_id))["code"] == "SLOT_CANCELLED"
    assert slot_document(mongo_url, slot_id)["waitlist"] == []
    assert (await ben.fetch_slot(slot_id))["myBooking"] is None


async def test_the_reason_of_a_cancellation_stands_at_the_slot_and_in_the_log(
    clients: Three,
) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot()
    assert (await ada.execute(REASON, slot=slot_id))["cancelReason"] is None
    await organizer.execute(CANCEL, slot=slot_id, reason="  The hall is flooded ")
    reason = "The hall is flooded"
    assert (await ada.execute(REASON, slot=slot_id))["cancelReason"] == reason
    newest = (await organizer.execute(LOG, slot=slot_id))["nodes"][0]
    assert {"field": "cancelReason", "before": None, "after": reason} in newest["edits"]


@pytest.mark.parametrize("reason", ["x" * 201, "two\nlines"])
async def test_a_reason_that_is_no_line_of_200_characters_cancels_nothing(
    organizer: BookingClient, reason: str
) -> None:
    slot_id = await organizer.add_slot()
    refused = await organizer.execute(CANCEL, slot=slot_id, reason=reason)
    assert [problem["field"] for problem in refused["fields"]] == ["reason"]
    assert (await organizer.execute(REASON, slot=slot_id))["status"] == "PUBLISHED"


async def test_those_who_had_a_place_or_waited_find_the_cancelled_slot_as_theirs(
    clients: Three, http: httpx.AsyncClient, two_apps: Pair
) -> None:
    ada, ben, organizer = clients
    [left], _ = create_booking_clients(http, 1, *two_apps)
    slot_id = await organizer.add_slot()
    await ada.book_slot(slot_id)
    for waiting in (left, ben):
        await waiting.join(slot_id)
    await left.leave(slot_id)
    everyone = {"booked": ada, "waited": ben, "left before": left, "organizer": organizer}

    async def fetch_own() -> set[str]:
        found = {name: await each.execute(REASON, slot=slot_id) for name, each in everyone.items()}
        return {name for name, slot in found.items() if slot["cancelledForMe"]}

    assert await fetch_own() == set()
    await organizer.cancel_slot(slot_id)
    assert await fetch_own() == {"booked", "waited"}
