"""The durations of operations, counted in plain numbers and written to the metrics each second.

With several server processes, prometheus_client writes each observation into a mapped file. That
takes several microseconds, and counting takes a fifth of one.
"""

import asyncio
import time
from bisect import bisect_left

from prometheus_client import Histogram
from prometheus_client.samples import Exemplar

from slotlock.infrastructure.telemetry import tracing

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
FLUSH_INTERVAL_S = 1.0

REQUEST_SECONDS = Histogram(
    "slotlock_request_seconds",
    "Time from a request to its response, by root field; of a subscription to its start",
    ["operation"],
    buckets=BUCKETS,
)


class _Durations:
    """The durations of one root field since the last flush."""

    __slots__ = ("_child", "counts", "exemplars", "sum_s")

    def __init__(self, operation: str) -> None:
        self._child = REQUEST_SECONDS.labels(operation)
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum_s = 0.0
        self.exemplars: dict[int, Exemplar] = {}

    def flush(self) -> None:
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
_flush_timer: asyncio.TimerHandle | None = None


def observe_request(operation: str, seconds: float) -> None:
    """Count an operation by its root field, which is a name of the schema."""
    durations = _durations.get(operation)
    if durations is None:
        durations = _durations[operation] = _Durations(operation)
    index = bisect_left(BUCKETS, seconds)
    durations.counts[index] += 1
    durations.sum_s += seconds
    if tracing.is_on() and (trace_id := tracing.sampled_trace_id()):
        durations.exemplars[index] = Exemplar({"trace_id": trace_id}, seconds, time.time())
    if _flush_timer is None:
        _start_timer()


def _start_timer() -> None:
    global _flush_timer
    _flush_timer = asyncio.get_running_loop().call_later(FLUSH_INTERVAL_S, flush)


def flush() -> None:
    """Write the counts to the metrics of the process."""
    global _flush_timer
    if _flush_timer is not None:
        _flush_timer.cancel()
        _flush_timer = None
    for durations in _durations.values():
        if durations.sum_s:
            durations.flush()
