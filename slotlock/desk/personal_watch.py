"""One reader's view of what others and the clock do to their bookings."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from slotlock.domain.bookings import Booking, BookingId, SlotId
from slotlock.domain.people import UserId
from slotlock.domain.record import HistoryEntry
from slotlock.domain.slots import Slot, SlotStatus, cancellation_entry

# Somebody who does not read misses the oldest of more than so many.
MAX_PENDING_EVENTS = 100


@dataclass(frozen=True, slots=True)
class LiveBookingEvent:
    """One thing that somebody else, or the clock, did to a person's booking."""

    entry: HistoryEntry
    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class _SeenBooking:
    """How much of a booking's record its person was told, and whether its slot was called off."""

    entry_count: int
    slot_cancelled: bool
    slot: Slot


class BookingEventSubscription:
    """One reader's view of their own bookings."""

    def __init__(self, user_id: UserId) -> None:
        self.user_id = user_id
        self.is_active = False
        self._seen_bookings: dict[BookingId, _SeenBooking] = {}
        self._ended_ids: deque[BookingId] = deque(maxlen=MAX_PENDING_EVENTS)
        self._pending: deque[LiveBookingEvent] = deque(maxlen=MAX_PENDING_EVENTS)
        self._updated = asyncio.Event()

    def diff(self, slots: Sequence[Slot]) -> dict[BookingId, Slot]:
        """Take what is live now, tell what is new of it, and return what is live no more."""
        live = {b.id: (b, slot) for slot in slots for b in slot.bookings_of(self.user_id)}
        for booking, slot in live.values():
            before = self._seen_bookings.get(
                booking.id, _SeenBooking(0, slot_cancelled=False, slot=slot)
            )
            self._publish(booking, slot, booking.history[before.entry_count :])
            called_off = slot.status is SlotStatus.CANCELLED
            if called_off and not before.slot_cancelled:
                self._publish(booking, slot, [cancellation_entry(slot)])
            self._seen_bookings[booking.id] = _SeenBooking(len(booking.history), called_off, slot)
        return {id_: seen.slot for id_, seen in self._seen_bookings.items() if id_ not in live}

    def publish_ended(
        self, booking_id: BookingId, ended_booking: Booking | None, slot: Slot
    ) -> None:
        """Tell how a booking ended. A move is told by the booking it moved to."""
        seen = self._seen_bookings.pop(booking_id, None)
        if ended_booking is None or booking_id in self._ended_ids:
            return
        self._ended_ids.append(booking_id)
        if ended_booking.moved_to is None:
            self._publish(
                ended_booking, slot, ended_booking.history[seen.entry_count if seen else 0 :]
            )

    def _publish(self, booking: Booking, slot: Slot, entries: Sequence[HistoryEntry]) -> None:
        if not self.is_active:
            return
        for entry in entries:
            if entry.by != self.user_id:
                self._pending.append(LiveBookingEvent(entry, booking, slot))
                self._updated.set()

    @property
    def slot_ids(self) -> set[SlotId]:
        """The slots in which the reader was last seen to have a booking."""
        return {seen.slot.id for seen in self._seen_bookings.values()}

    async def events(self) -> AsyncGenerator[LiveBookingEvent, None]:
        """What happens, for ever."""
        while True:
            await self._updated.wait()
            while self._pending:
                yield self._pending.popleft()
            self._updated.clear()
