"""What others and the clock do to a person's bookings, told to that person as it happens.

A level, not an event: who watches keeps what was last seen of each booking, and whatever is found
different is told. A poke over Redis says when to look; a look each second heals a lost one.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from slotlock.domain.people import UserId
from slotlock.domain.record import BookingStatus, Deed, Entry
from slotlock.domain.slots import Booking, BookingId, Slot, SlotStatus
from slotlock.stores.announcements import Announcements
from slotlock.stores.mongo import is_away
from slotlock.stores.slots import Look, Slots

log = logging.getLogger("slotlock.personal")

HEAL_EVERY_S = 1.0
LARGEST_READ = 500
# What began longer ago is history, and costs nothing to those who watch.
PAST = timedelta(days=1)
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
                self._tell(booking, slot, [_called_off(slot)])
            self._seen[booking.id] = _Seen(len(booking.log), called_off, slot)
        return {id_: seen.slot for id_, seen in self._seen.items() if id_ not in live}

    def end(self, booking_id: BookingId, ended: Booking | None, slot: Slot) -> None:
        """Tell how a booking ended. A move is told by the booking it moved to."""
        seen = self._seen.pop(booking_id)
        if ended is not None and ended.moved_to is None:
            self._tell(ended, slot, ended.log[seen.entries :])

    def _tell(self, booking: Booking, slot: Slot, entries: Sequence[Entry]) -> None:
        if not self.begun:
            return
        for entry in entries:
            if entry.by != self.user_id:
                self._pending.append(BookingNews(entry, booking, slot))
                self._news.set()

    async def news(self) -> AsyncGenerator[BookingNews, None]:
        """What happens, for ever."""
        while True:
            await self._news.wait()
            while self._pending:
                yield self._pending.popleft()
            self._news.clear()


def _called_off(slot: Slot) -> Entry:
    return Entry(slot.changed_at, None, Deed.CANCELLED, BookingStatus.CANCELLED)


class PersonalBoard:
    """Who watches their own bookings in this process."""

    def __init__(self, slots: Slots, now: Callable[[], datetime]) -> None:
        self._slots = slots
        self._now = now
        self._watches: dict[UserId, set[PersonalWatch]] = {}
        self._poked: set[UserId] = set()
        self._wake = asyncio.Event()
        self._announcements: Announcements | None = None
        self._looking: asyncio.Task[None] | None = None

    def start(self, announcements: Announcements) -> None:
        """Begin to look."""
        self._announcements = announcements
        self._looking = asyncio.create_task(self._look_for_ever())

    async def stop(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking

    def poke(self, user_id: UserId) -> None:
        """Something was done for this person."""
        if user_id in self._watches:
            self._poked.add(user_id)
            self._wake.set()

    @contextlib.asynccontextmanager
    async def watching(self, user_id: UserId) -> AsyncIterator[PersonalWatch]:
        """A watch that tells what happens from now on."""
        watch = PersonalWatch(user_id)
        self._watches.setdefault(user_id, set()).add(watch)
        try:
            if self._announcements is not None:
                await self._announcements.watch_person(user_id)
            watch.compare(await self._read([user_id]))
            watch.begun = True
            self.poke(user_id)
            yield watch
        finally:
            await self._leave(watch)

    async def _leave(self, watch: PersonalWatch) -> None:
        watches = self._watches[watch.user_id]
        watches.discard(watch)
        if not watches:
            del self._watches[watch.user_id]
            if self._announcements is not None:
                await self._announcements.unwatch_person(watch.user_id)

    async def _look_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        heal_at = loop.time() + HEAL_EVERY_S
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), max(heal_at - loop.time(), 0))
            self._wake.clear()
            people, self._poked = self._poked, set()
            if loop.time() >= heal_at:
                people, heal_at = set(self._watches), loop.time() + HEAL_EVERY_S
            try:
                await self._look_at(people)
            except Exception as error:
                # The truth may be away for a while; the board must outlive that.
                why = None if is_away(error) else error
                log.warning("personal news could not be read from MongoDB", exc_info=why)

    async def _look_at(self, people: set[UserId]) -> None:
        everyone = sorted(people & self._watches.keys())
        for begin in range(0, len(everyone), LARGEST_READ):
            some = everyone[begin : begin + LARGEST_READ]
            # Watches that begin while this reads have a newer state than this.
            watches = [watch for user_id in some for watch in self._begun(user_id)]
            slots = await self._read(some)
            await asyncio.gather(*(self._compare(watch, slots) for watch in watches))

    def _begun(self, user_id: UserId) -> Iterator[PersonalWatch]:
        return (watch for watch in self._watches.get(user_id, ()) if watch.begun)

    async def _compare(self, watch: PersonalWatch, slots: Sequence[Slot]) -> None:
        for booking_id, slot in watch.compare(slots).items():
            ended = await self._slots.ended(booking_id)
            now_seen = await self._slots.look(Look(slot.id, self._now(), [watch.user_id]))
            watch.end(booking_id, ended, now_seen or slot)

    async def _read(self, people: Sequence[UserId]) -> list[Slot]:
        now = self._now()
        return await self._slots.of_people(people, now - PAST, now)
