"""Changes of slots that no message reports."""

from dataclasses import replace

from slotlock.domain.booking.slot_state import SlotState
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, SlotUpdate, check_written
from slotlock.infrastructure.mongo.slots.writing.writer import SlotWriter
from tests.support.domain.builders import with_facts


async def edit_silently(database: Database, slot: SlotState) -> SlotState:
    """Change a slot without publishing it; return the new version."""
    renamed = with_facts(slot, title="Pilates")
    after = replace(renamed, version=slot.version + 1)
    assert check_written(await SlotWriter(database).commit(ChangeSet((SlotUpdate(slot, after),))))
    return after
