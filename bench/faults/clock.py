"""The clocks of the host that runs a campaign."""

import time

READINGS = 5


def clock_offset_s() -> float:
    """Return what to add to the monotonic clock for the Unix time.

    The process can lose the processor between two readings: the closest readings count.
    """
    return min(_read_both() for _ in range(READINGS))[1]


def _read_both() -> tuple[float, float]:
    """Return how long the readings took, and the offset."""
    before, now, after = time.monotonic(), time.time(), time.monotonic()
    return after - before, now - before
