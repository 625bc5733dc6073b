"""The durations of operations."""

import time
from bisect import bisect_left

from prometheus_client import Histogram
from prometheus_client.samples import Exemplar

from slotlock.infrastructure.telemetry import tracing
from slotlock.infrastructure.telemetry.buffered_metrics import add_buffer, flush_soon

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

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
    if tracing.is_on() and (trace_id := tracing.sampled_trace_id()):
        durations.exemplars[index] = Exemplar({"trace_id": trace_id}, seconds, time.time())
    flush_soon()
