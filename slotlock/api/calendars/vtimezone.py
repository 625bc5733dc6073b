"""The VTIMEZONE of a zone for some years.

Not icalendar's own `add_missing_timezones` (7.3): it writes the onset of summer time by the new
clock, which is an hour late (RFC 5545, 3.6.5, wants the old one), in both hemispheres.
"""

from collections import defaultdict
from functools import lru_cache

from icalendar import Timezone, TimezoneDaylight, TimezoneStandard, vRecur

from slotlock.domain.schedule.zone_transitions import UtcOffsetChange, clock_changes, yearly_rule
from slotlock.domain.schedule.zones import find_zone

# So many years tell the last Sunday of a month from the fourth.
MIN_YEARS = 10
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


@lru_cache(maxsize=1_000)
def build_vtimezone(name: str, first_year: int, last_year: int) -> Timezone | None:
    """The zone with all changes of its clocks in these years; None when there is no such zone."""
    zone = find_zone(name)
    if zone is None:
        return None
    made = Timezone()
    made.add("TZID", name)
    last_year = max(last_year, first_year + MIN_YEARS)
    first, *changes = clock_changes(zone, first_year - 1, last_year)
    made.add_component(_observance([first], last_year))
    alike: dict[object, list[UtcOffsetChange]] = defaultdict(list)
    for change in changes:
        alike[change.offset_before, change.offset_after, change.abbreviation].append(change)
    for same in alike.values():
        made.add_component(_observance(same, last_year))
    return made


def _observance(
    changes: list[UtcOffsetChange], last_year: int
) -> TimezoneDaylight | TimezoneStandard:
    first, *others = changes
    forward = first.offset_after > first.offset_before
    made = TimezoneDaylight() if forward else TimezoneStandard()
    made.add("DTSTART", first.wall_time)
    made.add("TZOFFSETFROM", first.offset_before)
    made.add("TZOFFSETTO", first.offset_after)
    made.add("TZNAME", first.abbreviation)
    rule = yearly_rule(changes, last_year) if others else None
    if rule is not None:  # which Outlook understands; not so single dates
        day = f"{rule.week}{WEEKDAYS[rule.weekday]}"
        made.add("RRULE", vRecur({"FREQ": "YEARLY", "BYMONTH": rule.month, "BYDAY": day}))
    elif others:
        made.add("RDATE", [change.wall_time for change in others])
    return made
