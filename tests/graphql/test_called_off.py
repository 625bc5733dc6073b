"""A slot that was called off: its bookings ended with it, and nothing there is done any more."""

from datetime import datetime

import httpx
import pytest

from tests.support.client import Json
from tests.support.desk import Person, let_holds_run_out, staffed, wait_for
from tests.support.processes import AppProcess
from tests.support.stage import slot_document

Pair = tuple[AppProcess, AppProcess]
Three = tuple[Person, Person, Person]
MY_BOOKINGS = "{ myBookings { nodes { id status endedAt } } }"
ROSTER = """query($slot: ID!) { slotRoster(slotId: $slot) {
  nodes { id status endedAt history { what by { id } } }
} }"""
LINE = "query($slot: ID!) { slot(id: $slot) { waitlistLength myWaitlistEntry { id } } }"


@pytest.fixture
async def three(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Ada at one process, Ben at the other, and an organiser."""
    (ada, ben), organiser = await staffed(http, 2, *two_apps)
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
    assert (last["what"], last["before"], last["after"]) == (
        "CANCELLED",
        before["status"],
        "CANCELLED",
    )
    assert last["by"]["id"] == organiser_id
    assert booking["endedAt"] == last["at"]
    assert datetime.fromisoformat(booking["endedAt"]) >= datetime.fromisoformat(before["createdAt"])


async def test_its_bookings_ended_with_it_and_say_who_called_it_off(three: Three) -> None:
    ada, ben, organiser = three
    slot_id = await organiser.slot(capacity=2)
    booked, hold = (await ada.wish(slot_id))["booking"], await ben.hold(slot_id)
    await organiser.call_off(slot_id)
    organisers = await organiser.id()
    for person, before in ((ada, booked), (ben, hold)):
        seen = await person.seen(before["id"])
        assert_called_off(seen, organisers, before)
        assert (await person.mine(slot_id))["myBooking"] == seen
        assert await organiser.seen(before["id"]) == seen
        (listed,) = (await person.ask(MY_BOOKINGS))["nodes"]
        shown = {name: seen[name] for name in ("id", "status", "endedAt")}
        assert listed == shown
    roster = (await organiser.ask(ROSTER, slot=slot_id))["nodes"]
    assert [(b["id"], b["status"]) for b in roster] == [
        (booked["id"], "CANCELLED"),
        (hold["id"], "CANCELLED"),
    ]
    assert {b["history"][-1]["by"]["id"] for b in roster} == {organisers}


async def test_the_first_who_called_it_off_and_when_stay_on_record(
    three: Three, two_apps: Pair, http: httpx.AsyncClient
) -> None:
    ada, _, organiser = three
    _, other = await staffed(http, 0, *two_apps)
    slot_id = await organiser.slot()
    booking = (await ada.wish(slot_id))["booking"]
    await organiser.call_off(slot_id)
    seen, version = await ada.seen(booking["id"]), (await ada.mine(slot_id))["version"]
    await other.call_off(slot_id)
    assert await ada.seen(booking["id"]) == seen
    assert (await ada.mine(slot_id))["version"] == version
    assert_called_off(seen, await organiser.id(), booking)


async def test_cancelling_there_answers_what_became_of_the_booking_and_writes_nothing(
    three: Three, mongo_url: str
) -> None:
    ada, ben, organiser = three
    slot_id = await organiser.slot(capacity=2, cancelCutoffMinutes=3 * 24 * 60)
    booked, hold = (await ada.wish(slot_id))["booking"], await ben.hold(slot_id)
    await organiser.call_off(slot_id)
    before = slot_document(mongo_url, slot_id)
    for person, booking in ((ada, booked), (ben, hold), (organiser, booked)):
        seen = await person.seen(booking["id"])
        for more in ({}, {"key": "once more"}, {"wait": 0}):
            answer = await person.give_back(booking["id"], **more)
            assert answer["__typename"] == "BookingCancelled"
            assert answer["booking"] == seen
            assert answer["slot"]["version"] == before["version"]
    assert slot_document(mongo_url, slot_id) == before
    assert await organiser.history(slot_id) == []


async def test_nobody_moves_out_of_it_not_even_organisers(three: Three, mongo_url: str) -> None:
    ada, ben, organiser = three
    slot_id, other_id = await organiser.slot(capacity=2), await organiser.slot(capacity=2)
    booked, hold = (await ada.wish(slot_id))["booking"], await ben.hold(slot_id)
    await organiser.call_off(slot_id)
    before = slot_document(mongo_url, slot_id)
    for person, booking in ((ada, booked), (ben, hold), (organiser, booked)):
        for to in (other_id, slot_id):
            assert (await person.move(booking["id"], to))["code"] == "SLOT_CANCELLED"
    assert slot_document(mongo_url, slot_id) == before
    assert (await ada.mine(other_id))["remaining"] == 2


async def test_who_waited_for_it_waits_no_longer(three: Three, mongo_url: str) -> None:
    ada, ben, organiser = three
    slot_id = await organiser.slot(waitlistOfferMinutes=30)
    await ada.wish(slot_id)
    assert (await ben.join(slot_id))["__typename"] == "WaitlistJoined"
    await organiser.call_off(slot_id)
    assert await ben.ask(LINE, slot=slot_id) == {"waitlistLength": 0, "myWaitlistEntry": None}
    assert (await ben.leave(slot_id))["code"] == "NOT_WAITING"
    assert (await ben.join(slot_id))["code"] == "SLOT_CANCELLED"
    assert slot_document(mongo_url, slot_id)["waiting"] == []
    assert (await ben.mine(slot_id))["myBooking"] is None


async def test_no_hold_runs_out_there_any_more(three: Three, mongo_url: str) -> None:
    ada, ben, organiser = three
    slot_id = await organiser.slot()
    hold = await ada.hold(slot_id)
    await ben.join(slot_id)
    await organiser.call_off(slot_id)
    version = slot_document(mongo_url, slot_id)["version"]
    let_holds_run_out(mongo_url, slot_id, ago_s=1)

    async def look() -> Json:
        return slot_document(mongo_url, slot_id)

    swept = await wait_for(look, lambda slot: "due" not in slot, "the sweeper was there")
    assert (swept["version"], len(swept["bookings"])) == (version, 1)
    seen = await ada.seen(hold["id"])
    assert [entry["what"] for entry in seen["history"]] == ["HELD", "CANCELLED"]
    assert (await ada.confirm(hold["id"]))["code"] == "SLOT_CANCELLED"
    assert (await ada.give_back(hold["id"]))["__typename"] == "BookingCancelled"
