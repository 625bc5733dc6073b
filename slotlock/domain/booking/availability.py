"""The public availability of a slot, and who may see the slot."""

from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.values import value_object
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


def to_availability(state: SlotState) -> Availability:
    """Return the availability of a slot as of its last write."""
    slot = state.slot
    return Availability(
        slot.id, state.version, slot.capacity, state.remaining, slot.status, state.changed_at
    )


def after_deletion(state: Availability, now: datetime) -> Availability:
    """Return the last availability of a slot that was deleted: subscribers see it as cancelled."""
    return replace(state, version=state.version + 1, status=SlotStatus.CANCELLED, at=now)


def is_visible(slot: Slot, caller: Caller | None) -> bool:
    """Return whether a caller may see a slot: drafts and unpublished campaigns are hidden."""
    return not slot.is_hidden or (caller is not None and caller.is_organizer)
