"""A hold that was decided before the user gave another one back meets the cooldown."""

from typing import Any

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.outcomes import Booked
from slotlock.domain.booking.refusals import HoldCooldown
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots import document_updates
from slotlock.infrastructure.mongo.slots.writing.booking_adder import BookingAdder
from tests.support.domain.builders import build_slot
from tests.support.stores.late_store import ADA, LateStore, store
from tests.support.stores.slots import insert_new_slots

__all__ = ["store"]


async def hold_while_another_is_given_back(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> object:
    """Return the outcome of Ada's hold, before whose write another process ends one of hers."""
    slot = build_slot(2, id=new_slot_id(), hold_cooldown_minutes=60)
    await insert_new_slots(store.services.slot_writer._database, slot)
    slot_id, update_each = SlotId(slot.id), BookingAdder._update_each
    ended = {"user": ObjectId(ADA.user_id), "at": store.services.now()}
    changes = [{"$push": {"endedHolds": ended}, "$inc": {"version": 1}}]

    async def change_and_update(writer: BookingAdder, updates: Any) -> Document:
        while changes:
            await writer._slots.update_one({"_id": ObjectId(slot_id)}, changes.pop())
        return await update_each(writer, updates)

    monkeypatch.setattr(BookingAdder, "_update_each", change_and_update)
    return await store.book(slot_id, hold=True)


async def test_a_hold_that_was_decided_before_a_cooldown_is_decided_again(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = await hold_while_another_is_given_back(store, monkeypatch)
    assert isinstance(outcome, HoldCooldown)


async def test_control_without_the_version_a_hold_ignores_the_cooldown(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def filter_by_id(slot: Any) -> Document:
        return {"_id": ObjectId(slot.id)}

    monkeypatch.setattr(document_updates, "version_filter", filter_by_id)
    outcome = await hold_while_another_is_given_back(store, monkeypatch)
    assert isinstance(outcome, Booked)
