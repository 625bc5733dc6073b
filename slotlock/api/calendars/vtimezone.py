"""VTIMEZONE components for a zone and a range of years.

RFC 5545, 3.6.5, demands the onset of summer time in the old local time. icalendar's own
`add_missing_timezones` (7.3) writes it in the new local time, which is an hour late.
"""

from collections import defaultdict
from functools import lru_cache

from icalendar import Timezone, TimezoneDaylight, TimezoneStandard, vRecur

from slotlock.domain.schedule.zone_transitions import UtcOffsetChange, clock_changes, yearly_rule
from slotlock.domain.schedule.zones import find_zone

# In fewer years the last Sunday of a month could look like the fourth.
MIN_YEARS = 10
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


@lru_cache(maxsize=1_000)
def build_vtimezone(name: str, first_year: int, last_year: int) -> Timezone | None:
    """Return a zone with all changes of its offset in these years; None for an unknown name."""
    zone = find_zone(name)
    if zone is None:
        return None
    component = Timezone()
    component.add("TZID", name)
    last_year = max(last_year, first_year + MIN_YEARS)
    first, *changes = clock_changes(zone, first_year - 1, last_year)
    component.add_component(_observance([first], last_year))
    similar_changes: dict[object, list[UtcOffsetChange]] = defaultdict(list)
    for change in changes:
        key = (change.offset_before, change.offset_after, change.abbreviation)
        similar_changes[key].append(change)
    for group in similar_changes.values():
        component.add_component(_observance(group, last_year))
    return component


def _observance(
    changes: list[UtcOffsetChange], last_year: int
) -> TimezoneDaylight | TimezoneStandard:
    first, *others = changes
    is_forward = first.offset_after > first.offset_before
    component = TimezoneDaylight() if is_forward else TimezoneStandard()
    component.add("DTSTART", first.wall_time)
    component.add("TZOFFSETFROM", first.offset_before)
    component.add("TZOFFSETTO", first.offset_after)
    component.add("TZNAME", first.abbreviation)
    rule = yearly_rule(changes, last_year) if others else None
    if rule is not None:  # Outlook understands a rule, but no single dates
        day = f"{rule.week}{WEEKDAYS[rule.weekday]}"
        component.add("RRULE", vRecur({"FREQ": "YEARLY", "BYMONTH": rule.month, "BYDAY": day}))
    elif others:
        component.add("RDATE", [change.wall_time for change in others])
    return component
