"""When to look again: as soon as a word comes, and every few seconds though none did."""

import asyncio
import contextlib


class RefreshTimer:
    """Words of what changed can be lost, so that everything is looked at now and then (healed)."""

    def __init__(self, resync_every_s: float) -> None:
        self._resync_every_s = resync_every_s
        self._triggered = asyncio.Event()
        self._resync_at: float | None = None

    def trigger(self) -> None:
        """Let whoever waits look soon."""
        self._triggered.set()

    async def wait(self) -> bool:
        """Wait for a word, or until it is time; whether it is time to look at everything."""
        loop = asyncio.get_running_loop()
        if self._resync_at is None:
            self._resync_at = loop.time() + self._resync_every_s
        # Not wait_for, which swallows a cancel that comes together with a word (Python 3.11).
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._resync_at):
                await self._triggered.wait()
        self._triggered.clear()
        if loop.time() < self._resync_at:
            return False
        self._resync_at = loop.time() + self._resync_every_s
        return True
