"""Slots that are there already when a test begins."""

from slotlock.domain.slots import Slot
from slotlock.stores.mongo import Database
from slotlock.stores.writes import ChangeSet, SlotWriter


async def insert_new_slots(database: Database, *slots: Slot) -> None:
    """Keep these new slots."""
    assert await SlotWriter(database).commit(ChangeSet((), new_slots=slots))
