"""The clock of all decisions: MongoDB's time, whatever the clocks of the hosts show.

Once a second a process asks the primary for its time (`hello`). In between, the monotonic clock of
the host counts on, so that a host clock that is wrong or stepped changes nothing.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from time import monotonic, time

from pymongo.errors import NotPrimaryError, PyMongoError

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.tasks import cancel_and_wait

log = logging.getLogger("slotlock.clock")

MEASURE_EVERY_S = 1.0
# The best of so many measurements counts. More would add the drift of the host's monotonic clock.
MAX_SAMPLES = 8
# MongoDB truncates its time to milliseconds.
RESOLUTION_S = 0.001
# Oscillators of servers drift by less than 100 ppm; NTP slews a monotonic clock by up to 500 ppm.
MAX_DRIFT = 0.0005
DRIFT_TOLERANCE_S = MAX_DRIFT * MAX_SAMPLES * MEASURE_EVERY_S
# A step back of MongoDB's clock below this one is drift, which is not worth a line in the log.
MIN_LOGGED_STEP_S = 0.1


@value_object
class ClockSample:
    """MongoDB's time in seconds, read between two instants of the monotonic clock of the host."""

    server_s: float
    sent_s: float
    received_s: float

    @property
    def earliest_offset_s(self) -> float:
        """The least that MongoDB's time can be ahead of the monotonic clock."""
        return self.server_s - self.received_s

    @property
    def latest_offset_s(self) -> float:
        """The most that MongoDB's time can be ahead of the monotonic clock."""
        return self.server_s + RESOLUTION_S - self.sent_s

    @property
    def uncertainty_s(self) -> float:
        """The round trip and the resolution: the time is exact to this."""
        return self.latest_offset_s - self.earliest_offset_s

    def agrees_with(self, other: "ClockSample") -> bool:
        """Return whether one clock can have given both times."""
        return (
            self.earliest_offset_s <= other.latest_offset_s + DRIFT_TOLERANCE_S
            and other.earliest_offset_s <= self.latest_offset_s + DRIFT_TOLERANCE_S
        )


async def measure(database: Database) -> ClockSample:
    """Ask the primary for its time.

    Raises:
        PyMongoError: no primary responded.
    """
    sent_s = monotonic()
    hello = await database.command("hello")
    received_s = monotonic()
    return ClockSample(primary_time_s(hello), sent_s, received_s)


def primary_time_s(hello: Document) -> float:
    """Return the time in seconds of the primary, or of the mongos, that sent this `hello`.

    Raises:
        NotPrimaryError: another member sent it, for example a primary that has just stepped down.
    """
    if not hello.get("isWritablePrimary") and hello.get("msg") != "isdbgrid":
        raise NotPrimaryError("the time came from a server that is not the primary")
    # Commands on the database decode times without a zone, whatever the collections do.
    time_read: datetime = hello["localTime"]
    return time_read.replace(tzinfo=UTC).timestamp()


class MongoClock:
    """MongoDB's time at the earliest, which never goes back.

    The time is behind MongoDB's by at most the round trip of the best sample. It is not ahead of
    it, except by the drift since that sample: no campaign opens early and no hold ends early,
    however long the round trips are. If MongoDB's own clock goes back, or a primary with a slower
    clock is elected, the time stands still, and is ahead until that clock has caught up.
    """

    def __init__(self, first: ClockSample, max_skew_s: float) -> None:
        self._max_skew_s = max_skew_s
        self._samples: deque[ClockSample] = deque(maxlen=MAX_SAMPLES)
        self._offset_s = first.earliest_offset_s
        self._latest_ms = 0
        self._reported = False, False
        self.add(first)

    def now(self) -> datetime:
        """Return the time in milliseconds, which is what MongoDB stores."""
        now_ms = int((monotonic() + self._offset_s) * 1000)
        if now_ms < self._latest_ms:
            now_ms = self._latest_ms
        else:
            self._latest_ms = now_ms
        return datetime.fromtimestamp(now_ms / 1000, UTC)

    @property
    def skew_s(self) -> float:
        """How far the clock of this host is ahead of MongoDB's, in seconds."""
        return time() - (monotonic() + self._offset_s)

    @property
    def error_s(self) -> float:
        """How far the time may be behind MongoDB's, in seconds. It grows without measurements."""
        best = self._best_sample()
        return best.uncertainty_s + MAX_DRIFT * (monotonic() - best.received_s)

    def add(self, sample: ClockSample) -> None:
        """Take a measurement into account."""
        # After a failover another clock counts, or MongoDB's clock was set.
        is_other = bool(self._samples) and not sample.agrees_with(self._best_sample())
        if is_other:
            self._samples.clear()
        self._samples.append(sample)
        offset_s = self._best_sample().earliest_offset_s
        # While round trips are long, the offset of one clock is merely less exact.
        if is_other and offset_s < self._offset_s - MIN_LOGGED_STEP_S:
            step_s = self._offset_s - offset_s
            log.warning(
                "MongoDB's clock went back by %.1f s: time stands still until it caught up", step_s
            )
        self._offset_s = offset_s
        self.warn_of_excess()

    def warn_of_excess(self) -> None:
        """Log each time that a bound begins or ends to be exceeded."""
        skew_s, error_s = self.skew_s, self.error_s
        exceeded = abs(skew_s) > self._max_skew_s, error_s > self._max_skew_s
        if exceeded != self._reported:
            self._reported = exceeded
            is_skewed, is_uncertain = exceeded
            log.warning(
                "the clock of this host differs from MongoDB's by %+.1f s%s; decisions use "
                "MongoDB's time, which is known to %.3f s%s",
                skew_s,
                " (too much: check NTP)" if is_skewed else "",
                error_s,
                " (too little: campaigns open late by up to this time)" if is_uncertain else "",
            )

    def _best_sample(self) -> ClockSample:
        return min(self._samples, key=lambda sample: sample.uncertainty_s)


@asynccontextmanager
async def mongo_clock(database: Database, max_skew_s: float) -> AsyncIterator[MongoClock]:
    """Measure MongoDB's time, then run its clock and measure again every second.

    Raises:
        PyMongoError: no primary responded to the first measurement.
    """
    clock = MongoClock(await measure(database), max_skew_s)
    measuring = asyncio.create_task(_measure_repeatedly(database, clock))
    try:
        yield clock
    finally:
        await cancel_and_wait(measuring)


async def _measure_repeatedly(database: Database, clock: MongoClock) -> None:
    while True:
        await asyncio.sleep(MEASURE_EVERY_S)
        try:
            clock.add(await measure(database))
        except PyMongoError:
            clock.warn_of_excess()
