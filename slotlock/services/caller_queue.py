"""The callers who are in this process for one slot, in order of arrival."""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import monotonic
from typing import Generic, Protocol, TypeVar

import msgspec

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import Locked
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.redis.locks.lock_leases import LockLease
from slotlock.infrastructure.telemetry import tracing

MAX_BATCH_CALLERS = 200
# A batch ends where a caller of another process came first. Callers who came within this time of
# each other count as simultaneous: without it, two processes would serve caller by caller. A
# process that is busy with a burst joins the line as much later than its first caller came.
SIMULTANEOUS_S = 0.025
# Of simultaneous callers, and of a queue so new that other processes may not have joined yet, a
# batch takes at most this part of its queue, or this number if that is more; or as many as get
# places anyway. The processes then serve a burst alternately.
BURST_QUOTA_SHARE = 0.25
MIN_BURST_QUOTA = 10

Command = TypeVar("Command")
Command_co = TypeVar("Command_co", covariant=True)
Command_contra = TypeVar("Command_contra", contravariant=True)

Results = Sequence[CommandResult[object]]
# The results of a batch, its error, or what serves it alone and releases its lease.
Served = Results | Exception | Callable[[], Awaitable[Results]]


@value_object
class LockedBatch(Generic[Command_co]):
    """Commands for one slot, in order, and the lease on its lock."""

    slot_id: SlotId
    lease: LockLease
    commands: Sequence[Command_co]


class BatchServer(Protocol[Command_contra]):
    """Executes batches under their leases, and releases these."""

    async def serve(self, batch: LockedBatch[Command_contra]) -> Results:
        """Return one result per command."""

    async def serve_group(self, batches: Sequence[LockedBatch[Command_contra]]) -> Sequence[Served]:
        """Serve batches of different slots together, apart from those that must be served alone.

        The lease of such a batch is still held. A batch that failed has its error.
        """


class QueuedCaller(msgspec.Struct, Generic[Command], eq=False):
    """A command with the future of its result, which is None if its batch did not begin."""

    command: Command
    waits: bool
    # Times of the monotonic clock.
    arrival: float
    deadline: float
    result: asyncio.Future[CommandResult[object] | None]
    # The span of the request, while traces are on.
    origin: tracing.Origin = None

    def resolve(self, result: CommandResult[object] | None) -> None:
        if not self.result.done():
            self.result.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self.result.done():
            self.result.set_exception(error)


class CallerQueue(msgspec.Struct, Generic[Command], eq=False):
    """The callers of this process for one slot, in order of arrival, until their batch begins."""

    slot_id: SlotId
    server: BatchServer[Command]
    # When the first caller came, in time of the monotonic clock.
    began_at: float
    callers: deque[QueuedCaller[Command]] = msgspec.field(default_factory=deque)
    # Whether the lock may still turn out to be free, so that any caller may join.
    is_open: bool = True
    # Whether a batch of this queue has the lock.
    is_locked: bool = False
    # Waits for the lock of the slot, perhaps while a batch still holds it; cancelled once the queue
    # is empty.
    acquire_task: asyncio.Task[LockLease | None] | None = None
    # How much later than the callers of this queue those of another process came who go first,
    # because the last batch was a part of all who came together.
    give_way_s: float = 0.0
    # How many callers at the beginning are served alone, because their batch failed.
    isolated_count: int = 0

    def remove(self, caller: QueuedCaller[Command]) -> bool:
        """Remove a caller. Returns False if its batch has been taken out of the queue already."""
        if caller not in self.callers:
            return False
        self.callers.remove(caller)
        self._stop_if_empty()
        return True

    def time_out(self, caller: QueuedCaller[Command]) -> None:
        """Refuse a caller whose deadline has passed, unless its batch has begun."""
        if self.remove(caller):
            caller.resolve(None)

    def on_lock_taken(self) -> None:
        """Refuse the callers who do not wait, until the next acquisition."""
        self.is_open = False
        refused = [caller for caller in self.callers if not caller.waits]
        if refused:
            self.callers = deque(caller for caller in self.callers if caller.waits)
            for caller in refused:
                caller.resolve(None)
            self._stop_if_empty()

    @property
    def has_waiting_callers(self) -> bool:
        """Whether a caller is in the queue who waits for the lock."""
        return any(caller.waits for caller in self.callers)

    def _stop_if_empty(self) -> None:
        if not self.callers and self.acquire_task is not None and self.acquire_task.cancel():
            self.acquire_task = None

    def take_batch(self, next_arrival: float, burst_quota: int = 0) -> list[QueuedCaller[Command]]:
        """Take the first callers out of the queue, up to the arrival of another process.

        Of those who came at about the same time, it has at most a quota: `burst_quota` or more.
        Callers who do not wait have no place among those of all processes.
        """
        max_size = MAX_BATCH_CALLERS
        if self.isolated_count:
            self.isolated_count -= 1
            max_size = 1
        # A caller of another process, who came earlier, may not have joined yet.
        may_miss_others = next_arrival < self.began_at + SIMULTANEOUS_S
        quota_from = -math.inf if may_miss_others else next_arrival
        latest = next_arrival + SIMULTANEOUS_S
        share = int(len(self.callers) * BURST_QUOTA_SHARE)
        quota_left = max(MIN_BURST_QUOTA, share, burst_quota)
        self.give_way_s = 0.0
        batch: list[QueuedCaller[Command]] = []
        while self.callers and len(batch) < max_size:
            caller = self.callers[0]
            if batch and caller.waits and caller.arrival > latest:
                break
            if caller.waits and caller.arrival > quota_from:
                if quota_left == 0:
                    self.give_way_s = SIMULTANEOUS_S
                    break
                quota_left -= 1
            batch.append(self.callers.popleft())
        return batch

    def isolate(self, batch: Sequence[QueuedCaller[Command]]) -> None:
        """Put a batch that failed back to the beginning, to serve each of its callers alone."""
        remaining = [caller for caller in batch if not caller.result.done()]
        self.callers.extendleft(reversed(remaining))
        self.isolated_count = len(remaining)

    def resolve(
        self, callers: Sequence[QueuedCaller[Command]], results: Sequence[CommandResult[object]]
    ) -> None:
        """Resolve the callers of a batch.

        A caller whose command is still locked returns to the beginning of the queue, if it waits.
        """
        now = monotonic()
        locked = []
        for caller, result in zip(callers, results, strict=True):
            if isinstance(result.outcome, Locked) and now < caller.deadline:
                locked.append(caller)
            elif not caller.result.done():
                caller.result.set_result(result)
        self.callers.extendleft(reversed(locked))

    async def serve_alone(
        self,
        serve_batch: Callable[[], Awaitable[Results]],
        callers: Sequence[QueuedCaller[Command]],
    ) -> None:
        """Serve a batch that is in no group, and give its callers their results or the error."""
        try:
            results = await serve_batch()
        except Exception as error:  # every caller must be released, whatever the error
            if len(callers) > 1 and not is_unavailable(error):
                self.isolate(callers)  # one of them is to blame, and the others are not
                return
            for caller in callers:
                caller.fail(error)
            return
        self.resolve(callers, results)

    def fail_all(self, error: Exception) -> None:
        """Raise the error to every caller in the queue."""
        while self.callers:
            self.callers.popleft().fail(error)


def origins(callers: Iterable[QueuedCaller[Command]]) -> list[tracing.Origin]:
    """Return the spans of the callers; nothing without traces."""
    return [caller.origin for caller in callers] if tracing.is_on else []
