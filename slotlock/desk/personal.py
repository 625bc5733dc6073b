"""What others and the clock do to a person's bookings, told to that person as it happens.

A level, not an event: who watches keeps what was last seen of each booking, and whatever is found
different is told. A poke over Redis says when to look; a look each second heals a lost one.
"""

import asyncio
import contextlib
import logging
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import datetime, timedelta

from slotlock.desk.personal_watch import PersonalWatch
from slotlock.domain.bookings import BookingRef, SlotId
from slotlock.domain.people import UserId
from slotlock.domain.slots import Slot
from slotlock.stores.announcements import Announcements
from slotlock.stores.batches import in_parts
from slotlock.stores.mongo import is_away
from slotlock.stores.slots import Look, Slots
from slotlock.stores.waking import Wake

log = logging.getLogger("slotlock.personal")

HEAL_EVERY_S = 1.0
LARGEST_READ = 500
# What began longer ago is history, and costs nothing to those who watch.
PAST = timedelta(days=1)


class PersonalBoard:
    """Who watches their own bookings in this process."""

    def __init__(self, slots: Slots, now: Callable[[], datetime]) -> None:
        self._slots = slots
        self._now = now
        self._watches: dict[UserId, set[PersonalWatch]] = {}
        self._poked: dict[UserId, set[BookingRef]] = {}
        # Of the slots in which those who watch have bookings, as they were at the last heal.
        self._versions: dict[SlotId, int] = {}
        self._wake = Wake(HEAL_EVERY_S)
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

    def poke(self, user_id: UserId, *bookings: BookingRef) -> None:
        """Something was done to these bookings of this person, or to any."""
        if user_id in self._watches:
            self._poked.setdefault(user_id, set()).update(bookings)
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
        while True:
            if await self._wake.wait():
                await self._try(self._heal)
            await self._try(self._look)

    async def _try(self, what: Callable[[], Awaitable[None]]) -> None:
        try:
            await what()
        except Exception as error:
            # The truth may be away for a while; the board must outlive that.
            why = None if is_away(error) else error
            log.warning("personal news could not be read from MongoDB", exc_info=why)

    async def _heal(self) -> None:
        for user_id in await self._whom_something_changed_for():
            self.poke(user_id)

    async def _look(self) -> None:
        poked, self._poked = self._poked, {}
        try:
            await self._look_at(poked)
        except BaseException:
            for user_id, bookings in poked.items():
                self.poke(user_id, *bookings)
            raise

    async def _whom_something_changed_for(self) -> set[UserId]:
        """Those who watch and had or have a booking in a slot that was written since last time."""
        everyone, versions = sorted(self._watches), dict[SlotId, int]()
        for some in in_parts(everyone, LARGEST_READ):
            versions |= await self._slots.versions_of_people(some, self._now() - PAST)
        old = self._versions
        changed = {id_ for id_, version in versions.items() if old.get(id_) != version}
        gone = changed | (old.keys() - versions.keys())
        watches = [watch for all_of_one in self._watches.values() for watch in all_of_one]
        people = {watch.user_id for watch in watches if watch.slot_ids & gone}
        if changed:
            for some in in_parts(everyone, LARGEST_READ):
                people |= await self._slots.people_in(sorted(changed), some)
        self._versions = versions
        return people

    async def _look_at(self, poked: Mapping[UserId, set[BookingRef]]) -> None:
        for some in in_parts(sorted(poked.keys() & self._watches.keys()), LARGEST_READ):
            # Watches that begin while this reads have a newer state than this.
            watches = [watch for user_id in some for watch in self._begun(user_id)]
            slots = await self._read(some)
            looks = (self._compare(watch, slots, poked[watch.user_id]) for watch in watches)
            await asyncio.gather(*looks)

    def _begun(self, user_id: UserId) -> Iterator[PersonalWatch]:
        return (watch for watch in self._watches.get(user_id, ()) if watch.begun)

    async def _compare(
        self, watch: PersonalWatch, slots: Sequence[Slot], named: set[BookingRef]
    ) -> None:
        live = {booking.id for slot in slots for booking in slot.bookings}
        gone = {booking_id: slot.id for booking_id, slot in watch.compare(slots).items()}
        # What came and went between two looks was named by those who did it.
        gone |= {ref.booking_id: ref.slot_id for ref in named if ref.booking_id not in live}
        for booking_id, slot_id in gone.items():
            ended = await self._slots.past.find(booking_id)
            slot = await self._slots.look(Look(slot_id, self._now(), [watch.user_id]))
            if slot is not None:
                watch.end(booking_id, ended, slot)

    async def _read(self, people: Sequence[UserId]) -> list[Slot]:
        now = self._now()
        return await self._slots.of_people(people, now - PAST, now)
