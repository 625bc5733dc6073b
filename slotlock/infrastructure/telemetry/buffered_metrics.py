"""Counts in plain numbers, which are written to the metrics of the process each second.

With several server processes, prometheus_client writes each change into a mapped file. That takes
several microseconds, and counting takes a tenth of one.
"""

import asyncio
from typing import Protocol

from prometheus_client import Counter

FLUSH_INTERVAL_S = 1.0


class Buffer(Protocol):
    """Counts since the last flush."""

    def flush(self) -> None:
        """Add the counts to the metrics, and begin again."""


_buffers: list[Buffer] = []
_timer: asyncio.TimerHandle | None = None


def add_buffer(buffer: Buffer) -> None:
    """Flush this buffer from now on, for as long as the process runs."""
    _buffers.append(buffer)


def flush_soon() -> None:
    """Flush all buffers within a second. Each change of a buffer calls this."""
    global _timer
    if _timer is None:
        _timer = asyncio.get_running_loop().call_later(FLUSH_INTERVAL_S, flush)


def flush() -> None:
    """Write all counts to the metrics of the process."""
    global _timer
    if _timer is not None:
        _timer.cancel()
        _timer = None
    for buffer in _buffers:
        buffer.flush()


class BufferedCounter:
    """A counter with its labels, for what happens with each request."""

    __slots__ = ("_count", "_counter")

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._count = 0
        add_buffer(self)

    def inc(self) -> None:
        """Count one."""
        self._count += 1
        if _timer is None:
            flush_soon()

    def flush(self) -> None:
        """Add the counts to the counter."""
        if self._count:
            self._counter.inc(self._count)
            self._count = 0
