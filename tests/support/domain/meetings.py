"""Meetings for tests of schedules."""

from datetime import UTC, datetime

from slotlock.domain.schedule.meetings import Meeting
from tests.support.domain.builders import HOUR

BERLIN = "Europe/Berlin"


def hour_from(start: str) -> Meeting:
    """Return a meeting of one hour from this start in UTC."""
    start_time = datetime.fromisoformat(start).replace(tzinfo=UTC)
    return Meeting(start_time, start_time + HOUR)
