"""Live tickets: each subscriber gets the position of a ticket and finally its outcome.

A message says how many requests have left the queue of a slot. Tickets of those are read at once,
so outcomes arrive before positions. Positions are read every second, together with tickets whose
message was lost. If there are too many for one read, the longest unread positions come first.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from itertools import islice

from slotlock.domain.admission.tickets import Ticket, TicketRef
from slotlock.domain.booking.booking import SlotId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.redis.admission.admission_queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from slotlock.infrastructure.tasks import RefreshTimer
from slotlock.services.live.fan_out import Hub

log = logging.getLogger("slotlock.tickets")

LoadTickets = Callable[[Sequence[TicketRef]], Awaitable[Sequence[Ticket | BaseException]]]

RESYNC_INTERVAL_S = 1.0
READ_BATCH_SIZE = 500
# How many subscriptions get their position per resync.
MAX_POSITION_UPDATES = 500


class TicketSubscription:
    """The states of one ticket for one reader: at most one pending state, the latest."""

    def __init__(self, ref: TicketRef) -> None:
        self.ref = ref
        self.latest: Ticket | None = None
        self._pending: Ticket | None = None
        self._updated = asyncio.Event()

    @property
    def is_complete(self) -> bool:
        """Whether the final state was published."""
        return self.latest is not None and self.latest.is_final

    def publish(self, ticket: Ticket) -> None:
        """Queue a state for the reader if it differs from the latest one."""
        if not self.is_complete and ticket != self.latest:
            self.latest = self._pending = ticket
            self._updated.set()

    def is_due(self, served_count: int) -> bool:
        """Return whether the request may have left the queue when this many have."""
        sequence = self.latest.sequence if self.latest is not None else None
        return sequence is None or sequence <= served_count

    async def states(self) -> AsyncGenerator[Ticket, None]:
        """Yield states up to the final one."""
        while True:
            await self._updated.wait()
            self._updated.clear()
            ticket, self._pending = self._pending, None
            if ticket is not None:
                yield ticket
                if ticket.is_final:
                    return


class TicketHub(Hub):
    """The ticket subscriptions of this process."""

    def __init__(self) -> None:
        self._subscriptions: dict[SlotId, set[TicketSubscription]] = {}
        # All subscriptions; first those whose position was read the longest time ago.
        self._resync_order: dict[TicketSubscription, None] = {}
        self._due: set[TicketSubscription] = set()
        self._refresh_timer = RefreshTimer(RESYNC_INTERVAL_S)

    def start(
        self, slot_events: SlotEventBus, admission_queue: AdmissionQueue, load_tickets: LoadTickets
    ) -> None:
        """Start to publish."""
        self._slot_events = slot_events
        self._admission_queue = admission_queue
        self._load_tickets = load_tickets
        self._repeat(self._publish_soon, log, "could not read tickets")

    def on_queue_advanced(self, slot_id: SlotId, served_count: int) -> None:
        """Read the tickets of requests that may have left the queue of this slot."""
        due = {
            subscription
            for subscription in self._subscriptions.get(slot_id, ())
            if subscription.is_due(served_count)
        }
        if due:
            self._due |= due
            self._refresh_timer.trigger()

    @contextlib.asynccontextmanager
    async def subscribe(self, ref: TicketRef) -> AsyncIterator[TicketSubscription]:
        """Subscribe to a ticket. Its present state comes first."""
        subscription = TicketSubscription(ref)
        self._subscriptions.setdefault(ref.slot_id, set()).add(subscription)
        self._resync_order[subscription] = None
        try:
            await self._slot_events.subscribe_queue(ref.slot_id)
            (ticket,) = await self._load_tickets([ref])
            if isinstance(ticket, BaseException):
                raise ticket
            subscription.publish(ticket)
            yield subscription
        finally:
            await self._unsubscribe(subscription)

    async def _unsubscribe(self, subscription: TicketSubscription) -> None:
        self._due.discard(subscription)
        del self._resync_order[subscription]
        slot_id = subscription.ref.slot_id
        subscriptions = self._subscriptions[slot_id]
        subscriptions.discard(subscription)
        if not subscriptions:
            del self._subscriptions[slot_id]
            await self._slot_events.unsubscribe_queue(slot_id)

    async def _publish_soon(self) -> None:
        if await self._refresh_timer.wait():
            await self._resync()
        await self._publish_due()

    async def _resync(self) -> None:
        """Mark tickets as due: those that may have left a queue, and those next in order."""
        try:
            served_counts = await self._admission_queue.served_counts(self._subscriptions)
        except RedisUnavailableError:
            served_counts = {}
        for slot_id, subscriptions in self._subscriptions.items():
            # Without a count the queue is empty or unknown.
            served_count = served_counts.get(slot_id)
            self._due |= {
                subscription
                for subscription in subscriptions
                if served_count is None or subscription.is_due(served_count)
            }
        for subscription in list(islice(self._resync_order, MAX_POSITION_UPDATES)):
            self._resync_order[subscription] = self._resync_order.pop(subscription)
            self._due.add(subscription)

    async def _publish_due(self) -> None:
        due, self._due = self._due, set()
        errors: list[BaseException] = []
        incomplete = [subscription for subscription in due if not subscription.is_complete]
        for chunk in chunked(incomplete, READ_BATCH_SIZE):
            tickets = await self._load_tickets([subscription.ref for subscription in chunk])
            for subscription, ticket in zip(chunk, tickets, strict=True):
                if isinstance(ticket, Ticket):
                    subscription.publish(ticket)
                else:  # one ticket that cannot be read must not delay the others
                    errors.append(ticket)
        if errors:
            raise errors[0]
