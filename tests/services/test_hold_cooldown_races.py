"""A hold that was decided before the user gave another one back meets the cooldown."""

from typing import Any

import pytest
from bson import ObjectId

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.booking_refusals import HoldCooldown
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots import slot_document_updates
from slotlock.infrastructure.mongo.slots.booking_adder import BookingAdder
from tests.support.domain.builders import build_slot
from tests.support.stores.late_store import ADA, LateStore, store
from tests.support.stores.slots import insert_new_slots

__all__ = ["store"]


@pytest.mark.parametrize(("has_version", "outcome_type"), [(True, HoldCooldown), (False, Booked)])
async def test_a_hold_that_was_decided_before_a_cooldown_is_decided_again(
    store: LateStore, monkeypatch: pytest.MonkeyPatch, has_version: bool, outcome_type: type
) -> None:
    # Before the write of the hold, another process ends a hold of the same user.
    slot = build_slot(2, id=new_slot_id(), hold_cooldown_minutes=60)
    await insert_new_slots(store.services.slot_writer._database, slot)
    update_each = BookingAdder._update_each
    ended = {"user": ObjectId(ADA.user_id), "at": store.services.now()}
    changes = [{"$push": {"endedHolds": ended}, "$inc": {"version": 1}}]

    async def change_and_update(writer: BookingAdder, updates: Any) -> Document:
        while changes:
            await writer._slots.update_one({"_id": ObjectId(slot.id)}, changes.pop())
        return await update_each(writer, updates)

    monkeypatch.setattr(BookingAdder, "_update_each", change_and_update)
    if not has_version:
        monkeypatch.setattr(
            slot_document_updates, "version_filter", lambda slot: {"_id": ObjectId(slot.id)}
        )
    assert isinstance(await store.book(SlotId(slot.id), hold=True), outcome_type)
