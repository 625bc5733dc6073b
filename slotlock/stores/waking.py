"""When to look again: as soon as a word comes, and every few seconds though none did."""

import asyncio
import contextlib


class Wake:
    """Words of what changed can be lost, so that everything is looked at now and then (healed)."""

    def __init__(self, heal_every_s: float) -> None:
        self._heal_every_s = heal_every_s
        self._word = asyncio.Event()
        self._heal_at: float | None = None

    def set(self) -> None:
        """Let whoever waits look soon."""
        self._word.set()

    async def wait(self) -> bool:
        """Wait for a word, or until it is time; whether it is time to look at everything."""
        loop = asyncio.get_running_loop()
        if self._heal_at is None:
            self._heal_at = loop.time() + self._heal_every_s
        # Not wait_for, which swallows a cancel that comes together with a word (Python 3.11).
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(self._heal_at):
                await self._word.wait()
        self._word.clear()
        if loop.time() < self._heal_at:
            return False
        self._heal_at = loop.time() + self._heal_every_s
        return True
