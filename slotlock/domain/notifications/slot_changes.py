"""What changed in a slot since a time: what the reader of the outbox passes on."""

from datetime import datetime

from slotlock.domain.audit.audit_log import AuditEntry
from slotlock.domain.booking.booking import Booking, EndedWaitlistEntry
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.value_object import value_object


@value_object
class SlotChanges:
    """A slot, and what changed in it since then.

    `state` has the live bookings and waitlist entries that changed; all bookings, if the slot was
    edited or cancelled since then. `notes` are the changes of organizers, the oldest first.
    What happened before `since` is there too if it belongs to a booking that changed.
    """

    since: datetime
    state: SlotState
    ended: tuple[Booking, ...] = ()
    ended_entries: tuple[EndedWaitlistEntry, ...] = ()
    notes: tuple[AuditEntry, ...] = ()

    @property
    def bookings(self) -> tuple[Booking, ...]:
        """The bookings that changed, live or ended."""
        return (*self.state.bookings, *self.ended)
