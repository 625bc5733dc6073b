"""Queues of this process for callers who wait for a slot: they are served together, in order.

A queue acquires the lock of its slot once for all callers who wait by then. They are decided as
one batch in their order of arrival: one read, one write and one outcome each.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.booking.refusals import Locked
from slotlock.infrastructure.redis.locks.leases import Lease
from slotlock.infrastructure.redis.locks.locks import Locks

MAX_BATCH_SIZE = 200
# The longest wait that the API allows.
MAX_WAIT_S = 20.0

Command = TypeVar("Command")

# Executes commands under a lease, releases it, and returns one result per command.
ServeBatch = Callable[[Lease, Sequence[Command]], Awaitable[Sequence[CommandResult[object]]]]


@dataclass(slots=True, eq=False)
class _Waiter(Generic[Command]):
    command: Command
    deadline: float
    result: asyncio.Future[CommandResult[object]]

    def resolve(self, result: CommandResult[object]) -> None:
        if not self.result.done():
            self.result.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self.result.done():
            self.result.set_exception(error)


@dataclass(slots=True, eq=False)
class _WaitQueue(Generic[Command]):
    waiters: deque[_Waiter[Command]] = field(default_factory=deque)
    # Waits for the lock of the slot; cancelled once the queue is empty.
    acquire_task: asyncio.Task[Lease | None] | None = None

    def remove(self, waiter: _Waiter[Command]) -> bool:
        """Remove a waiter. Returns False if its batch has been taken out of the queue already."""
        if waiter not in self.waiters:
            return False
        self.waiters.remove(waiter)
        if not self.waiters and self.acquire_task is not None:
            self.acquire_task.cancel()
        return True

    def take(self, max_size: int) -> list[_Waiter[Command]]:
        """Take the first waiters out of the queue."""
        return [self.waiters.popleft() for _ in range(min(len(self.waiters), max_size))]


class WaitQueues(Generic[Command]):
    """The wait queues of this process, one per slot with waiting callers."""

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
        loop = asyncio.get_running_loop()
        waiter = _Waiter(command, loop.time() + wait_s, loop.create_future())
        queue = self._queues.get(slot_id)
        if queue is None:
            queue = self._queues[slot_id] = _WaitQueue()
            task = asyncio.create_task(self._serve_queue(slot_id, queue, serve_batch))
            self._serve_tasks.add(task)
            task.add_done_callback(self._serve_tasks.discard)
        queue.waiters.append(waiter)
        try:
            await asyncio.wait([waiter.result], timeout=wait_s)
        except asyncio.CancelledError:
            queue.remove(waiter)
            raise
        if not waiter.result.done() and queue.remove(waiter):
            return None
        return await waiter.result

    async def _serve_queue(
        self, slot_id: SlotId, queue: _WaitQueue[Command], serve_batch: ServeBatch[Command]
    ) -> None:
        try:
            while queue.waiters:
                try:
                    lease = await self._acquire(slot_id, queue)
                except Exception as error:  # every caller must be released, whatever the error
                    for waiter in queue.take(len(queue.waiters)):
                        waiter.fail(error)
                    continue
                if lease is not None:
                    await _serve_next_batch(queue, lease, serve_batch)
        finally:
            del self._queues[slot_id]

    async def _acquire(self, slot_id: SlotId, queue: _WaitQueue[Command]) -> Lease | None:
        """Wait for the lock of the slot; None if it takes too long or the queue is empty."""
        # Later callers may wait longer than all who are in the queue now.
        acquire = self._locks.acquire(slot_id, wait_s=MAX_WAIT_S)
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
    batch = queue.take(MAX_BATCH_SIZE)
    try:
        results = await serve_batch(lease, [waiter.command for waiter in batch])
    except Exception as error:  # every caller must be released, whatever the error
        for waiter in batch:
            waiter.fail(error)
        return
    # A caller whose command is still locked returns to the beginning of the queue.
    now = asyncio.get_running_loop().time()
    locked = []
    for waiter, result in zip(batch, results, strict=True):
        if isinstance(result.outcome, Locked) and now < waiter.deadline:
            locked.append(waiter)
        else:
            waiter.resolve(result)
    queue.waiters.extendleft(reversed(locked))
