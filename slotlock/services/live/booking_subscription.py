"""One subscription to booking events: what it has seen of a user's bookings, and what is new."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from slotlock.domain.audit.audit_log import FieldEdit
from slotlock.domain.audit.audit_notes import edits_shown_with, schedule_edits
from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingId,
    HistoryEntry,
    SlotId,
    WaitlistEntry,
)
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId

# A slow reader loses the oldest events beyond this number.
MAX_PENDING_EVENTS = 100


@value_object
class LiveBookingEvent:
    """One change of a booking; `edits` are those of its slot."""

    entry: HistoryEntry
    booking: Booking
    slot: SlotState
    edits: tuple[FieldEdit, ...] = ()


@dataclass(slots=True)
class UserRows:
    """The live bookings and the waitlist entries of one user, each with its slot."""

    bookings: list[tuple[Booking, SlotState]] = field(default_factory=list)
    entries: list[tuple[WaitlistEntry, SlotState]] = field(default_factory=list)

    @property
    def booking_ids(self) -> set[BookingId]:
        """The ids of the live bookings."""
        return {booking.id for booking, _ in self.bookings}


def group_by_user(slots: Iterable[SlotState], user_ids: Iterable[UserId]) -> dict[UserId, UserRows]:
    """Return what each of these users has in the slots, in one pass over them."""
    rows = {user_id: UserRows() for user_id in user_ids}
    for slot in slots:
        for booking in slot.bookings:
            if booking.user_id in rows:
                rows[booking.user_id].bookings.append((booking, slot))
        for entry in slot.waitlist:
            if entry.user_id in rows:
                rows[entry.user_id].entries.append((entry, slot))
    return rows


@value_object
class _SeenBooking:
    """How many history entries of a booking were published, and its slot at that time."""

    entry_count: int
    slot: Slot


class BookingEventSubscription:
    """The events of one user for one reader. Events are published once it is active.

    There are no events of what the reader with `own_id` did, on this device or another one.
    """

    def __init__(self, user_id: UserId, own_id: UserId | None) -> None:
        self.user_id = user_id
        self._own_id = own_id
        self.is_active = False
        self._seen_bookings: dict[BookingId, _SeenBooking] = {}
        # By the ids that their bookings would have.
        self._seen_entries: dict[BookingId, SlotId] = {}
        self._ended_ids: deque[BookingId] = deque(maxlen=MAX_PENDING_EVENTS)
        self._pending: deque[LiveBookingEvent] = deque(maxlen=MAX_PENDING_EVENTS)
        self._updated = asyncio.Event()
        # Bookings whose slot was edited before they were read for the first time.
        self.edited_unseen: deque[tuple[Booking, SlotState]] = deque(maxlen=MAX_PENDING_EVENTS)

    def diff(self, rows: UserRows) -> dict[BookingId, SlotId]:
        """Publish what is new of the user. Returns the slots of bookings and entries that ended."""
        for booking, slot in rows.bookings:
            self._diff_booking(booking, slot)
            self._seen_entries.pop(booking.id, None)
        entries = {BookingId(entry.id): slot.id for entry, slot in rows.entries}
        live_ids, self._seen_entries = rows.booking_ids, self._seen_entries | entries
        ended = {id_: seen.slot.id for id_, seen in self._seen_bookings.items()}
        ended |= {id_: slot_id for id_, slot_id in self._seen_entries.items() if id_ not in entries}
        return {id_: slot_id for id_, slot_id in ended.items() if id_ not in live_ids}

    def _diff_booking(self, booking: Booking, state: SlotState) -> None:
        slot, seen = state.slot, self._seen_bookings.get(booking.id)
        before = seen.slot if seen is not None else slot
        self._publish(booking, state, booking.history[seen.entry_count if seen else 0 :])
        if slot.cancellation is not None and (seen is None or before.cancellation is None):
            self._publish(booking, state, [slot.cancellation.to_history_entry()])
        if edits := edits_shown_with(booking, schedule_edits(before, slot)):
            self._publish(booking, state, [_edit_entry(booking, before, state)], edits)
        if seen is None and self.is_active and _was_edited_since_booked(booking, slot):
            self.edited_unseen.append((booking, state))
        self._seen_bookings[booking.id] = _SeenBooking(len(booking.history), slot)

    def publish_edits(
        self, booking: Booking, state: SlotState, edits: tuple[FieldEdit, ...]
    ) -> None:
        """Publish the edits, if any, of a slot that was read for the first time after them."""
        if edits := edits_shown_with(booking, edits):
            entry = _to_edit_entry(booking, state.slot.revised_at or state.changed_at)
            self._publish(booking, state, [entry], edits)

    def publish_ended(
        self, booking_id: BookingId, ended_booking: Booking | None, slot: SlotState
    ) -> None:
        """Publish how a booking ended. A move is published with the booking that replaces it."""
        seen = self._seen_bookings.pop(booking_id, None)
        self._seen_entries.pop(booking_id, None)
        if ended_booking is None or booking_id in self._ended_ids:
            return
        self._ended_ids.append(booking_id)
        if ended_booking.moved_to is None:
            entry_count = seen.entry_count if seen else 0
            self._publish(ended_booking, slot, ended_booking.history[entry_count:])

    def _publish(
        self,
        booking: Booking,
        slot: SlotState,
        entries: Sequence[HistoryEntry],
        edits: tuple[FieldEdit, ...] = (),
    ) -> None:
        if not self.is_active:
            return
        for entry in entries:
            if self._own_id is None or entry.by != self._own_id:
                self._pending.append(LiveBookingEvent(entry, booking, slot, edits))
                self._updated.set()

    @property
    def slot_ids(self) -> set[SlotId]:
        """The slots in which the user had a booking or waited when they were last read."""
        booked = (seen.slot.id for seen in self._seen_bookings.values())
        return {*booked, *self._seen_entries.values()}

    async def events(self) -> AsyncGenerator[LiveBookingEvent, None]:
        """Yield events without end."""
        while True:
            await self._updated.wait()
            while self._pending:
                yield self._pending.popleft()
            self._updated.clear()


def _was_edited_since_booked(booking: Booking, slot: Slot) -> bool:
    """Whether the time, the place or something else that a slot shows may have changed."""
    return slot.revised_at is not None and slot.revised_at > booking.history[0].at


def _edit_entry(booking: Booking, before: Slot, state: SlotState) -> HistoryEntry:
    """Return what the event of an edit shows."""
    slot = state.slot
    revised_at = slot.revised_at if slot.revision != before.revision else None
    return _to_edit_entry(booking, revised_at or state.changed_at)


def _to_edit_entry(booking: Booking, at: datetime) -> HistoryEntry:
    # The slot does not tell who edited it.
    return replace(
        booking.history[-1],
        at=at,
        by=None,
        action=BookingAction.SLOT_EDITED,
        overridden_limits=(),
        meeting_start=None,
    )
