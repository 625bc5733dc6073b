"""Queues of this process for the callers of a slot: they are served together, in order.

A queue acquires the lock of its slot once for all callers who have come by then. They are decided
as one batch in their order of arrival: one read, one write and one outcome each.

Queues that begin at the same time with callers who do not wait are served as a group: one round
trip acquires their locks, and their batches share one read and one write. A queue goes on alone if
callers wait for its lock, or if its batch cannot be served with others.

A caller who does not wait joins an acquisition that is under way, or begins one. The caller is
refused as soon as the lock turns out to be taken, and at once while it is known to be taken: by
another process, or by a batch of this one.

Callers who wait are served in order of arrival, whichever process they reach. A queue waits for the
lock at the place of its first caller, also while one of its batches has the lock. A batch ends
where the first caller of another process came, or may have come. Callers who reach several
processes at about the same time are served in alternation, some of each process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from itertools import islice
from operator import attrgetter
from time import monotonic
from typing import Generic, TypeVar

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult
from slotlock.infrastructure.redis.locks.lock_leases import LockLease
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.tasks import ignore_unretrieved
from slotlock.infrastructure.telemetry import tracing
from slotlock.services.caller_queue import (
    BatchServer,
    CallerQueue,
    LockedBatch,
    QueuedCaller,
    Results,
    Served,
    origins,
)

# The longest wait that the API allows.
MAX_WAIT_S = 20.0

MAX_GROUP_SIZE = 64
# While a group waits for Redis and MongoDB, later callers gather for the next. If one takes longer
# than this, for example because a server does not respond, another one starts.
GROUP_PATIENCE_S = 0.05
MAX_CONCURRENT_GROUPS = 4

Command = TypeVar("Command")


class CallerQueues(Generic[Command]):
    """The queues of this process, one per slot that has callers."""

    def __init__(self, locks: Locks, burst_quota: Callable[[SlotId], int]) -> None:
        self._locks = locks
        self._burst_quota = burst_quota
        self._queues: dict[SlotId, CallerQueue[Command]] = {}
        # The queues that no group has taken yet.
        self._new_queues: dict[SlotId, CallerQueue[Command]] = {}
        # The groups that are under way, and those of them that take long.
        self._group_count = self._slow_group_count = 0
        self._serve_tasks: set[asyncio.Task[None]] = set()
        # From the first caller on: each search for the running loop takes a system call.
        self._loop: asyncio.AbstractEventLoop | None = None

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
        elif waits:
            if self._new_queues.pop(slot_id, None) is not None:
                _start(self._serve_queue(queue), self._serve_tasks)
        elif not queue.is_open:
            return None
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        now = monotonic()
        future, origin = loop.create_future(), tracing.origin() if tracing.is_on else None
        caller = QueuedCaller(command, waits, now, now + wait_s, future, origin)
        queue.callers.append(caller)
        if waits:
            self._wait_for_lock(queue)
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
    ) -> CallerQueue[Command]:
        began_at = monotonic()
        queue = self._queues[slot_id] = CallerQueue(slot_id, server, began_at)
        if waits:  # waits for the lock without another round trip, and without a group
            _start(self._serve_queue(queue), self._serve_tasks)
            return queue
        self._new_queues[slot_id] = queue
        if self._group_count <= self._slow_group_count:
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
                slot_ids = tuple(islice(self._new_queues, MAX_GROUP_SIZE))
                with self._noticing_slowness():
                    await self._serve_group([self._new_queues.pop(each) for each in slot_ids])
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

    async def _serve_group(self, queues: Sequence[CallerQueue[Command]]) -> None:
        first_callers = [caller for queue in queues for caller in queue.callers]
        with tracing.shared_span("slotlock.batch", origins(first_callers)) as span:
            await self._lock_and_serve_group(queues, span)

    async def _lock_and_serve_group(
        self, queues: Sequence[CallerQueue[Command]], span: tracing.OpenSpan
    ) -> None:
        try:
            leases = await self._locks.acquire_each([queue.slot_id for queue in queues])
        except Exception as error:  # every caller must be released, whatever the error
            for queue in queues:
                queue.fail_all(error)
                self._end_or_continue(queue)
            return
        locked = list[tuple[CallerQueue[Command], LockLease, list[QueuedCaller[Command]]]]()
        for queue, lease in zip(queues, leases, strict=True):
            if lease is None:
                queue.on_lock_taken()
                self._end_or_continue(queue)
            else:
                locked.append((queue, lease, self._take_batch(queue, lease)))
        if locked:
            span.join(origins([caller for _, _, callers in locked for caller in callers]))
            await self._serve_locked(locked)

    async def _serve_locked(
        self, locked: Sequence[tuple[CallerQueue[Command], LockLease, list[QueuedCaller[Command]]]]
    ) -> None:
        batches = [
            LockedBatch(queue.slot_id, lease, list(map(attrgetter("command"), callers)))
            for queue, lease, callers in locked
        ]
        served: Sequence[Served]
        try:
            served = await locked[0][0].server.serve_group(batches)
        except Exception as error:  # every caller must be released, whatever the error
            served = [error] * len(batches)
        for (queue, _, callers), result in zip(locked, served, strict=True):
            if callable(result):
                _start(self._serve_queue(queue, result, callers), self._serve_tasks)
                continue
            queue.is_locked = False
            if isinstance(result, Exception):
                for caller in callers:
                    caller.fail(result)
            else:
                queue.resolve(callers, result)
            self._end_or_continue(queue)

    def _end_or_continue(self, queue: CallerQueue[Command]) -> None:
        """Remove a queue, or serve the callers who are left."""
        if queue.callers or queue.acquire_task is not None:
            _start(self._serve_queue(queue), self._serve_tasks)
        else:
            del self._queues[queue.slot_id]

    async def _serve_queue(
        self,
        queue: CallerQueue[Command],
        serve_batch: Callable[[], Awaitable[Results]] | None = None,
        callers: Sequence[QueuedCaller[Command]] = (),
    ) -> None:
        """Serve a batch that is locked, then the callers of the queue until none is left."""
        try:
            if serve_batch is not None:
                with tracing.shared_span("slotlock.batch", origins(callers)):
                    await queue.serve_alone(serve_batch, callers)
                queue.is_locked = False
            # A lock may have been acquired for callers who have left: it must be released, too.
            while queue.callers or queue.acquire_task is not None:
                queue.is_open = queue.acquire_task is None
                try:
                    lease = await self._acquire(queue)
                except Exception as error:  # every caller must be released, whatever the error
                    queue.fail_all(error)
                    continue
                if lease is None:
                    queue.on_lock_taken()
                    continue
                callers = self._take_batch(queue, lease)
                batch = LockedBatch(queue.slot_id, lease, [caller.command for caller in callers])
                with tracing.shared_span("slotlock.batch", origins(callers)):
                    await queue.serve_alone(partial(queue.server.serve, batch), callers)
                queue.is_locked = False
        finally:
            del self._queues[queue.slot_id]

    def _take_batch(
        self, queue: CallerQueue[Command], lease: LockLease
    ) -> list[QueuedCaller[Command]]:
        queue.is_open, queue.is_locked = False, True
        quota = self._burst_quota(queue.slot_id) if len(queue.callers) > 1 else 0
        callers = queue.take_batch(lease.next_arrival, quota)
        if queue.callers:
            self._wait_for_lock(queue)
        return callers

    def _wait_for_lock(self, queue: CallerQueue[Command]) -> None:
        """Wait for the next lock while a batch has it, if callers are left who wait.

        After the release, it would be too late: the next process has to know who came before its
        callers.
        """
        if queue.is_locked and queue.acquire_task is None and queue.has_waiting_callers:
            self._start_acquiring(queue)

    async def _acquire(self, queue: CallerQueue[Command]) -> LockLease | None:
        """Acquire the lock of the slot; None if it takes too long or the queue is empty."""
        task = queue.acquire_task
        if task is None:
            if not queue.has_waiting_callers:
                with tracing.shared_span("slotlock.wait", origins(queue.callers)):
                    return await self._locks.acquire(queue.slot_id)
            task = self._start_acquiring(queue)
        try:
            return await task
        except asyncio.CancelledError:
            return None
        finally:
            if queue.acquire_task is task:
                queue.acquire_task = None

    def _start_acquiring(self, queue: CallerQueue[Command]) -> asyncio.Task[LockLease | None]:
        """Wait for the lock, at the place of the first caller of the queue."""
        # Later callers may wait longer than all who are in the queue now.
        first = queue.callers[0]
        queue.acquire_task = asyncio.create_task(self._acquire_in_order(queue, first))
        queue.acquire_task.add_done_callback(ignore_unretrieved)
        return queue.acquire_task

    async def _acquire_in_order(
        self, queue: CallerQueue[Command], first: QueuedCaller[Command]
    ) -> LockLease | None:
        with tracing.shared_span("slotlock.wait", [first.origin]):
            return await self._locks.acquire(
                queue.slot_id,
                wait_s=MAX_WAIT_S,
                arrival=first.arrival,
                on_wait=queue.on_lock_taken,
                give_way_s=queue.give_way_s,
            )


def _start(serving: Coroutine[None, None, None], tasks: set[asyncio.Task[None]]) -> None:
    # In a context of its own: the batches must not inherit anything of their first caller.
    task = asyncio.create_task(serving, context=Context())
    tasks.add(task)
    task.add_done_callback(tasks.discard)
