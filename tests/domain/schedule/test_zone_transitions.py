"""Changes of UTC offsets: each one is found to the second, and yearly ones give a rule."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from slotlock.domain.schedule.zone_transitions import YearlyRule, clock_changes, yearly_rule


def offset_at(changes: list[tuple[datetime, timedelta]], instant: datetime) -> timedelta:
    """Return the offset at an instant by the changes before it."""
    return [offset_after for at, offset_after in changes if at <= instant][-1]


@pytest.mark.parametrize("name", sorted(available_timezones()))
def test_the_changes_give_the_offset_at_any_instant(name: str) -> None:
    zone = ZoneInfo(name)
    first, *later = clock_changes(zone, 2024, 2028)
    changes = [(datetime(2024, 1, 1, tzinfo=UTC), first.offset_after)]
    changes += [
        ((c.wall_time - c.offset_before).replace(tzinfo=UTC), c.offset_after) for c in later
    ]
    assert all(c.offset_before == before for c, (_, before) in zip(later, changes, strict=False))
    instant = datetime(2024, 1, 1, tzinfo=UTC)
    while instant.year < 2029:
        assert offset_at(changes, instant) == instant.astimezone(zone).utcoffset()
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
def test_changes_that_come_every_year_give_a_rule(
    name: str, forward: YearlyRule | None, back: YearlyRule | None
) -> None:
    _, *changes = clock_changes(ZoneInfo(name), 2026, 2040)
    for rule, is_forward in ((forward, True), (back, False)):
        same_direction = [
            change
            for change in changes
            if (change.offset_after > change.offset_before) is is_forward
        ]
        assert yearly_rule(same_direction, 2040) == rule
