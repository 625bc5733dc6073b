"""Wakes a background task on a trigger, and for a full resync at a fixed interval."""

import asyncio
import contextlib


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
