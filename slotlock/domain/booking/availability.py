"""The public availability of a slot, and who may see the slot."""

from dataclasses import dataclass
from datetime import datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.users.user import Caller


@dataclass(frozen=True, slots=True)
class Availability:
    """The public availability of a slot; a higher `version` replaces a lower one."""

    slot_id: SlotId
    version: int
    capacity: int
    remaining: int
    status: SlotStatus
    at: datetime


def to_availability(slot: Slot) -> Availability:
    """Return the availability of a slot as of its last write."""
    return Availability(
        slot.id, slot.version, slot.capacity, slot.remaining, slot.status, slot.changed_at
    )


def is_visible(slot: Slot, caller: Caller | None) -> bool:
    """Return whether a caller may see a slot: drafts and unpublished campaigns are hidden."""
    hidden = slot.status is SlotStatus.DRAFT or (slot.terms and not slot.terms.published)
    return not hidden or (caller is not None and caller.is_organizer)
