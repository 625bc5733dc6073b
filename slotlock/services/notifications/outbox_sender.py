"""Sends what is due in the outbox; every worker takes part.

A worker takes a lease of an entry before it sends it. A worker that dies leaves its leases to
others, which send the same entries again, with the same ids.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from itertools import product

from prometheus_client import Counter

from slotlock.domain.notifications.outbox import LEASE, Channel, Delivery, OutboxEntry, OutboxState
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.tasks import cancel_and_wait, wait_for_event
from slotlock.services.container import Services

log = logging.getLogger("slotlock.outbox")

ATTEMPTS = Counter(
    "slotlock_outbox_attempts_total",
    "Attempts to send entries of the outbox, by channel and the state that followed",
    ["channel", "state"],
)
for _channel, _state in product(
    Channel, (OutboxState.SENT, OutboxState.QUEUED, OutboxState.FAILED)
):
    ATTEMPTS.labels(_channel.value, _state.value)  # which shows zero, instead of nothing
OUTAGES = Counter(
    "slotlock_outbox_outages_total",
    "Attempts that cost nothing, because the server that takes them was out of service",
    ["channel"],
)
for _channel in Channel:
    OUTAGES.labels(_channel.value)
# The time between two looks at the outbox while an entry is due, and while none is.
POLL_S = 0.5
IDLE_POLL_S = (1.5, 2.5)
# The entries that a process sends at once on one channel.
CONCURRENCY = 30
# Entries are leased together, so that each costs few commands: as many as there is room for, as
# soon as half of the room is free, or some of it after this time.
MAX_ROOM_WAIT_S = 0.25
# Long before the lease ends, so that no other worker sends the same entry meanwhile.
ATTEMPT_TIMEOUT_S = 90.0
SHUTDOWN_TIMEOUT_S = 5.0

# Sends entries that are one mail or call: the first one has been due, the others are of its group.
Deliver = Callable[[Sequence[OutboxEntry]], Awaitable[Delivery]]
# Waits until an entry may be sent, and returns how many of this number may.
WaitForRate = Callable[[int], Awaitable[int]]


@contextlib.asynccontextmanager
async def outbox_sender(
    services: Services,
    channel: Channel,
    deliver: Deliver,
    wait_for_rate: WaitForRate | None = None,
) -> AsyncIterator[None]:
    """Send the entries of a channel while the context is open."""
    async with sending(OutboxSender(services, channel, deliver, wait_for_rate)):
        yield


@contextlib.asynccontextmanager
async def sending(sender: "OutboxSender") -> AsyncIterator[None]:
    """Let a sender send while the context is open."""
    task = asyncio.create_task(sender.run())
    try:
        yield
    finally:
        await cancel_and_wait(task)
        await sender.finish()


class OutboxSender:
    """Claims due entries of a channel, and sends some of them at once."""

    def __init__(
        self,
        services: Services,
        channel: Channel,
        deliver: Deliver,
        wait_for_rate: WaitForRate | None = None,
    ) -> None:
        self._services = services
        self._channel = channel
        self._deliver = deliver
        self._wait_for_rate = wait_for_rate
        # The attempts that go on, with the first entry of each.
        self._sending: dict[asyncio.Task[None], OutboxEntry] = {}
        # After how many seconds to look again.
        self._pause_s = POLL_S

    async def run(self) -> None:
        """Send what is due, until the task is cancelled."""
        was_woken = False
        while True:
            found, inserted = 0, self._services.outbox.inserted.next
            try:
                found = await self.send_due()
            except Exception as error:  # the entries stay in the outbox
                log.warning(
                    "could not read the outbox", exc_info=None if is_unavailable(error) else error
                )
                self._pause_s = POLL_S
            if not found:
                # A transaction announces its entries before it commits them.
                await self._wait(inserted, POLL_S if was_woken else self._pause_s)
                was_woken = inserted.is_set()

    async def _wait(self, inserted: asyncio.Event, timeout_s: float) -> None:
        """Wait until there may be more to send, at most this many seconds."""
        await wait_for_event(inserted, timeout_s)

    async def finish(self) -> None:
        """Let attempts that have begun end, for some seconds; the rest is left to the lease."""
        if self._sending:
            _, pending = await asyncio.wait(self._sending, timeout=SHUTDOWN_TIMEOUT_S)
            for task in pending:
                await cancel_and_wait(task)

    async def send_due(self) -> int:
        """Begin to send entries that are due, and return how many these are."""
        idle_s, now = random.uniform(*IDLE_POLL_S), self._services.now()  # noqa: S311 - no secret
        found = await self._find(now + timedelta(seconds=idle_s))
        due = [entry for entry in found if entry.due_at <= now]
        next_due_at = min((entry.due_at for entry in found), default=None)
        if due:
            self._pause_s = POLL_S
        else:
            self._pause_s = (next_due_at - now).total_seconds() if next_due_at else idle_s
        return await self._begin(due)

    async def _find(self, until: datetime) -> Sequence[OutboxEntry]:
        """Return entries that are due until then."""
        return await self._services.outbox.find_due(self._channel, until, 4 * CONCURRENCY)

    async def _begin(self, due: Sequence[OutboxEntry]) -> int:
        """Begin to send these as soon as there is room, and return how many could be leased."""
        busy = {entry.group or entry.id for entry in self._sending.values()}
        leads = dict[str, OutboxEntry]()
        for entry in due:
            # The first entry of a group takes the others with it.
            if (group := entry.group or entry.id) not in busy:
                leads.setdefault(group, entry)
        ready = [*leads.values()]
        if len(ready) > CONCURRENCY:
            random.shuffle(ready)  # other workers find the same ones, and lease others first
        begun = 0
        while ready:
            room = min(await self._wait_for_room(), len(ready))
            if self._wait_for_rate is not None:
                room = await self._wait_for_rate(room)
            begun += await self._lease_and_send(ready[:room])
            ready = ready[room:]
        return begun

    async def _wait_for_room(self) -> int:
        """Wait until more can be sent, and return how many."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + MAX_ROOM_WAIT_S
        while len(self._sending) > CONCURRENCY // 2:
            is_full = len(self._sending) == CONCURRENCY
            timeout = None if is_full else deadline - loop.time()
            if timeout is not None and timeout <= 0:
                break
            await asyncio.wait(self._sending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        return CONCURRENCY - len(self._sending)

    async def _lease_and_send(self, due: Sequence[OutboxEntry]) -> int:
        """Begin to send those of these for which no other worker was first; return their number."""
        leased = await self._services.outbox.lease(due, self._services.now())
        for entries in leased:
            task = asyncio.create_task(self._send(entries))
            self._sending[task] = entries[0]
            task.add_done_callback(self._sending.pop)
        return len(leased)

    async def _send(self, entries: Sequence[OutboxEntry]) -> None:
        delivery = await self._attempt(entries)
        lease_ends_at = asyncio.get_running_loop().time() + LEASE.total_seconds()
        while (error := await self._record(entries, delivery)) is not None:
            # While MongoDB is unavailable, no other worker can lease the entry either.
            if not is_unavailable(error) and asyncio.get_running_loop().time() > lease_ends_at:
                return
            await asyncio.sleep(POLL_S)

    async def _attempt(self, entries: Sequence[OutboxEntry]) -> Delivery:
        lead = entries[0]
        if lead.expires_at is not None and lead.expires_at <= self._services.now():
            return Delivery(OutboxState.SUPPRESSED, "it expired before it could be sent")
        try:
            async with asyncio.timeout(ATTEMPT_TIMEOUT_S):
                return await self._deliver(entries)
        except TimeoutError:
            # Not an outage: the receiver may have it, and each attempt may make a double.
            return Delivery(OutboxState.QUEUED, f"no result within {ATTEMPT_TIMEOUT_S:g} s")
        except Exception as error:
            is_outage = is_unavailable(error)
            log.warning("could not send %s", lead.id, exc_info=None if is_outage else error)
            reason = f"{type(error).__name__}: {error}"
            return Delivery(OutboxState.QUEUED, reason, is_outage=is_outage)

    async def _record(self, entries: Sequence[OutboxEntry], delivery: Delivery) -> Exception | None:
        """Record what an attempt led to; return why MongoDB did not."""
        try:
            state = await self._services.outbox.finish(entries, delivery, self._services.now())
        except Exception as error:
            log.warning(
                "could not record that %s is %s",
                entries[0].id,
                delivery.state,
                exc_info=None if is_unavailable(error) else error,
            )
            return error
        ATTEMPTS.labels(entries[0].channel.value, state.value).inc()
        if delivery.is_outage and delivery.retry_after is None:
            OUTAGES.labels(entries[0].channel.value).inc()
        return None
