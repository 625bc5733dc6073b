"""Slots that are there already when a test begins."""

from slotlock.domain.slots import Slot
from slotlock.stores.mongo import Database
from slotlock.stores.writes import Changes, Writes


async def keep(database: Database, *slots: Slot) -> None:
    """Keep these new slots."""
    assert await Writes(database).commit(Changes((), new=slots))
