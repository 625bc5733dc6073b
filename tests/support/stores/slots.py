"""Slots that are there already when a test begins."""

from slotlock.domain.booking.slot import Slot
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.slots.writer import ChangeSet, SlotWriter


async def insert_new_slots(database: Database, *slots: Slot) -> None:
    """Keep these new slots."""
    assert await SlotWriter(database).commit(ChangeSet((), new_slots=slots))
