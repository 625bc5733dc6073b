"""Slots that are stored before a test begins."""

from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, check_written
from slotlock.infrastructure.mongo.slots.writing.writer import SlotWriter


async def insert_new_slots(database: Database, *slots: SlotState) -> None:
    """Insert slots without bookings."""
    assert check_written(await SlotWriter(database).commit(ChangeSet((), new_slots=slots)))
