"""Changes of UTC offsets: each one is found to the second, and yearly ones give a rule."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pytest

from slotlock.domain.schedule.zone_transitions import YearlyRule, clock_changes, yearly_rule


def offset_at(changes: list[tuple[datetime, timedelta]], instant: datetime) -> timedelta:
    """Return the offset at an instant by the changes before it."""
    return [offset_after for at, offset_after in changes if at <= instant][-1]


def test_the_changes_give_the_offset_at_any_instant() -> None:
    wrong = [name for name in sorted(available_timezones()) if not _has_its_offsets(ZoneInfo(name))]
    assert wrong == []


def _has_its_offsets(zone: ZoneInfo) -> bool:
    """Compare the offsets of five years, every four days and at each change."""
    first, *later = clock_changes(zone, 2024, 2028)
    changes = [(datetime(2024, 1, 1, tzinfo=UTC), first.offset_after)]
    changes += [
        ((c.wall_time - c.offset_before).replace(tzinfo=UTC), c.offset_after) for c in later
    ]
    follow = all(c.offset_before == before for c, (_, before) in zip(later, changes, strict=False))
    start, step = datetime(2024, 1, 1, tzinfo=UTC), timedelta(days=4, hours=1)
    instants = [start + n * step for n in range(5 * 365 // 4)]
    return (
        follow
        and all(offset_at(changes, at) == at.astimezone(zone).utcoffset() for at in instants)
        and all(
            at.astimezone(zone).utcoffset() == after
            and (at - timedelta(seconds=1)).astimezone(zone).utcoffset() != after
            for at, after in changes[1:]
        )
    )


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
