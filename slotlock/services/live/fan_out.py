"""What the hubs share: their task, and deliveries in slices that let other tasks run."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NoReturn

from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.tasks import cancel_and_wait

# About half a millisecond of deliveries: a booking takes some thirty iterations of the event loop.
BATCH_SIZE = 25
# A task costs many times as much as a delivery without one.
WAKEUP_BATCH_SIZE = 5


class FanOutQueue:
    """Runs callbacks in order, `batch_size` of them in each iteration of the event loop."""

    def __init__(self, batch_size: int = BATCH_SIZE) -> None:
        self._batch_size = batch_size
        self._callbacks: deque[Callable[[], object]] = deque()
        self._is_scheduled = False

    def add(self, callback: Callable[[], object]) -> None:
        """Run a callback soon."""
        self._callbacks.append(callback)
        if not self._is_scheduled:
            self._schedule()

    def _schedule(self) -> None:
        self._is_scheduled = True
        asyncio.get_running_loop().call_soon(self._run_batch)

    def _run_batch(self) -> None:
        self._is_scheduled = False
        take = self._callbacks.popleft
        try:
            for _ in range(min(self._batch_size, len(self._callbacks))):
                take()()
        finally:  # a callback that fails must not delay the others forever
            if self._callbacks and not self._is_scheduled:
                self._schedule()


class Hub:
    """Passes on what happens, in a task of its own from its start on."""

    _task: asyncio.Task[None] | None = None

    def _repeat(
        self, step: Callable[[], Awaitable[object]], log: logging.Logger, failure: str
    ) -> None:
        """Begin to repeat a step, as `repeat_forever` does."""
        self._task = asyncio.create_task(repeat_forever(step, log, failure))

    async def stop(self) -> None:
        """End the task."""
        await cancel_and_wait(self._task)


async def repeat_forever(
    step: Callable[[], Awaitable[object]], log: logging.Logger, failure: str
) -> NoReturn:
    """Repeat a step, which waits for its work by itself, also after it has failed.

    The log names each failure, with a traceback unless MongoDB is unavailable.
    """
    while True:
        try:
            await step()
        except Exception as error:  # a hub must outlive an unavailable MongoDB
            log.warning(failure, exc_info=None if is_unavailable(error) else error)
