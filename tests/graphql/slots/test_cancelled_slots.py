"""A slot that was called off: its bookings ended with it, and nothing there is done any more."""

from datetime import datetime

import httpx
import pytest

from tests.support.apps.deployment import slot_document
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import (
    BookingClient,
    create_booking_clients,
    expire_holds,
    poll_until,
)
from tests.support.clients.client import Json

Pair = tuple[AppProcess, AppProcess]
Three = tuple[BookingClient, BookingClient, BookingClient]
MY_BOOKINGS = "{ myBookings { nodes { id status endedAt } } }"
ROSTER = """query($slot: ID!) { slotRoster(slotId: $slot) {
  nodes { id status endedAt history { action by { id } } }
} }"""
LINE = "query($slot: ID!) { slot(id: $slot) { waitlistLength myWaitlistEntry { id } } }"


@pytest.fixture
async def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Ada at one process, Ben at the other, and an organiser."""
    (ada, ben), organiser = await create_booking_clients(http, 2, *two_apps)
    return ada, ben, organiser


@pytest.fixture
def mongo_url(two_apps: Pair) -> str:
    """The database of both processes."""
    return two_apps[0].environment["SLOTLOCK_MONGO_URL"]


def assert_called_off(booking: Json, organiser_id: str, before: Json) -> None:
    """The booking ended when its slot was called off, and its record says by whom."""
    assert (booking["id"], booking["status"]) == (before["id"], "CANCELLED")
    *earlier, last = booking["history"]
    assert earlier == before["history"]
    assert (last["action"], last["before"], last["after"]) == (
        "CANCELLED",
        before["status"],
        "CANCELLED",
    )
    assert last["by"]["id"] == organiser_id
    assert booking["endedAt"] == last["at"]
    assert datetime.fromisoformat(booking["endedAt"]) >= datetime.fromisoformat(before["createdAt"])


async def test_its_bookings_ended_with_it_and_say_who_called_it_off(clients: Three) -> None:
    ada, ben, organiser = clients
    slot_id = await organiser.add_slot(capacity=2)
    booked, hold = (await ada.book_slot(slot_id))["booking"], await ben.hold(slot_id)
    await organiser.cancel_slot(slot_id)
    organisers = await organiser.fetch_user_id()
    for person, before in ((ada, booked), (ben, hold)):
        seen = await person.fetch_booking(before["id"])
        assert_called_off(seen, organisers, before)
        assert (await person.fetch_slot(slot_id))["myBooking"] == seen
        assert await organiser.fetch_booking(before["id"]) == seen
        (listed,) = (await person.execute(MY_BOOKINGS))["nodes"]
        shown = {name: seen[name] for name in ("id", "status", "endedAt")}
        assert listed == shown
    roster = (await organiser.execute(ROSTER, slot=slot_id))["nodes"]
    assert [(b["id"], b["status"]) for b in roster] == [
        (booked["id"], "CANCELLED"),
        (hold["id"], "CANCELLED"),
    ]
    assert {b["history"][-1]["by"]["id"] for b in roster} == {organisers}


async def test_the_first_who_called_it_off_and_when_stay_on_record(
    clients: Three, two_apps: Pair, http: httpx.AsyncClient
) -> None:
    ada, _, organiser = clients
    _, other = await create_booking_clients(http, 0, *two_apps)
    slot_id = await organiser.add_slot()
    booking = (await ada.book_slot(slot_id))["booking"]
    await organiser.cancel_slot(slot_id)
    seen, version = (
        await ada.fetch_booking(booking["id"]),
        (await ada.fetch_slot(slot_id))["version"],
    )
    await other.cancel_slot(slot_id)
    assert await ada.fetch_booking(booking["id"]) == seen
    assert (await ada.fetch_slot(slot_id))["version"] == version
    assert_called_off(seen, await organiser.fetch_user_id(), booking)


async def test_cancelling_there_answers_what_became_of_the_booking_and_writes_nothing(
    clients: Three, mongo_url: str
) -> None:
    ada, ben, organiser = clients
    slot_id = await organiser.add_slot(capacity=2, cancelCutoffMinutes=3 * 24 * 60)
    booked, hold = (await ada.book_slot(slot_id))["booking"], await ben.hold(slot_id)
    await organiser.cancel_slot(slot_id)
    before = slot_document(mongo_url, slot_id)
    for person, booking in ((ada, booked), (ben, hold), (organiser, booked)):
        seen = await person.fetch_booking(booking["id"])
        for more in ({}, {"key": "once more"}, {"wait": 0}):
            answer = await person.cancel_booking(booking["id"], **more)
            assert answer["__typename"] == "BookingCancelled"
            assert answer["booking"] == seen
            assert answer["slot"]["version"] == before["version"]
    assert slot_document(mongo_url, slot_id) == before
    assert await organiser.fetch_slot_history(slot_id) == []


async def test_nobody_moves_out_of_it_not_even_organisers(clients: Three, mongo_url: str) -> None:
    ada, ben, organiser = clients
    slot_id, other_id = await organiser.add_slot(capacity=2), await organiser.add_slot(capacity=2)
    booked, hold = (await ada.book_slot(slot_id))["booking"], await ben.hold(slot_id)
    await organiser.cancel_slot(slot_id)
    before = slot_document(mongo_url, slot_id)
    for person, booking in ((ada, booked), (ben, hold), (organiser, booked)):
        for to in (other_id, slot_id):
            assert (await person.move(booking["id"], to))["code"] == "SLOT_CANCELLED"
    assert slot_document(mongo_url, slot_id) == before
    assert (await ada.fetch_slot(other_id))["remaining"] == 2


async def test_who_waited_for_it_waits_no_longer(clients: Three, mongo_url: str) -> None:
    ada, ben, organiser = clients
    slot_id = await organiser.add_slot(waitlistOfferMinutes=30)
    await ada.book_slot(slot_id)
    assert (await ben.join(slot_id))["__typename"] == "WaitlistJoined"
    await organiser.cancel_slot(slot_id)
    assert await ben.execute(LINE, slot=slot_id) == {"waitlistLength": 0, "myWaitlistEntry": None}
    assert (await ben.leave(slot_id))["code"] == "NOT_WAITING"
    assert (await ben.join(slot_id))["code"] == "SLOT_CANCELLED"
    assert slot_document(mongo_url, slot_id)["waitlist"] == []
    assert (await ben.fetch_slot(slot_id))["myBooking"] is None


async def test_no_hold_runs_out_there_any_more(clients: Three, mongo_url: str) -> None:
    ada, ben, organiser = clients
    slot_id = await organiser.add_slot()
    hold = await ada.hold(slot_id)
    await ben.join(slot_id)
    await organiser.cancel_slot(slot_id)
    version = slot_document(mongo_url, slot_id)["version"]
    expire_holds(mongo_url, slot_id, expired_for_s=1)

    async def look() -> Json:
        return slot_document(mongo_url, slot_id)

    swept = await poll_until(look, lambda slot: "nextDeadline" not in slot, "the sweeper was there")
    assert (swept["version"], len(swept["bookings"])) == (version, 1)
    seen = await ada.fetch_booking(hold["id"])
    assert [entry["action"] for entry in seen["history"]] == ["HELD", "CANCELLED"]
    assert (await ada.confirm(hold["id"]))["code"] == "SLOT_CANCELLED"
    assert (await ada.cancel_booking(hold["id"]))["__typename"] == "BookingCancelled"
