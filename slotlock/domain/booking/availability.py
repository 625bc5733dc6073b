"""The public availability of a slot, and who may see the slot."""

from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller


@value_object
class Availability:
    """The public availability of a slot; a higher `version` replaces a lower one."""

    slot_id: SlotId
    version: int
    capacity: int
    remaining: int
    status: SlotStatus
    at: datetime
    is_hidden: bool = False


def to_availability(state: SlotState) -> Availability:
    """Return the availability of a slot as of its last write."""
    slot = state.slot
    return Availability(
        slot.id,
        state.version,
        slot.capacity,
        slot.capacity - state.booked_count,
        slot.status,
        state.changed_at,
        slot.is_hidden,
    )


def after_deletion(state: Availability, now: datetime) -> Availability:
    """Return the last availability of a slot that was deleted: subscribers see it as cancelled."""
    return replace(state, version=state.version + 1, status=SlotStatus.CANCELLED, at=now)


def is_visible(slot: Slot, caller: Caller | None) -> bool:
    """Return whether a caller may see a slot: drafts and unpublished campaigns are hidden."""
    return not slot.is_hidden or sees_hidden(caller)


def sees_hidden(caller: Caller | None) -> bool:
    """Return whether a caller sees drafts and the slots of unpublished campaigns."""
    return caller is not None and caller.is_organizer
