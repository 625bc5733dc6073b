"""Background tasks: their end, their errors, what wakes them, and what they try again later."""

import asyncio
import contextlib
from datetime import datetime, timedelta
from typing import TypeVar

# A task that still runs this long after it was cancelled is cancelled again.
CANCEL_AGAIN_S = 1.0
# After its first failure, an item waits for this time, and after each other one twice as long.
FIRST_DELAY = timedelta(seconds=5)
MAX_DELAY = timedelta(hours=1)

Result = TypeVar("Result")


async def cancel_and_wait(
    task: asyncio.Task[Result] | None, patience_s: float = CANCEL_AGAIN_S
) -> None:
    """Cancel a task, if there is one, and wait until it has ended, whatever its result.

    A library may swallow a cancellation, for example `asyncio.wait_for` of Python 3.11 does if the
    awaited result arrives at the same moment. Therefore a task that goes on is cancelled again each
    time `patience_s` have passed.
    """
    while task is not None and not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=patience_s)


def ignore_unretrieved(future: asyncio.Future[Result]) -> None:
    """Mark the error of a future as retrieved, or asyncio would log it; a done callback."""
    if not future.cancelled():
        future.exception()


async def wait_for_event(event: asyncio.Event, timeout_s: float) -> None:
    """Wait for an event, at most this many seconds."""
    # Not wait_for, which swallows a cancellation that arrives with the event (Python 3.11).
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()


class Signal:
    """Wakes the tasks of this process that wait for something to do.

    A task gets `next` before it looks for work, and waits for it if there is none. So it misses
    nothing that comes while it looks.
    """

    def __init__(self) -> None:
        self.next = asyncio.Event()

    def send(self) -> None:
        """Wake all tasks that wait."""
        event, self.next = self.next, asyncio.Event()
        event.set()


class RefreshTimer:
    """Triggers may be lost, so the waiting task resyncs everything at the interval as well."""

    def __init__(self, resync_every_s: float) -> None:
        self._resync_every_s = resync_every_s
        self._triggered = asyncio.Event()
        self._resync_at: float | None = None

    def trigger(self) -> None:
        """Wake the waiting task."""
        self._triggered.set()

    async def wait(self) -> bool:
        """Wait for a trigger or for the next resync. Returns whether a resync is due."""
        loop = asyncio.get_running_loop()
        if self._resync_at is None:
            self._resync_at = loop.time() + self._resync_every_s
        # Not wait_for, which swallows a cancellation that arrives with a trigger (Python 3.11).
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._resync_at):
                await self._triggered.wait()
        self._triggered.clear()
        if loop.time() < self._resync_at:
            return False
        self._resync_at = loop.time() + self._resync_every_s
        return True


class FailingItems:
    """Items with which a task cannot go on, and when it tries each of them again."""

    def __init__(self) -> None:
        self._waits: dict[str, tuple[datetime, timedelta]] = {}

    def waiting(self, now: datetime) -> list[str]:
        """Return the items that are not to be tried yet."""
        return [item for item, (until, _) in self._waits.items() if now < until]

    def add(self, item: str, now: datetime) -> timedelta:
        """Record that an item failed, and return how long it waits."""
        _, last = self._waits.get(item, (now, timedelta()))
        delay = min(max(2 * last, FIRST_DELAY), MAX_DELAY)
        # Those that were due long ago did not fail again.
        self._waits = {
            each: wait for each, wait in self._waits.items() if now < wait[0] + MAX_DELAY
        }
        self._waits[item] = now + delay, delay
        return delay

    def remove(self, item: str) -> None:
        """Record that an item works."""
        self._waits.pop(item, None)
