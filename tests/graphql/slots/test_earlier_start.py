"""A hold does not lose time when the start of its slot is moved to an earlier time."""

from datetime import datetime

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients, expire_holds
from tests.support.clients.client import hours_from_now

Pair = tuple[AppProcess, AppProcess]
Three = tuple[BookingClient, BookingClient, BookingClient]


@pytest.fixture
def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Return clients for Ada on one process, Ben on the other, and an organizer."""
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    return ada, ben, organizer


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
