"""Deliveries to many subscribers without a task switch for each of them."""

import asyncio
from collections import deque
from collections.abc import Callable

# About a millisecond of deliveries: other tasks wait no longer for their turn.
BATCH_SIZE = 100


class FanOutQueue:
    """Runs callbacks in order, BATCH_SIZE of them in each iteration of the event loop."""

    def __init__(self) -> None:
        self._callbacks: deque[Callable[[], None]] = deque()
        self._is_scheduled = False

    def add(self, callback: Callable[[], None]) -> None:
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
            for _ in range(min(BATCH_SIZE, len(self._callbacks))):
                take()()
        finally:  # a callback that fails must not delay the others forever
            if self._callbacks and not self._is_scheduled:
                self._schedule()
