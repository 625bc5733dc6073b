"""Queues of this process for the callers of a slot: they are served together, in order.

A queue acquires the lock of its slot once for all callers who have come by then. They are decided
as one batch in their order of arrival: one read, one write and one outcome each.

Queues that begin at the same time with callers who do not wait are served as a group: one round
trip acquires their locks, and their batches share one read and one write. A queue goes on alone if
callers wait for its lock, or if its batch cannot be served with others.

A caller who does not wait joins an acquisition that is under way, or begins one. The caller is
refused as soon as the lock turns out to be taken, and at once while it is known to be taken: by
another process, or by a batch of this one.
"""

import asyncio
import math
from collections import deque
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.refusals import Locked
from slotlock.domain.shared.values import value_object
from slotlock.infrastructure.futures import ignore_unretrieved
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.redis.locks.leases import Lease
from slotlock.infrastructure.redis.locks.locks import Locks

MAX_BATCH_SIZE = 200
# The longest wait that the API allows.
MAX_WAIT_S = 20.0

MAX_GROUP_SIZE = 64
# While a group waits for Redis and MongoDB, later callers gather for the next. If one takes longer
# than this, for example because a server does not respond, another one starts.
GROUP_PATIENCE_S = 0.05
# A batch ends where a caller of another process came first. Callers who came within this time of
# each other count as simultaneous: without it, two processes would serve caller by caller.
SIMULTANEOUS_S = 0.01
MAX_CONCURRENT_GROUPS = 4

Command = TypeVar("Command")
Command_co = TypeVar("Command_co", covariant=True)
Command_contra = TypeVar("Command_contra", contravariant=True)

Results = Sequence[CommandResult[object]]


@value_object
class LockedBatch(Generic[Command_co]):
    """Commands for one slot, in order, and the lease on its lock."""

    slot_id: SlotId
    lease: Lease
    commands: Sequence[Command_co]


class BatchServer(Protocol[Command_contra]):
    """Executes batches under their leases, and releases these."""

    async def serve(self, batch: LockedBatch[Command_contra]) -> Results:
        """Return one result per command."""

    async def serve_each(
        self, batches: Sequence[LockedBatch[Command_contra]]
    ) -> Sequence[Results | None]:
        """Serve batches of different slots together. None for one that must be served alone.

        The lease of such a batch is still held.
        """


@dataclass(slots=True, eq=False)
class _Caller(Generic[Command]):
    """A command with the future of its result, which is None if its batch did not begin."""

    command: Command
    waits: bool
    # Times of the event loop.
    arrival: float
    deadline: float
    result: asyncio.Future[CommandResult[object] | None]

    def resolve(self, result: CommandResult[object] | None) -> None:
        if not self.result.done():
            self.result.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self.result.done():
            self.result.set_exception(error)


@dataclass(slots=True, eq=False)
class _WaitQueue(Generic[Command]):
    slot_id: SlotId
    server: BatchServer[Command]
    callers: deque[_Caller[Command]] = field(default_factory=deque)
    # Whether the lock may still turn out to be free, so that any caller may join.
    is_open: bool = True
    # Waits for the lock of the slot, perhaps while a batch still holds it; cancelled once the queue
    # is empty.
    acquire_task: asyncio.Task[Lease | None] | None = None
    # How many callers at the beginning are served alone, because their batch failed.
    isolated_count: int = 0

    def remove(self, caller: _Caller[Command]) -> bool:
        """Remove a caller. Returns False if its batch has been taken out of the queue already."""
        if caller not in self.callers:
            return False
        self.callers.remove(caller)
        self._stop_if_empty()
        return True

    def time_out(self, caller: _Caller[Command]) -> None:
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
        if not self.callers and self.acquire_task is not None:
            self.acquire_task.cancel()
            self.acquire_task = None

    def take_batch(self, next_arrival: float | None = None) -> list[_Caller[Command]]:
        """Take the first callers out of the queue, up to the arrival of another process."""
        max_size = MAX_BATCH_SIZE
        if self.isolated_count:
            self.isolated_count -= 1
            max_size = 1
        latest = math.inf if next_arrival is None else next_arrival + SIMULTANEOUS_S
        batch: list[_Caller[Command]] = []
        while self.callers and len(batch) < max_size:
            if batch and self.callers[0].arrival > latest:
                break
            batch.append(self.callers.popleft())
        return batch

    def isolate(self, batch: Sequence[_Caller[Command]]) -> None:
        """Put a batch that failed back to the beginning, to serve each of its callers alone."""
        remaining = [caller for caller in batch if not caller.result.done()]
        self.callers.extendleft(reversed(remaining))
        self.isolated_count = len(remaining)

    def resolve(
        self, callers: Sequence[_Caller[Command]], results: Sequence[CommandResult[object]]
    ) -> None:
        """Resolve the callers of a batch.

        A caller whose command is still locked returns to the beginning of the queue, if it waits.
        """
        now = asyncio.get_running_loop().time()
        locked = []
        for caller, result in zip(callers, results, strict=True):
            if isinstance(result.outcome, Locked) and now < caller.deadline:
                locked.append(caller)
            else:
                caller.resolve(result)
        self.callers.extendleft(reversed(locked))

    def fail_all(self, error: Exception) -> None:
        """Raise the error to every caller in the queue."""
        while self.callers:
            self.callers.popleft().fail(error)


