"""Slots whose start was brought forward: a hold that was given keeps its time."""

from datetime import datetime

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients, expire_holds
from tests.support.clients.client import hours_from_now

Pair = tuple[AppProcess, AppProcess]
Three = tuple[BookingClient, BookingClient, BookingClient]


@pytest.fixture
async def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Ada at one process, Ben at the other, and an organiser."""
    (ada, ben), organizer = await create_booking_clients(http, 2, *two_apps)
    return ada, ben, organizer


async def begin(organizer: BookingClient, slot_id: str) -> None:
    """Let a slot have begun an hour ago."""
    changed = await organizer.update_slot(slot_id, startTime=hours_from_now(-1))
    assert changed["__typename"] == "Slot", changed


async def test_a_hold_is_confirmed_after_the_start_was_brought_forward(clients: Three) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(capacity=2)
    hold = await ada.hold(slot_id)
    await begin(organizer, slot_id)
    assert (await ada.fetch_booking(hold["id"]))["heldUntil"] == hold["heldUntil"]
    confirmed = await ada.confirm(hold["id"])
    assert confirmed["__typename"] == "BookingConfirmed"
    assert confirmed["booking"]["status"] == "CONFIRMED"
    assert confirmed["slot"]["remaining"] == 1
    # For everything else it has begun.
    assert (await ben.book_slot(slot_id))["code"] == "SLOT_STARTED"
    assert (await ada.cancel_booking(hold["id"]))["code"] == "SLOT_STARTED"


async def test_a_hold_is_given_up_after_the_start_was_brought_forward(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot(cancelCutoffMinutes=60)
    hold = await ada.hold(slot_id)
    await begin(organizer, slot_id)
    cancelled = await ada.cancel_booking(hold["id"])
    assert cancelled["__typename"] == "BookingCancelled"
    assert (cancelled["booking"]["status"], cancelled["slot"]["remaining"]) == ("CANCELLED", 1)
    assert cancelled["booking"]["overriddenLimits"] == []


async def test_a_hold_that_ran_out_is_neither_confirmed_nor_given_up_there(
    two_apps: Pair, clients: Three
) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot()
    hold = await ada.hold(slot_id)
    await begin(organizer, slot_id)
    expire_holds(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    assert (await ada.confirm(hold["id"]))["code"] == "HOLD_EXPIRED"
    assert (await ada.cancel_booking(hold["id"]))["code"] == "HOLD_EXPIRED"
    assert (await ada.fetch_slot(slot_id))["remaining"] == 1


async def test_a_hold_still_moves_to_a_slot_that_comes(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id, other_id = await organizer.add_slot(), await organizer.add_slot()
    hold = await ada.hold(slot_id)
    await begin(organizer, slot_id)
    moved = await ada.move(hold["id"], other_id)
    assert moved["__typename"] == "BookingMoved"
    assert moved["booking"]["status"] == "HELD"
    assert datetime.fromisoformat(moved["booking"]["heldUntil"]) <= datetime.fromisoformat(
        hold["heldUntil"]
    )
