"""How long a hold may last in all, however often it is extended."""

from datetime import datetime, timedelta
from itertools import pairwise

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import (
    BookingClient,
    backdate_bookings,
    create_booking_clients,
)
from tests.support.clients.client import Json

Pair = tuple[AppProcess, AppProcess]
Two = tuple[BookingClient, BookingClient]


@pytest.fixture
def clients(two_apps: Pair, http: httpx.AsyncClient) -> Two:
    """Return clients for Ada and an organizer."""
    (_, ada), organizer = create_booking_clients(http, 2, *two_apps)
    return ada, organizer


@pytest.fixture
def mongo_url(two_apps: Pair) -> str:
    """Return the database of both processes."""
    return two_apps[0].environment["SLOTLOCK_MONGO_URL"]


def lasts(hold: Json) -> timedelta:
    """Return how long a hold lasts in all."""
    return datetime.fromisoformat(hold["heldUntil"]) - datetime.fromisoformat(hold["createdAt"])


async def test_an_extended_hold_lasts_as_long_as_one_that_begins_now(clients: Two) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot(holdMinutes=1)
    hold = await ada.hold(slot_id)
    await organizer.update_slot(slot_id, holdMinutes=10)
    extended = await ada.extend(hold["id"])
    assert extended["__typename"] == "HoldExtended"
    booking = extended["booking"]
    assert lasts(booking) >= timedelta(minutes=10)
    assert [entry["action"] for entry in booking["history"]] == ["HELD", "EXTENDED"]
    assert await ada.fetch_booking(hold["id"]) == booking


async def test_no_extension_exceeds_one_hour(clients: Two, mongo_url: str) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot(holdMinutes=5)
    hold = await ada.hold(slot_id)
    backdate_bookings(mongo_url, slot_id, minutes=54)
    extended = await ada.extend(hold["id"])
    assert extended["__typename"] == "HoldExtended"
    assert lasts(extended["booking"]) <= timedelta(minutes=60)
    backdate_bookings(mongo_url, slot_id, minutes=2)
    assert (await ada.extend(hold["id"]))["code"] == "HOLD_LIMIT_REACHED"


async def test_a_hold_that_lasts_an_hour_cannot_be_extended(clients: Two) -> None:
    ada, organizer = clients
    hold = await ada.hold(await organizer.add_slot(holdMinutes=60))
    assert (await ada.extend(hold["id"]))["code"] == "HOLD_LIMIT_REACHED"
    assert await ada.fetch_booking(hold["id"]) == hold


async def test_a_moved_hold_retains_its_age(clients: Two, mongo_url: str) -> None:
    ada, organizer = clients
    slot_id, other_id = await organizer.add_slot(), await organizer.add_slot()
    hold = await ada.hold(slot_id)
    backdate_bookings(mongo_url, slot_id, minutes=55)
    moved = (await ada.move(hold["id"], other_id))["booking"]
    assert (await ada.extend(moved["id"]))["code"] == "HOLD_LIMIT_REACHED"


async def test_a_confirmed_booking_cannot_be_extended(clients: Two) -> None:
    ada, organizer = clients
    booked = (await ada.book_slot(await organizer.add_slot()))["booking"]
    assert (await ada.extend(booked["id"]))["code"] == "NOT_HELD"


async def test_no_hold_is_extended_in_a_slot_that_was_cancelled(clients: Two) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot()
    hold = await ada.hold(slot_id)
    await organizer.cancel_slot(slot_id)
    assert (await ada.extend(hold["id"]))["code"] == "SLOT_CANCELLED"
    assert (await ada.fetch_booking(hold["id"]))["status"] == "CANCELLED"


async def test_repeated_extensions_by_moments_add_no_history(
    clients: Two,
) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot(holdMinutes=5)
    hold = await ada.hold(slot_id)
    version = (await ada.fetch_slot(slot_id))["version"]
    outcomes = [await ada.extend(hold["id"]) for _ in range(50)]
    assert {outcome["__typename"] for outcome in outcomes} == {"HoldExtended"}
    history = outcomes[-1]["booking"]["history"]
    # On a slow machine too, each entry adds at least half a minute.
    ends = [datetime.fromisoformat(entry["heldUntil"]) for entry in history]
    assert all(later - end >= timedelta(seconds=30) for end, later in pairwise(ends))
    assert (await ada.fetch_slot(slot_id))["version"] == version + len(history) - 1
    assert await ada.fetch_booking(hold["id"]) == outcomes[-1]["booking"]