class WaitQueues(Generic[Command]):
    """The queues of this process, one per slot that has callers."""

    def __init__(self, locks: Locks) -> None:
        self._locks = locks
        self._queues: dict[SlotId, _WaitQueue[Command]] = {}
        # The queues that no group has taken yet.
        self._new_queues: deque[_WaitQueue[Command]] = deque()
        # The groups that are under way, and those of them that take long.
        self._group_count = self._slow_group_count = 0
        self._serve_tasks: set[asyncio.Task[None]] = set()

    async def submit(
        self, slot_id: SlotId, command: Command, wait_s: float, server: BatchServer[Command]
    ) -> CommandResult[object] | None:
        """Return the result of a command, or None if its batch does not begin in time.

        A caller that is cancelled leaves the queue, unless its batch has begun.
        """
        waits = wait_s > 0
        queue = self._queues.get(slot_id)
        if queue is None:
            queue = self._start_queue(slot_id, server, waits=waits)
        elif not (waits or queue.is_open):
            return None
        loop = asyncio.get_running_loop()
        now = loop.time()
        caller = _Caller(command, waits, now, now + wait_s, loop.create_future())
        queue.callers.append(caller)
        timer = loop.call_at(caller.deadline, queue.time_out, caller) if waits else None
        try:
            return await caller.result
        except asyncio.CancelledError:
            queue.remove(caller)
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _start_queue(
        self, slot_id: SlotId, server: BatchServer[Command], *, waits: bool
    ) -> _WaitQueue[Command]:
        queue = self._queues[slot_id] = _WaitQueue(slot_id, server)
        if waits:  # joins the line for the lock without another round trip
            _start(self._serve_queue(queue), self._serve_tasks)
            return queue
        self._new_queues.append(queue)
        self._start_group()
        return queue

    def _start_group(self) -> None:
        """Serve the new queues, unless a group that is not slow will do so."""
        slow_count = self._slow_group_count
        if self._new_queues and self._group_count <= slow_count < MAX_CONCURRENT_GROUPS:
            self._group_count += 1
            _start(self._serve_groups(), self._serve_tasks)

    async def _serve_groups(self) -> None:
        try:
            while self._new_queues:
                count = min(len(self._new_queues), MAX_GROUP_SIZE)
                with self._noticing_slowness():
                    await self._serve_group([self._new_queues.popleft() for _ in range(count)])
        finally:
            self._group_count -= 1

    @contextmanager
    def _noticing_slowness(self) -> Iterator[None]:
        """Let another group start as soon as this one is slow."""
        is_slow = False

        def on_slow() -> None:
            nonlocal is_slow
            is_slow = True
            self._slow_group_count += 1
            self._start_group()

        timer = asyncio.get_running_loop().call_later(GROUP_PATIENCE_S, on_slow)
        try:
            yield
        finally:
            timer.cancel()
            self._slow_group_count -= is_slow

    async def _serve_group(self, queues: Sequence[_WaitQueue[Command]]) -> None:
        try:
            leases = await self._locks.acquire_each([queue.slot_id for queue in queues])
        except Exception as error:  # every caller must be released, whatever the error
            for queue in queues:
                queue.fail_all(error)
                self._end_or_continue(queue)
            return
        locked = list[tuple[_WaitQueue[Command], Lease, list[_Caller[Command]]]]()
        for queue, lease in zip(queues, leases, strict=True):
            if lease is None:
                queue.on_lock_taken()
                self._end_or_continue(queue)
            else:
                queue.is_open = False
                locked.append((queue, lease, queue.take_batch()))
        if locked:
            await self._serve_locked(locked)

    async def _serve_locked(
        self, locked: Sequence[tuple[_WaitQueue[Command], Lease, list[_Caller[Command]]]]
    ) -> None:
        batches = [
            LockedBatch(queue.slot_id, lease, [caller.command for caller in callers])
            for queue, lease, callers in locked
        ]
        served: Sequence[Results | None]
        try:
            served = await locked[0][0].server.serve_each(batches)
        except Exception as error:  # every caller must be released, whatever the error
            for queue, _, callers in locked:
                for caller in callers:
                    caller.fail(error)
                self._end_or_continue(queue)
            return
        for (queue, _, callers), batch, results in zip(locked, batches, served, strict=True):
            if results is None:
                _start(self._serve_queue(queue, batch, callers), self._serve_tasks)
            else:
                queue.resolve(callers, results)
                self._end_or_continue(queue)

    def _end_or_continue(self, queue: _WaitQueue[Command]) -> None:
        """Remove a queue, or serve the callers who are left."""
        if queue.callers:
            _start(self._serve_queue(queue), self._serve_tasks)
        else:
            del self._queues[queue.slot_id]

    async def _serve_queue(
        self,
        queue: _WaitQueue[Command],
        batch: LockedBatch[Command] | None = None,
        callers: Sequence[_Caller[Command]] = (),
    ) -> None:
        """Serve a batch that is locked, then the callers of the queue until none is left."""
        try:
            if batch is not None:
                await _serve_alone(queue, batch, callers)
            while queue.callers:
                queue.is_open = queue.acquire_task is None
                try:
                    lease = await self._acquire(queue)
                except Exception as error:  # every caller must be released, whatever the error
                    queue.fail_all(error)
                    continue
                if lease is None:
                    queue.on_lock_taken()
                    continue
                queue.is_open = False
                callers = queue.take_batch(lease.next_arrival)
                batch = LockedBatch(queue.slot_id, lease, [caller.command for caller in callers])
                if lease.next_arrival is not None and queue.has_waiting_callers:
                    # Before the release: the next process must know who came before its callers.
                    self._start_acquiring(queue)
                await _serve_alone(queue, batch, callers)
        finally:
            del self._queues[queue.slot_id]

    async def _acquire(self, queue: _WaitQueue[Command]) -> Lease | None:
        """Acquire the lock of the slot; None if it takes too long or the queue is empty."""
        task = queue.acquire_task
        if task is None:
            if not queue.has_waiting_callers:
                return await self._locks.acquire(queue.slot_id)
            task = self._start_acquiring(queue)
        try:
            return await task
        except asyncio.CancelledError:
            return None
        finally:
            queue.acquire_task = None

    def _start_acquiring(self, queue: _WaitQueue[Command]) -> asyncio.Task[Lease | None]:
        """Join the line for the lock, at the place of the first caller of the queue."""
        # Later callers may wait longer than all who are in the queue now.
        acquire = self._locks.acquire(
            queue.slot_id,
            wait_s=MAX_WAIT_S,
            waited_s=asyncio.get_running_loop().time() - queue.callers[0].arrival,
            on_wait=queue.on_lock_taken,
        )
        queue.acquire_task = asyncio.create_task(acquire)
        queue.acquire_task.add_done_callback(ignore_unretrieved)
        return queue.acquire_task


async def _serve_alone(
    queue: _WaitQueue[Command], batch: LockedBatch[Command], callers: Sequence[_Caller[Command]]
) -> None:
    try:
        results = await queue.server.serve(batch)
    except Exception as error:  # every caller must be released, whatever the error
        if len(callers) > 1 and not is_unavailable(error):
            queue.isolate(callers)  # one of them is to blame, and the others are not
            return
        for caller in callers:
            caller.fail(error)
        return
    queue.resolve(callers, results)


def _start(serving: Coroutine[None, None, None], tasks: set[asyncio.Task[None]]) -> None:
    # In a context of its own: the batches must not inherit anything of their first caller.
    task = asyncio.create_task(serving, context=Context())
    tasks.add(task)
    task.add_done_callback(tasks.discard)
