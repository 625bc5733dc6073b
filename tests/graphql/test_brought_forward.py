"""Slots whose start was brought forward: a hold that was given keeps its time."""

from datetime import datetime

import httpx
import pytest

from tests.support.client import in_hours
from tests.support.desk import Person, let_holds_run_out, staffed
from tests.support.processes import AppProcess

Pair = tuple[AppProcess, AppProcess]
Three = tuple[Person, Person, Person]


@pytest.fixture
async def three(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Ada at one process, Ben at the other, and an organiser."""
    (ada, ben), organiser = await staffed(http, 2, *two_apps)
    return ada, ben, organiser


async def begin(organiser: Person, slot_id: str) -> None:
    """Let a slot have begun an hour ago."""
    changed = await organiser.update(slot_id, startTime=in_hours(-1))
    assert changed["__typename"] == "Slot", changed


async def test_a_hold_is_confirmed_after_the_start_was_brought_forward(three: Three) -> None:
    ada, ben, organiser = three
    slot_id = await organiser.slot(capacity=2)
    hold = await ada.hold(slot_id)
    await begin(organiser, slot_id)
    assert (await ada.seen(hold["id"]))["heldUntil"] == hold["heldUntil"]
    confirmed = await ada.confirm(hold["id"])
    assert confirmed["__typename"] == "BookingConfirmed"
    assert confirmed["booking"]["status"] == "CONFIRMED"
    assert confirmed["slot"]["remaining"] == 1
    # For everything else it has begun.
    assert (await ben.wish(slot_id))["code"] == "SLOT_STARTED"
    assert (await ada.give_back(hold["id"]))["code"] == "SLOT_STARTED"


async def test_a_hold_is_given_up_after_the_start_was_brought_forward(three: Three) -> None:
    ada, _, organiser = three
    slot_id = await organiser.slot(cancelCutoffMinutes=60)
    hold = await ada.hold(slot_id)
    await begin(organiser, slot_id)
    cancelled = await ada.give_back(hold["id"])
    assert cancelled["__typename"] == "BookingCancelled"
    assert (cancelled["booking"]["status"], cancelled["slot"]["remaining"]) == ("CANCELLED", 1)
    assert cancelled["booking"]["overrode"] == []


async def test_a_hold_that_ran_out_is_neither_confirmed_nor_given_up_there(
    two_apps: Pair, three: Three
) -> None:
    ada, _, organiser = three
    slot_id = await organiser.slot()
    hold = await ada.hold(slot_id)
    await begin(organiser, slot_id)
    let_holds_run_out(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    assert (await ada.confirm(hold["id"]))["code"] == "HOLD_EXPIRED"
    assert (await ada.give_back(hold["id"]))["code"] == "HOLD_EXPIRED"
    assert (await ada.mine(slot_id))["remaining"] == 1


async def test_a_hold_still_moves_to_a_slot_that_comes(three: Three) -> None:
    ada, _, organiser = three
    slot_id, other_id = await organiser.slot(), await organiser.slot()
    hold = await ada.hold(slot_id)
    await begin(organiser, slot_id)
    moved = await ada.move(hold["id"], other_id)
    assert moved["__typename"] == "BookingMoved"
    assert moved["booking"]["status"] == "HELD"
    assert datetime.fromisoformat(moved["booking"]["heldUntil"]) <= datetime.fromisoformat(
        hold["heldUntil"]
    )
