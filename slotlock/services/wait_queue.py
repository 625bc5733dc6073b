"""Serving instead of refusing: callers who wait for one slot are served together, in order.

All who wait in this process stand in one line a slot. Whoever serves it takes the lock once, looks
once, decides for each in order of arrival, writes once and answers each.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.refusals import Locked

MAX_BATCH_SIZE = 200
# The longest that anybody may wait, by the contract with clients.
MAX_WAIT_S = 20.0

# Waits for its turn for so many seconds, calls those who stand in front and serves them; the
# outcome of each, or None when its turn did not come.
ServeBatch = Callable[[float, Callable[[], list[Any]]], Coroutine[Any, Any, list[Any] | None]]


@dataclass(slots=True, eq=False)
class _Waiter:
    command: Any
    deadline: float
    result: asyncio.Future[Any]


@dataclass(slots=True, eq=False)
class _WaitQueue:
    waiters: deque[_Waiter] = field(default_factory=deque)
    # Waits for the line's turn, and is sent home when nobody stands there any more.
    batch_task: asyncio.Task[list[Any] | None] | None = None

    def remove(self, waiter: _Waiter) -> bool:
        """Whether the place was still in line, and is no longer."""
        if waiter not in self.waiters:
            return False
        self.waiters.remove(waiter)
        if not self.waiters and self.batch_task is not None:
            self.batch_task.cancel()
        return True


class WaitQueues:
    """The lines of this process, one for each slot that somebody waits for."""

    def __init__(self) -> None:
        self._queues: dict[SlotId, _WaitQueue] = {}
        self._serve_tasks: set[asyncio.Task[None]] = set()

    async def wait_for_turn(
        self, slot_id: SlotId, command: Any, wait_s: float, serve_batch: ServeBatch
    ) -> Any:
        """The outcome of a request in its turn; None when the turn does not come in time.

        A caller who leaves gives up their place, unless it was their turn already.
        """
        loop = asyncio.get_running_loop()
        place = _Waiter(command, loop.time() + wait_s, loop.create_future())
        line = self._queues.get(slot_id)
        if line is None:
            line = self._queues[slot_id] = _WaitQueue()
            serving = asyncio.create_task(self._serve_queue(slot_id, line, serve_batch))
            self._serve_tasks.add(serving)
            serving.add_done_callback(self._serve_tasks.discard)
        line.waiters.append(place)
        try:
            await asyncio.wait([place.result], timeout=wait_s)
        except asyncio.CancelledError:
            line.remove(place)
            raise
        if not place.result.done() and line.remove(place):
            return None
        return await place.result

    async def _serve_queue(
        self, slot_id: SlotId, queue: _WaitQueue, serve_batch: ServeBatch
    ) -> None:
        try:
            while queue.waiters:
                await self._serve_next_batch(queue, serve_batch)
        finally:
            del self._queues[slot_id]

    async def _serve_next_batch(self, queue: _WaitQueue, serve_batch: ServeBatch) -> None:
        called: list[_Waiter] = []

        def take_commands() -> list[Any]:
            queue.batch_task = None
            called.extend(
                queue.waiters.popleft() for _ in range(min(len(queue.waiters), MAX_BATCH_SIZE))
            )
            return [place.command for place in called]

        # Whoever comes later may be more patient than all who stand here now.
        queue.batch_task = asyncio.create_task(serve_batch(MAX_WAIT_S, take_commands))
        try:
            outcomes = await queue.batch_task
        except asyncio.CancelledError:
            outcomes = None  # sent home; nobody was called
        except Exception as error:  # whatever it is, nobody may be left waiting for an answer
            for place in called or _take_all(queue.waiters):
                _resolve(place, error)
            return
        finally:
            queue.batch_task = None
        self._resolve_all(queue, called, outcomes)

    def _resolve_all(
        self, queue: _WaitQueue, waiters: list[_Waiter], outcomes: list[Any] | None
    ) -> None:
        # Whose turn did not come is told so outside, when their own time is over.
        again, now = [], asyncio.get_running_loop().time()
        for place, outcome in zip(waiters, outcomes or (), strict=False):
            if isinstance(outcome, Locked) and now < place.deadline:
                again.append(place)
            else:
                _resolve(place, outcome)
        queue.waiters.extendleft(reversed(again))


def _take_all(waiters: deque[_Waiter]) -> list[_Waiter]:
    places = list(waiters)
    waiters.clear()
    return places


def _resolve(waiter: _Waiter, outcome: Any) -> None:
    if waiter.result.done():
        return
    if isinstance(outcome, Exception):
        waiter.result.set_exception(outcome)
    else:
        waiter.result.set_result(outcome)
