"""One reader's view of what others and the clock do to their bookings."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from slotlock.domain.bookings import Booking, BookingId, SlotId
from slotlock.domain.people import UserId
from slotlock.domain.record import Entry
from slotlock.domain.slots import Slot, SlotStatus, calling_off

# Somebody who does not read misses the oldest of more than so many.
MOST_PENDING = 100


@dataclass(frozen=True, slots=True)
class BookingNews:
    """One thing that somebody else, or the clock, did to a person's booking."""

    entry: Entry
    booking: Booking
    slot: Slot


@dataclass(frozen=True, slots=True)
class _Seen:
    """How much of a booking's record its person was told, and whether its slot was called off."""

    entries: int
    called_off: bool
    slot: Slot


class PersonalWatch:
    """One reader's view of their own bookings."""

    def __init__(self, user_id: UserId) -> None:
        self.user_id = user_id
        self.begun = False
        self._seen: dict[BookingId, _Seen] = {}
        self._ended: deque[BookingId] = deque(maxlen=MOST_PENDING)
        self._pending: deque[BookingNews] = deque(maxlen=MOST_PENDING)
        self._news = asyncio.Event()

    def compare(self, slots: Sequence[Slot]) -> dict[BookingId, Slot]:
        """Take what is live now, tell what is new of it, and return what is live no more."""
        live = {b.id: (b, slot) for slot in slots for b in slot.bookings_of(self.user_id)}
        for booking, slot in live.values():
            before = self._seen.get(booking.id, _Seen(0, called_off=False, slot=slot))
            self._tell(booking, slot, booking.log[before.entries :])
            called_off = slot.status is SlotStatus.CANCELLED
            if called_off and not before.called_off:
                self._tell(booking, slot, [calling_off(slot)])
            self._seen[booking.id] = _Seen(len(booking.log), called_off, slot)
        return {id_: seen.slot for id_, seen in self._seen.items() if id_ not in live}

    def end(self, booking_id: BookingId, ended: Booking | None, slot: Slot) -> None:
        """Tell how a booking ended. A move is told by the booking it moved to."""
        seen = self._seen.pop(booking_id, None)
        if ended is None or booking_id in self._ended:
            return
        self._ended.append(booking_id)
        if ended.moved_to is None:
            self._tell(ended, slot, ended.log[seen.entries if seen else 0 :])

    def _tell(self, booking: Booking, slot: Slot, entries: Sequence[Entry]) -> None:
        if not self.begun:
            return
        for entry in entries:
            if entry.by != self.user_id:
                self._pending.append(BookingNews(entry, booking, slot))
                self._news.set()

    @property
    def slot_ids(self) -> set[SlotId]:
        """The slots in which the reader was last seen to have a booking."""
        return {seen.slot.id for seen in self._seen.values()}

    async def news(self) -> AsyncGenerator[BookingNews, None]:
        """What happens, for ever."""
        while True:
            await self._news.wait()
            while self._pending:
                yield self._pending.popleft()
            self._news.clear()
