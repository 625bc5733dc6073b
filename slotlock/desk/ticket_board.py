"""Live tickets: a level, not an event. Who watches a ticket is told where it stands, in the end
what came of it.

A message says how many have left the line for a slot; whose turn that was is read at once. Places
are told each second, by the same look that heals a lost message, and where many watch to so many of
them in turn: in a rush, outcomes come before places.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from itertools import islice

from slotlock.domain.bookings import SlotId
from slotlock.domain.tickets import Ticket, TicketRef
from slotlock.stores.announcements import Announcements
from slotlock.stores.batches import in_parts
from slotlock.stores.mongo import is_away
from slotlock.stores.queue import Queue
from slotlock.stores.redis import RedisAwayError
from slotlock.stores.waking import Wake

log = logging.getLogger("slotlock.queue")

Read = Callable[[Sequence[TicketRef]], Awaitable[Sequence[Ticket | BaseException]]]

HEAL_EVERY_S = 1.0
LARGEST_READ = 500
MOST_PLACES_TOLD = 500


class TicketWatch:
    """One reader's view of a ticket: at most one state is pending, the latest."""

    def __init__(self, ref: TicketRef) -> None:
        self.ref = ref
        self.seen: Ticket | None = None
        self._pending: Ticket | None = None
        self._news = asyncio.Event()

    @property
    def ended(self) -> bool:
        """Whether the reader was told all there is."""
        return self.seen is not None and self.seen.final

    def tell(self, ticket: Ticket) -> None:
        """Keep a state for the reader, unless it is what they were told last."""
        if not self.ended and ticket != self.seen:
            self.seen = self._pending = ticket
            self._news.set()

    def served_by(self, left: int) -> bool:
        """Whether its turn has come when so many have left, as far as is known."""
        number = self.seen.number if self.seen is not None else None
        return number is None or number <= left

    async def states(self) -> AsyncGenerator[Ticket, None]:
        """The states as they come, up to the final one."""
        while True:
            await self._news.wait()
            self._news.clear()
            ticket, self._pending = self._pending, None
            if ticket is not None:
                yield ticket
                if ticket.final:
                    return


class TicketBoard:
    """Who watches which tickets in this process."""

    def __init__(self) -> None:
        self._watches: dict[SlotId, set[TicketWatch]] = {}
        # Everybody, whoever was told their place the longest ago in front.
        self._in_turn: dict[TicketWatch, None] = {}
        self._due: set[TicketWatch] = set()
        self._wake = Wake(HEAL_EVERY_S)
        self._looking: asyncio.Task[None] | None = None

    def start(self, announcements: Announcements, queue: Queue, read: Read) -> None:
        """Begin to look."""
        self._announcements = announcements
        self._queue = queue
        self._read = read
        self._looking = asyncio.create_task(self._look_for_ever())

    async def stop(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking

    def moved(self, slot_id: SlotId, left: int) -> None:
        """So many have left the line for a slot."""
        served = {watch for watch in self._watches.get(slot_id, ()) if watch.served_by(left)}
        if served:
            self._due |= served
            self._wake.set()

    @contextlib.asynccontextmanager
    async def watching(self, ref: TicketRef) -> AsyncIterator[TicketWatch]:
        """A watch that starts with the present state of the ticket."""
        watch = TicketWatch(ref)
        self._watches.setdefault(ref.slot_id, set()).add(watch)
        self._in_turn[watch] = None
        try:
            await self._announcements.watch_line(ref.slot_id)
            (ticket,) = await self._read([ref])
            if isinstance(ticket, BaseException):
                raise ticket
            watch.tell(ticket)
            yield watch
        finally:
            await self._leave(watch)

    async def _leave(self, watch: TicketWatch) -> None:
        self._due.discard(watch)
        del self._in_turn[watch]
        watches = self._watches[watch.ref.slot_id]
        watches.discard(watch)
        if not watches:
            del self._watches[watch.ref.slot_id]
            await self._announcements.unwatch_line(watch.ref.slot_id)

    async def _look_for_ever(self) -> None:
        while True:
            heals = await self._wake.wait()
            try:
                if heals:
                    await self._heal()
                await self._look()
            except Exception as error:
                # The truth may be away for a while; the board must outlive that.
                log.warning("tickets could not be read", exc_info=None if is_away(error) else error)

    async def _heal(self) -> None:
        """Have those looked at whose turn it was, who have no line, and whose turn to be told it
        is.
        """
        try:
            left = await self._queue.left(self._watches)
        except RedisAwayError:
            left = {}
        for slot_id, watches in self._watches.items():
            gone = slot_id not in left
            self._due |= {watch for watch in watches if gone or watch.served_by(left[slot_id])}
        for watch in list(islice(self._in_turn, MOST_PLACES_TOLD)):
            self._in_turn[watch] = self._in_turn.pop(watch)
            self._due.add(watch)

    async def _look(self) -> None:
        due, self._due = self._due, set()
        errors: list[BaseException] = []
        for some in in_parts([watch for watch in due if not watch.ended], LARGEST_READ):
            tickets = await self._read([watch.ref for watch in some])
            for watch, ticket in zip(some, tickets, strict=True):
                if isinstance(ticket, Ticket):
                    watch.tell(ticket)
                else:  # it keeps nobody from theirs, and is looked at again by the next heal
                    errors.append(ticket)
        if errors:
            raise errors[0]
