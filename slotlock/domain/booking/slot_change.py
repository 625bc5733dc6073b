"""The changes that decisions have made to a loaded slot: all that has to be written."""

from dataclasses import field, replace
from operator import attrgetter

from slotlock.domain.booking.booking import (
    Booking,
    EndedWaitlistEntry,
    WaitlistEntry,
    WaitlistEntryId,
)
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged
from slotlock.domain.shared.value_object import value_object

# What a change has besides added bookings.
_OTHERS = attrgetter("changed", "ended", "joined", "removed_entries", "ended_entries", "is_edited")


@value_object
class SlotChange:
    """The changes to a loaded slot, empty at first. Nothing else has to be compared or written.

    `added` and `changed` are live bookings. `ended` bookings were loaded, or were added before.
    `joined` are new entries of the waiting list. `removed_entries` are loaded entries that left it,
    be it with a booking or without; `ended_entries` are those that ended without a booking.
    `description` is that of a new slot, or the new one of an edit; None removes it.
    """

    added: tuple[Booking, ...] = ()
    changed: tuple[Booking, ...] = ()
    ended: tuple[Booking, ...] = ()
    joined: tuple[WaitlistEntry, ...] = ()
    removed_entries: tuple[WaitlistEntryId, ...] = ()
    ended_entries: tuple[EndedWaitlistEntry, ...] = ()
    is_edited: bool = False
    # It is no part of a change that is compared or stored with an outcome.
    description: str | Unchanged | None = field(default=UNCHANGED, compare=False, repr=False)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return self is EMPTY_CHANGE or not (self.added or any(_OTHERS(self)))

    @property
    def only_adds_bookings(self) -> bool:
        """Whether bookings are added and nothing else changes, which is the plain booking."""
        return bool(self.added) and not any(_OTHERS(self))

    def with_added(self, booking: Booking) -> "SlotChange":
        """Record a new booking."""
        if self is EMPTY_CHANGE:
            return SlotChange((booking,))
        # Not `replace`, which takes three times as long.
        return SlotChange(
            (*self.added, booking),
            self.changed,
            self.ended,
            self.joined,
            self.removed_entries,
            self.ended_entries,
            self.is_edited,
            self.description,
        )

    def with_changed(self, booking: Booking) -> "SlotChange":
        """Record the new state of a live booking."""
        if any(each.id == booking.id for each in self.added):
            added = tuple(booking if each.id == booking.id else each for each in self.added)
            return replace(self, added=added)
        others = tuple(each for each in self.changed if each.id != booking.id)
        return replace(self, changed=(*others, booking))

    def with_ended(self, *bookings: Booking) -> "SlotChange":
        """Record the end of bookings."""
        ended_ids = {booking.id for booking in bookings}
        return replace(
            self,
            added=tuple(each for each in self.added if each.id not in ended_ids),
            changed=tuple(each for each in self.changed if each.id not in ended_ids),
            ended=(*self.ended, *bookings),
        )

    def with_joined(self, entry: WaitlistEntry) -> "SlotChange":
        """Record a new entry of the waiting list."""
        return replace(self, joined=(*self.joined, entry))

    def with_removed_entries(self, *entries: WaitlistEntry) -> "SlotChange":
        """Record that entries left the waiting list."""
        removed_ids = {entry.id for entry in entries}
        joined_ids = {entry.id for entry in self.joined}
        loaded = tuple(entry.id for entry in entries if entry.id not in joined_ids)
        return replace(
            self,
            joined=tuple(entry for entry in self.joined if entry.id not in removed_ids),
            removed_entries=(*self.removed_entries, *loaded),
        )

    def with_ended_entries(self, *ended: EndedWaitlistEntry) -> "SlotChange":
        """Record that entries left the waiting list without a booking."""
        change = self.with_removed_entries(*(each.entry for each in ended))
        return replace(change, ended_entries=(*self.ended_entries, *ended))

    def with_edit(self, description: str | Unchanged | None = UNCHANGED) -> "SlotChange":
        """Record that an organizer edited the slot itself, or its description."""
        return replace(self, is_edited=True, description=description)


EMPTY_CHANGE = SlotChange()
