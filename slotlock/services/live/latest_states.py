"""The states that a slow reader has not read yet: at most one for each thing, the latest."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Generic, TypeVar

from slotlock.services.live.fan_out import FanOutQueue

Key = TypeVar("Key")
State = TypeVar("State")


class LatestStates(Generic[Key, State]):
    """The states for one reader, by what they are about."""

    __slots__ = ("_latest", "_on_update", "_pending", "_wakeups", "is_over")

    def __init__(self, wakeups: FanOutQueue) -> None:
        # The latest state of each key. All readers share it, so that it costs no memory.
        self._latest: dict[Key, State] = {}
        # The keys whose latest state was not read yet; the state that waits longest is first.
        self._pending: list[Key] = []
        self._on_update: Callable[[], None] | None = None
        # Wakes the tasks of all readers, a few at a time.
        self._wakeups = wakeups
        # Whether nothing follows what is pending.
        self.is_over = False

    def put(self, key: Key, state: State) -> None:
        """Queue a state in place of an earlier one that was not read."""
        pending = self._pending
        self._latest[key] = state
        if key not in pending:
            pending.append(key)
            if len(pending) == 1 and self._on_update is not None:
                self._on_update()

    @property
    def has_pending(self) -> bool:
        """Whether there is a state that was not read yet."""
        return bool(self._pending)

    def take(self) -> State:
        """Return the state that waits longest; call it only while one is pending."""
        return self._latest[self._pending.pop(0)]

    def on_update(self, callback: Callable[[], None]) -> None:
        """Call back when a state is pending after none was, in place of an earlier callback."""
        self._on_update = callback
        if self.has_pending:
            callback()

    async def states(self) -> AsyncGenerator[State, None]:
        """Yield states until it is over. States that a slow reader missed are left out."""
        updated = asyncio.Event()
        self.on_update(partial(self._wakeups.add, updated.set))
        while True:
            await updated.wait()
            while self._pending:
                yield self.take()
            if self.is_over:
                return
            updated.clear()
