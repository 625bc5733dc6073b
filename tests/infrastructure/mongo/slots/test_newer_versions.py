"""A process reads and changes what a newer version stored, and drops nothing of it."""

from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId

from slotlock.domain.booking.slot import SlotKind, SlotStatus
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.client import Document, supports_transactions
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.documents import (
    _array_expression,
    to_document,
    to_slot_state,
)
from slotlock.infrastructure.mongo.users.documents import to_new_document, to_user
from tests.support.domain.builders import build_slot
from tests.support.stores.query_plans import CommandRecorder, recorded_commands

__all__ = ["recorded_commands"]

NOW = datetime(2031, 5, 1, 12, tzinfo=UTC)


def test_unknown_kinds_states_and_roles_are_readable_and_give_no_rights() -> None:
    newer = {"kind": "webinar", "status": "archived", "color": "red"}
    slot = to_slot_state({**to_document(build_slot(3, id=new_slot_id())), **newer}).slot
    assert (slot.kind, slot.status) == (SlotKind.OTHER, SlotStatus.DRAFT)
    user = to_new_document("Ada", "ada@slotlock.test", Role.ADMIN, None, NOW)
    assert to_user({**user, "role": "owner"}).role is Role.MEMBER


async def test_a_changed_booking_retains_the_fields_and_history_of_a_newer_version(
    recorded_commands: tuple[Any, CommandRecorder],
) -> None:
    database, _ = recorded_commands
    booking_id, slot_id, until = ObjectId(), ObjectId(), NOW + timedelta(minutes=5)
    first = {"at": NOW, "action": "held", "status": "held", "device": "kiosk"}
    stored: Document = {"id": booking_id, "heldUntil": until, "seat": 7, "history": [first]}
    other: Document = {"id": ObjectId(), "seat": 8, "at": NOW}
    await database["slots"].insert_one({"_id": slot_id, "bookings": [stored, other]})
    confirmed = {"at": NOW, "action": "confirmed", "status": "confirmed"}
    known = {key: value for key, value in first.items() if key != "device"}
    changed = {"id": booking_id, "history": [known, confirmed]}
    expression = _array_expression("$bookings", [], [changed], [])
    await database["slots"].update_one({"_id": slot_id}, [{"$set": {"bookings": expression}}])
    document = await database["slots"].find_one({"_id": slot_id})
    expected = {"id": booking_id, "seat": 7, "history": [first, confirmed]}
    assert document["bookings"] == [expected, other]


def test_members_of_replica_sets_and_routers_are_accepted() -> None:
    assert supports_transactions({"setName": "rs0"})
    assert supports_transactions({"msg": "isdbgrid"})
    assert not supports_transactions({"isWritablePrimary": True})
