"""What was read of a slot for a client."""

from copy import copy
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING

from slotlock.domain.booking.booking import Booking, WaitlistEntry
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.users.user import UserId


class SelectedSlot(Slot):
    """The facts about a slot, and the parts of its state, that a reader selected.

    An attribute that was not selected is missing: reading it raises AttributeError. The names are
    those of `Slot` and `SlotState`, so that a reading is shown as a state is.
    """

    __slots__ = (
        "bookings",
        "next_deadline",
        "remaining",
        "version",
        "waitlist",
        "waitlist_length",
    )

    bookings: tuple[Booking, ...]
    next_deadline: datetime | None
    remaining: int
    version: int
    waitlist: tuple[WaitlistEntry, ...]
    waitlist_length: int

    if TYPE_CHECKING:

        def __init__(self) -> None:
            """Create a reading without any attribute. Its reader sets those that it read."""
    else:
        __init__ = object.__init__  # without a call of Python for each slot

    def __eq__(self, other: object) -> bool:
        return type(other) is SelectedSlot and self._loaded() == other._loaded()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SelectedSlot({self._loaded()})"

    def _loaded(self) -> dict[str, object]:
        names = (*(each.name for each in fields(Slot)), *SelectedSlot.__slots__)
        return {name: getattr(self, name) for name in names if hasattr(self, name)}

    @property
    def slot(self) -> Slot:
        """The facts about the slot."""
        return self

    @property
    def is_booked(self) -> bool:
        """Whether there is no free place."""
        return self.remaining <= 0

    def booking_of(self, user_id: UserId) -> Booking | None:
        """Return the live booking of a user."""
        return next((b for b in self.bookings if b.user_id == user_id), None)

    def waitlist_entry_of(self, user_id: UserId) -> WaitlistEntry | None:
        """Return the waitlist entry of a user."""
        return next((w for w in self.waitlist if w.user_id == user_id), None)

    def without_expired(self, now: datetime) -> "SelectedSlot":
        """Return the reading without the holds that have expired. Its bookings were selected."""
        live = tuple(booking for booking in self.bookings if not booking.is_expired_at(now))
        if len(live) == len(self.bookings) or self.status is SlotStatus.CANCELLED:
            return self
        reading = copy(self)
        reading.bookings = live
        return reading


# A slot for a client: as it was selected, or as a decision loads it.
ReadableSlot = SelectedSlot | SlotState
