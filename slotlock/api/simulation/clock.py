"""Seconds since the opening, by a clock that nobody sets."""

import asyncio
import time
from datetime import UTC, datetime


class Clock:
    """Negative before the opening, which is now until it is set."""

    def __init__(self) -> None:
        self._opens_at = time.perf_counter()

    def open_at(self, at: datetime) -> None:
        """Count from this instant."""
        self._opens_at = time.perf_counter() + (at - datetime.now(UTC)).total_seconds()

    def now(self) -> float:
        """Seconds since the opening."""
        return time.perf_counter() - self._opens_at

    async def wait_for_opening(self) -> None:
        """Wait for it."""
        await asyncio.sleep(max(-self.now(), 0.0))
