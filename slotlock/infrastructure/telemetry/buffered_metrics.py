"""Counts in plain numbers, which are written to the metrics of the process each second.

With several server processes, prometheus_client writes each change into a mapped file. That takes
several microseconds, and counting takes a tenth of one.
"""

import asyncio
import time
from bisect import bisect_left
from typing import Protocol

from prometheus_client import Counter, Histogram
from prometheus_client.samples import Exemplar

from slotlock.infrastructure.telemetry import tracing

FLUSH_INTERVAL_S = 1.0
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

REQUEST_SECONDS = Histogram(
    "slotlock_request_seconds",
    "Time from a request to its response, by root field; of a subscription to its start",
    ["operation"],
    buckets=BUCKETS,
)


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


class _Durations:
    """The durations of one root field since the last flush."""

    __slots__ = ("_child", "counts", "exemplars", "sum_s")

    def __init__(self, operation: str) -> None:
        self._child = REQUEST_SECONDS.labels(operation)
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum_s = 0.0
        self.exemplars: dict[int, Exemplar] = {}
        add_buffer(self)

    def flush(self) -> None:
        """Add the durations to the histogram."""
        if not self.sum_s:
            return
        # prometheus_client can only observe values one by one, so these are its private counters.
        # The test of this module fails if a new version changes them.
        for index, count in enumerate(self.counts):
            if count:
                self._child._buckets[index].inc(count)
        self._child._sum.inc(self.sum_s)
        for index, exemplar in self.exemplars.items():
            self._child._buckets[index].set_exemplar(exemplar)
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum_s = 0.0
        self.exemplars = {}


_durations: dict[str, _Durations] = {}


def observe_request(operation: str, seconds: float) -> None:
    """Count an operation by its root field, which is a name of the schema."""
    durations = _durations.get(operation)
    if durations is None:
        durations = _durations[operation] = _Durations(operation)
    index = bisect_left(BUCKETS, seconds)
    durations.counts[index] += 1
    durations.sum_s += seconds
    if tracing.is_on and (trace_id := tracing.sampled_trace_id()):
        durations.exemplars[index] = Exemplar({"trace_id": trace_id}, seconds, time.time())
    if _timer is None:
        flush_soon()
