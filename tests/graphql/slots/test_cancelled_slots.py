"""Bookings and holds of a slot that is cancelled or moved to an earlier time."""

from datetime import datetime

import httpx
import pytest

from tests.support.apps.deployment import slot_document
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient, create_booking_clients, expire_holds
from tests.support.clients.client import Json, hours_from_now
from tests.support.clients.fixtures import Three
from tests.support.polling import poll_until

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


async def test_cancelling_a_slot_again_changes_nothing(
    clients: Three, two_apps: Pair, http: httpx.AsyncClient
) -> None:
    ada, _, organizer = clients
    _, other = create_booking_clients(http, 0, *two_apps)
    slot_id = await organizer.add_slot()
    booking = (await ada.book_slot(slot_id))["booking"]
    await organizer.cancel_slot(slot_id)
    cancelled = await ada.fetch_booking(booking["id"])
    version = (await ada.fetch_slot(slot_id))["version"]
    await other.cancel_slot(slot_id)
    assert await ada.fetch_booking(booking["id"]) == cancelled
    assert (await ada.fetch_slot(slot_id))["version"] == version
    assert_cancelled_with_slot(cancelled, await organizer.fetch_user_id(), booking)


async def test_cancelling_a_booking_of_a_cancelled_slot_writes_nothing(
    clients: Three, mongo_url: str
) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(capacity=2, cancelCutoffMinutes=3 * 24 * 60)
    booked, hold = (await ada.book_slot(slot_id))["booking"], await ben.hold(slot_id)
    await organizer.cancel_slot(slot_id)
    before = slot_document(mongo_url, slot_id)
    for client, booking in ((ada, booked), (ben, hold), (organizer, booked)):
        cancelled = await client.fetch_booking(booking["id"])
        for options in ({}, {"key": "repeated"}, {"wait": 0}):
            outcome = await client.cancel_booking(booking["id"], **options)
            assert outcome["__typename"] == "BookingCancelled"
            assert outcome["booking"] == cancelled
            assert outcome["slot"]["version"] == before["version"]
    assert slot_document(mongo_url, slot_id) == before
    assert await organizer.fetch_slot_history(slot_id) == []


async def test_no_booking_moves_out_of_a_cancelled_slot(clients: Three, mongo_url: str) -> None:
    ada, ben, organizer = clients
    slot_id, other_id = await organizer.add_slot(capacity=2), await organizer.add_slot(capacity=2)
    booked, hold = (await ada.book_slot(slot_id))["booking"], await ben.hold(slot_id)
    await organizer.cancel_slot(slot_id)
    before = slot_document(mongo_url, slot_id)
    for client, booking in ((ada, booked), (ben, hold), (organizer, booked)):
        for target_id in (other_id, slot_id):
            assert (await client.move(booking["id"], target_id))["code"] == "SLOT_CANCELLED"
    assert slot_document(mongo_url, slot_id) == before
    assert (await ada.fetch_slot(other_id))["remaining"] == 2


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


async def test_holds_of_a_cancelled_slot_do_not_expire(clients: Three, mongo_url: str) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot()
    hold = await ada.hold(slot_id)
    await ben.join(slot_id)
    await organizer.cancel_slot(slot_id)
    version = slot_document(mongo_url, slot_id)["version"]
    expire_holds(mongo_url, slot_id, expired_for_s=1)

    async def fetch_document() -> Json:
        return slot_document(mongo_url, slot_id)

    swept = await poll_until(
        fetch_document, lambda slot: "nextDeadline" not in slot, "the hold sweeper updates the slot"
    )
    assert (swept["version"], len(swept["bookings"])) == (version, 1)
    cancelled = await ada.fetch_booking(hold["id"])
    assert [entry["action"] for entry in cancelled["history"]] == ["HELD", "CANCELLED"]
    assert (await ada.confirm(hold["id"]))["code"] == "SLOT_CANCELLED"
    assert (await ada.cancel_booking(hold["id"]))["__typename"] == "BookingCancelled"


async def start_slot(organizer: BookingClient, slot_id: str) -> None:
    """Move the start of a slot to one hour ago."""
    changed = await organizer.update_slot(slot_id, startTime=hours_from_now(-1))
    assert changed["__typename"] == "Slot", changed


async def test_a_hold_can_be_confirmed_after_the_earlier_start(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(capacity=2)
    hold = await ada.hold(slot_id)
    await start_slot(organizer, slot_id)
    assert (await ada.fetch_booking(hold["id"]))["heldUntil"] == hold["heldUntil"]
    confirmed = await ada.confirm(hold["id"])
    assert confirmed["__typename"] == "BookingConfirmed"
    assert confirmed["booking"]["status"] == "CONFIRMED"
    assert confirmed["slot"]["remaining"] == 1
    # For all other changes the slot has started.
    assert (await ben.book_slot(slot_id))["code"] == "SLOT_STARTED"
    assert (await ada.cancel_booking(hold["id"]))["code"] == "SLOT_STARTED"


async def test_a_hold_can_be_cancelled_after_the_earlier_start(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot(cancelCutoffMinutes=60)
    hold = await ada.hold(slot_id)
    await start_slot(organizer, slot_id)
    cancelled = await ada.cancel_booking(hold["id"])
    assert cancelled["__typename"] == "BookingCancelled"
    assert (cancelled["booking"]["status"], cancelled["slot"]["remaining"]) == ("CANCELLED", 1)
    assert cancelled["booking"]["overriddenLimits"] == []


async def test_an_expired_hold_can_be_neither_confirmed_nor_cancelled_after_the_earlier_start(
    two_apps: Pair, clients: Three
) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot()
    hold = await ada.hold(slot_id)
    await start_slot(organizer, slot_id)
    expire_holds(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    assert (await ada.confirm(hold["id"]))["code"] == "HOLD_EXPIRED"
    assert (await ada.cancel_booking(hold["id"]))["code"] == "HOLD_EXPIRED"
    assert (await ada.fetch_slot(slot_id))["remaining"] == 1


async def test_a_hold_can_be_moved_to_a_future_slot_after_the_earlier_start(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id, other_id = await organizer.add_slot(), await organizer.add_slot()
    hold = await ada.hold(slot_id)
    await start_slot(organizer, slot_id)
    moved = await ada.move(hold["id"], other_id)
    assert moved["__typename"] == "BookingMoved"
    assert moved["booking"]["status"] == "HELD"
    assert datetime.fromisoformat(moved["booking"]["heldUntil"]) <= datetime.fromisoformat(
        hold["heldUntil"]
    )
