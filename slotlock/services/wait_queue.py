"""Queues of this process for the callers of a slot: they are served together, in order.

A queue acquires the lock of its slot once for all callers who have come by then. They are decided
as one batch in their order of arrival: one read, one write and one outcome each.

A caller who does not wait joins an acquisition that is under way, or begins one. The caller is
refused as soon as the lock turns out to be taken, and at once while it is known to be taken: by
another process, or by a batch of this one.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.refusals import Locked
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.redis.locks.leases import Lease
from slotlock.infrastructure.redis.locks.locks import Locks

MAX_BATCH_SIZE = 200
# The longest wait that the API allows.
MAX_WAIT_S = 20.0

Command = TypeVar("Command")

# Executes commands under a lease, releases it, and returns one result per command.
ServeBatch = Callable[[Lease, Sequence[Command]], Awaitable[Sequence[CommandResult[object]]]]


@dataclass(slots=True, eq=False)
class _Caller(Generic[Command]):
    """A command with the future of its result, which is None if its batch did not begin."""

    command: Command
    waits: bool
    deadline: float  # time of the event loop
    result: asyncio.Future[CommandResult[object] | None]

    def resolve(self, result: CommandResult[object] | None) -> None:
        if not self.result.done():
            self.result.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self.result.done():
            self.result.set_exception(error)


@dataclass(slots=True, eq=False)
class _WaitQueue(Generic[Command]):
    callers: deque[_Caller[Command]] = field(default_factory=deque)
    # Whether the lock may still turn out to be free, so that any caller may join.
    is_open: bool = True
    # Waits for the lock of the slot; cancelled once the queue is empty.
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

    def _stop_if_empty(self) -> None:
        if not self.callers and self.acquire_task is not None:
            self.acquire_task.cancel()

    def take_batch(self) -> list[_Caller[Command]]:
        """Take the first callers out of the queue."""
        if self.isolated_count:
            self.isolated_count -= 1
            return [self.callers.popleft()] if self.callers else []
        return [self.callers.popleft() for _ in range(min(len(self.callers), MAX_BATCH_SIZE))]

    def isolate(self, batch: Sequence[_Caller[Command]]) -> None:
        """Put a batch that failed back to the beginning, to serve each of its callers alone."""
        remaining = [caller for caller in batch if not caller.result.done()]
        self.callers.extendleft(reversed(remaining))
        self.isolated_count = len(remaining)

    def fail_all(self, error: Exception) -> None:
        """Raise the error to every caller in the queue."""
        while self.callers:
            self.callers.popleft().fail(error)


class WaitQueues(Generic[Command]):
    """The queues of this process, one per slot that has callers."""

    def __init__(self, locks: Locks) -> None:
        self._locks = locks
        self._queues: dict[SlotId, _WaitQueue[Command]] = {}
        self._serve_tasks: set[asyncio.Task[None]] = set()

    async def submit(
        self, slot_id: SlotId, command: Command, wait_s: float, serve_batch: ServeBatch[Command]
    ) -> CommandResult[object] | None:
        """Return the result of a command, or None if its batch does not begin in time.

        A caller that is cancelled leaves the queue, unless its batch has begun.
        """
        waits = wait_s > 0
        queue = self._queues.get(slot_id)
        if queue is None:
            queue = self._start_queue(slot_id, serve_batch)
        elif not (waits or queue.is_open):
            return None
        loop = asyncio.get_running_loop()
        caller = _Caller(command, waits, loop.time() + wait_s, loop.create_future())
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
        self, slot_id: SlotId, serve_batch: ServeBatch[Command]
    ) -> _WaitQueue[Command]:
        queue = self._queues[slot_id] = _WaitQueue()
        # In a context of its own: the batches must not inherit anything of their first caller.
        serving = self._serve_queue(slot_id, queue, serve_batch)
        task = asyncio.create_task(serving, context=Context())
        self._serve_tasks.add(task)
        task.add_done_callback(self._serve_tasks.discard)
        return queue

    async def _serve_queue(
        self, slot_id: SlotId, queue: _WaitQueue[Command], serve_batch: ServeBatch[Command]
    ) -> None:
        try:
            while queue.callers:
                queue.is_open = True
                try:
                    lease = await self._acquire(slot_id, queue)
                except Exception as error:  # every caller must be released, whatever the error
                    queue.fail_all(error)
                    continue
                if lease is None:
                    queue.on_lock_taken()
                else:
                    queue.is_open = False
                    await _serve_next_batch(queue, lease, serve_batch)
        finally:
            del self._queues[slot_id]

    async def _acquire(self, slot_id: SlotId, queue: _WaitQueue[Command]) -> Lease | None:
        """Acquire the lock of the slot; None if it takes too long or the queue is empty."""
        if not any(caller.waits for caller in queue.callers):
            return await self._locks.acquire(slot_id)
        # Later callers may wait longer than all who are in the queue now.
        acquire = self._locks.acquire(slot_id, wait_s=MAX_WAIT_S, on_wait=queue.on_lock_taken)
        queue.acquire_task = asyncio.create_task(acquire)
        try:
            return await queue.acquire_task
        except asyncio.CancelledError:
            return None
        finally:
            queue.acquire_task = None


async def _serve_next_batch(
    queue: _WaitQueue[Command], lease: Lease, serve_batch: ServeBatch[Command]
) -> None:
    batch = queue.take_batch()
    try:
        results = await serve_batch(lease, [caller.command for caller in batch])
    except Exception as error:  # every caller must be released, whatever the error
        if len(batch) > 1 and not is_unavailable(error):
            queue.isolate(batch)  # one of them is to blame, and the others are not
            return
        for caller in batch:
            caller.fail(error)
        return
    # A caller whose command is still locked returns to the beginning of the queue.
    now = asyncio.get_running_loop().time()
    locked = []
    for caller, result in zip(batch, results, strict=True):
        if isinstance(result.outcome, Locked) and now < caller.deadline:
            locked.append(caller)
        else:
            caller.resolve(result)
    queue.callers.extendleft(reversed(locked))
