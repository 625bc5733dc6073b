"""The spans of time under which an index finds what is in progress at an instant.

What lasts from one time to another touches at most two spans of a size that is not shorter than it
lasts. Under these it is stored. An instant lies in one span of each size, so an index finds what is
in progress by a few values, whatever is over or still to come.
"""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
INSTANT = timedelta(milliseconds=1)
# In days: an hour's meeting, a weekend, a few weeks, a term, a school year, and the rest.
SPAN_SIZES = (1, 8, 64, 512, 1 << 24)
# Above the number of days in ten thousand years.
_SIZE_STEP = 10_000_000


def spans_of(start: datetime, end: datetime) -> list[int]:
    """Return the one or two spans of what lasts from `start` until `end`, exclusive."""
    first, last = _day_of(start), _day_of(max(start, end - INSTANT))
    index, size = next(
        (index, size) for index, size in enumerate(SPAN_SIZES) if last // size - first // size <= 1
    )
    return sorted({_span(index, first // size), _span(index, last // size)})


def spans_at(instant: datetime) -> list[int]:
    """Return the span of each size in which an instant lies."""
    day = _day_of(instant)
    return [_span(index, day // size) for index, size in enumerate(SPAN_SIZES)]


def _day_of(instant: datetime) -> int:
    return (instant - EPOCH) // DAY


def _span(size_index: int, number: int) -> int:
    return size_index * _SIZE_STEP + number
