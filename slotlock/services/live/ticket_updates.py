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

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.tickets import Ticket, TicketRef
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.redis.admission.queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from slotlock.infrastructure.wakeup import RefreshTimer

log = logging.getLogger("slotlock.queue")

LoadTickets = Callable[[Sequence[TicketRef]], Awaitable[Sequence[Ticket | BaseException]]]

RESYNC_INTERVAL_S = 1.0
READ_BATCH_SIZE = 500
MAX_POSITION_UPDATES = 500


class TicketSubscription:
    """One reader's view of a ticket: at most one state is pending, the latest."""

    def __init__(self, ref: TicketRef) -> None:
        self.ref = ref
        self.latest: Ticket | None = None
        self._pending: Ticket | None = None
        self._updated = asyncio.Event()

    @property
    def is_complete(self) -> bool:
        """Whether the reader was told all there is."""
        return self.latest is not None and self.latest.is_final

    def publish(self, ticket: Ticket) -> None:
        """Keep a state for the reader, unless it is what they were told last."""
        if not self.is_complete and ticket != self.latest:
            self.latest = self._pending = ticket
            self._updated.set()

    def is_due(self, served_count: int) -> bool:
        """Whether its turn has come when so many have left, as far as is known."""
        number = self.latest.sequence if self.latest is not None else None
        return number is None or number <= served_count

    async def states(self) -> AsyncGenerator[Ticket, None]:
        """The states as they come, up to the final one."""
        while True:
            await self._updated.wait()
            self._updated.clear()
            ticket, self._pending = self._pending, None
            if ticket is not None:
                yield ticket
                if ticket.is_final:
                    return


class TicketHub:
    """Who watches which tickets in this process."""

    def __init__(self) -> None:
        self._subscriptions: dict[SlotId, set[TicketSubscription]] = {}
        # Everybody, whoever was told their place the longest ago in front.
        self._resync_order: dict[TicketSubscription, None] = {}
        self._due: set[TicketSubscription] = set()
        self._refresh_timer = RefreshTimer(RESYNC_INTERVAL_S)
        self._task: asyncio.Task[None] | None = None

    def start(
        self, slot_events: SlotEventBus, admission_queue: AdmissionQueue, load_tickets: LoadTickets
    ) -> None:
        """Begin to look."""
        self._slot_events = slot_events
        self._admission_queue = admission_queue
        self._load_tickets = load_tickets
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def on_queue_advanced(self, slot_id: SlotId, served_count: int) -> None:
        """So many have left the line for a slot."""
        served = {
            watch for watch in self._subscriptions.get(slot_id, ()) if watch.is_due(served_count)
        }
        if served:
            self._due |= served
            self._refresh_timer.trigger()

    @contextlib.asynccontextmanager
    async def subscribe(self, ref: TicketRef) -> AsyncIterator[TicketSubscription]:
        """A watch that starts with the present state of the ticket."""
        watch = TicketSubscription(ref)
        self._subscriptions.setdefault(ref.slot_id, set()).add(watch)
        self._resync_order[watch] = None
        try:
            await self._slot_events.subscribe_queue(ref.slot_id)
            (ticket,) = await self._load_tickets([ref])
            if isinstance(ticket, BaseException):
                raise ticket
            watch.publish(ticket)
            yield watch
        finally:
            await self._unsubscribe(watch)

    async def _unsubscribe(self, subscription: TicketSubscription) -> None:
        self._due.discard(subscription)
        del self._resync_order[subscription]
        watches = self._subscriptions[subscription.ref.slot_id]
        watches.discard(subscription)
        if not watches:
            del self._subscriptions[subscription.ref.slot_id]
            await self._slot_events.unsubscribe_queue(subscription.ref.slot_id)

    async def _run(self) -> None:
        while True:
            heals = await self._refresh_timer.wait()
            try:
                if heals:
                    await self._resync()
                await self._publish_due()
            except Exception as error:
                # The truth may be away for a while; the board must outlive that.
                log.warning(
                    "tickets could not be read", exc_info=None if is_unavailable(error) else error
                )

    async def _resync(self) -> None:
        """Have those looked at whose turn it was, who have no line, and whose turn to be told it
        is.
        """
        try:
            left = await self._admission_queue.served_counts(self._subscriptions)
        except RedisUnavailableError:
            left = {}
        for slot_id, watches in self._subscriptions.items():
            gone = slot_id not in left
            self._due |= {watch for watch in watches if gone or watch.is_due(left[slot_id])}
        for watch in list(islice(self._resync_order, MAX_POSITION_UPDATES)):
            self._resync_order[watch] = self._resync_order.pop(watch)
            self._due.add(watch)

    async def _publish_due(self) -> None:
        due, self._due = self._due, set()
        errors: list[BaseException] = []
        for some in chunked([watch for watch in due if not watch.is_complete], READ_BATCH_SIZE):
            tickets = await self._load_tickets([watch.ref for watch in some])
            for watch, ticket in zip(some, tickets, strict=True):
                if isinstance(ticket, Ticket):
                    watch.publish(ticket)
                else:  # it keeps nobody from theirs, and is looked at again by the next heal
                    errors.append(ticket)
        if errors:
            raise errors[0]
