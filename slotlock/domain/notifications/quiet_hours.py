"""Quiet hours: the time of the day in which nobody gets reminders and announcements."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from slotlock.domain.schedule.zones import to_instant
from slotlock.domain.shared.value_object import value_object

_SPAN = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
# What has to go out before quiet hours begin goes out so much earlier.
HEAD_START = timedelta(minutes=15)
DAY = timedelta(days=1)
# By which a mail moves at most: a day with an hour more, and the head start.
MAX_SHIFT = timedelta(hours=26)


@value_object
class QuietHours:
    """The hours from `begin` to `end`, such as 22:00 to 07:00, by the clocks of a zone."""

    begin: time
    end: time
    zone: ZoneInfo

    def in_zone(self, time_zone: str) -> "QuietHours":
        """Return these hours by the clocks of another zone."""
        return replace(self, zone=ZoneInfo(time_zone))

    def end_at(self, instant: datetime) -> datetime | None:
        """Return when the quiet hours around this time end; None outside of them."""
        return next((end for _, end in self._around(instant)), None)

    def delayed(self, instant: datetime, deadline: datetime | None) -> datetime | None:
        """Return until when a mail of this time waits; None if it does not.

        It never waits until the deadline.
        """
        end = self.end_at(instant)
        return None if end is None or (deadline is not None and end >= deadline) else end

    def planned(self, instant: datetime, deadline: datetime) -> datetime:
        """Return when a mail that is planned for this time is sent.

        That is the end of the quiet hours around it, or before their begin if the deadline comes
        first.
        """
        for begin, end in self._around(instant):
            return end if end < deadline else begin - HEAD_START
        return instant

    def _around(self, instant: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield the quiet hours in which a time lies, by their begin and end, if there are any."""
        today = instant.astimezone(self.zone).date()
        for day in (today - DAY, today):
            last_day = day if self.begin < self.end else day + DAY
            begin = to_instant(datetime.combine(day, self.begin), self.zone)
            # The later one of an hour that occurs twice.
            last = datetime.combine(last_day, self.end, self.zone)
            end = max(last.replace(fold=fold).astimezone(UTC) for fold in (0, 1))
            if begin <= instant < end:
                yield begin, end


def parse_quiet_hours(text: str, zone: ZoneInfo) -> QuietHours:
    """Return the quiet hours of `22:00-07:00`. Raises: ValueError."""
    found = _SPAN.fullmatch(text)
    if found is None or found.group(1, 2) == found.group(3, 4):
        raise ValueError("is not like 22:00-07:00")
    hours = [int(number) for number in found.groups()]
    return QuietHours(time(hours[0], hours[1]), time(hours[2], hours[3]), zone)
