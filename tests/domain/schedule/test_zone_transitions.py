"""When clocks change: every change is found, to the second, and yearly ones are told as a rule."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from slotlock.domain.schedule.zone_transitions import YearlyRule, clock_changes, yearly_rule


def offset_by(changes: list[tuple[datetime, timedelta]], instant: datetime) -> timedelta:
    """The offset at an instant, by the changes before it."""
    return [after for at, after in changes if at <= instant][-1]


@pytest.mark.parametrize("name", sorted(available_timezones()))
def test_between_changes_the_offset_is_what_they_say(name: str) -> None:
    zone = ZoneInfo(name)
    first, *later = clock_changes(zone, 2024, 2028)
    changes = [(datetime(2024, 1, 1, tzinfo=UTC), first.offset_after)]
    changes += [
        ((c.wall_time - c.offset_before).replace(tzinfo=UTC), c.offset_after) for c in later
    ]
    assert all(c.offset_before == before for c, (_, before) in zip(later, changes, strict=False))
    instant = datetime(2024, 1, 1, tzinfo=UTC)
    while instant.year < 2029:
        assert offset_by(changes, instant) == instant.astimezone(zone).utcoffset()
        instant += timedelta(hours=13)
    for at, after in changes[1:]:
        assert at.astimezone(zone).utcoffset() == after
        assert (at - timedelta(seconds=1)).astimezone(zone).utcoffset() != after


@pytest.mark.parametrize(
    ("name", "forward", "back"),
    [
        ("Europe/Berlin", YearlyRule(3, -1, 6), YearlyRule(10, -1, 6)),
        ("America/New_York", YearlyRule(3, 2, 6), YearlyRule(11, 1, 6)),
        ("Australia/Sydney", YearlyRule(10, 1, 6), YearlyRule(4, 1, 6)),
        ("Pacific/Auckland", YearlyRule(9, -1, 6), YearlyRule(4, 1, 6)),
        ("Africa/Casablanca", None, None),
    ],
)
def test_what_comes_every_year_is_a_rule(
    name: str, forward: YearlyRule | None, back: YearlyRule | None
) -> None:
    _, *changes = clock_changes(ZoneInfo(name), 2026, 2040)
    for rule, ahead in ((forward, True), (back, False)):
        same = [
            change for change in changes if (change.offset_after > change.offset_before) is ahead
        ]
        assert yearly_rule(same, 2040) == rule
