"""Locks inside one process, used while Redis is unavailable."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

LocalGrant = asyncio.Future[bool]


class Wait(NamedTuple):
    """Since when and until when a caller waits for its locks, and what to call once it has to wait.

    `arrival` and `deadline` are times of the event loop. Waiters who came at most `give_way_s`
    seconds later go first, except inside one process. `on_wait` may be called once for each lock.
    """

    arrival: float
    deadline: float
    on_wait: Callable[[], object]
    give_way_s: float = 0.0


class InProcessLocks:
    """Grants locks in order of arrival to the callers of one process."""

    def __init__(self) -> None:
        # The waiters of each lock that is held, the first one first.
        self._waiters: dict[str, deque[LocalGrant]] = {}

    async def acquire(self, names: tuple[str, ...], wait: Wait) -> bool:
        """Acquire all locks one after the other, or none, by the deadline."""
        acquired: list[str] = []
        try:
            for name in names:
                if not await self._acquire_one(name, wait):
                    break
                acquired.append(name)
        finally:
            if len(acquired) < len(names):
                self.release(tuple(acquired))
        return len(acquired) == len(names)

    async def _acquire_one(self, name: str, wait: Wait) -> bool:
        if name not in self._waiters:
            self._waiters[name] = deque()
            return True
        loop = asyncio.get_running_loop()
        if wait.deadline <= loop.time():
            return False
        wait.on_wait()
        grant: LocalGrant = loop.create_future()
        self._waiters[name].append(grant)
        timer = loop.call_at(wait.deadline, _time_out, grant)
        try:
            return await grant
        except asyncio.CancelledError:
            # The lock may have been granted in the same round of the event loop.
            if not grant.cancelled() and grant.result():
                self.release((name,))
            raise
        finally:
            timer.cancel()

    def release(self, names: tuple[str, ...]) -> None:
        """Grant each lock to its first waiter that has not left."""
        for name in names:
            waiters = self._waiters.get(name, deque())
            while waiters and waiters[0].done():
                waiters.popleft()
            if waiters:
                waiters.popleft().set_result(True)
            else:
                self._waiters.pop(name, None)


def _time_out(grant: LocalGrant) -> None:
    if not grant.done():
        grant.set_result(False)
