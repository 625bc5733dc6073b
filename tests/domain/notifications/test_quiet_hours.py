"""Quiet hours delay mails to their end, by the clocks of the site, unless that is too late."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from slotlock.domain.notifications.quiet_hours import (
    HEAD_START,
    MAX_SHIFT,
    QuietHours,
    parse_quiet_hours,
)

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = parse_quiet_hours("22:00-07:00", BERLIN)
HOUR = timedelta(hours=1)


def berlin(text: str, fold: int = 0) -> datetime:
    """Return the instant of a local time."""
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).astimezone(UTC)


@pytest.mark.parametrize(
    ("span", "at", "end"),
    [
        ("22:00-07:00", "2026-06-10 21:59", None),
        ("22:00-07:00", "2026-06-10 22:00", "2026-06-11 07:00"),
        ("22:00-07:00", "2026-06-11 06:59", "2026-06-11 07:00"),
        ("22:00-07:00", "2026-06-11 07:00", None),
        ("12:00-14:00", "2026-06-11 13:00", "2026-06-11 14:00"),
        ("12:00-14:00", "2026-06-11 11:59", None),
        # While it is still the day before in UTC.
        ("00:00-06:00", "2026-06-11 00:30", "2026-06-11 06:00"),
        # The nights in which the clocks change have an hour less, or one more.
        ("22:00-07:00", "2026-03-28 23:00", "2026-03-29 07:00"),
        ("22:00-07:00", "2026-10-24 23:00", "2026-10-25 07:00"),
        # 02:30 does not exist, and later occurs twice: the hours end with the later one.
        ("22:00-02:30", "2026-03-29 01:00", "2026-03-29 03:30"),
        ("02:30-07:00", "2026-03-29 03:15", None),
        ("02:30-07:00", "2026-03-29 03:30", "2026-03-29 07:00"),
    ],
)
def test_quiet_hours_end_by_the_clocks_of_the_site(span: str, at: str, end: str | None) -> None:
    quiet = parse_quiet_hours(span, BERLIN)
    assert quiet.end_at(berlin(at)) == (end and berlin(end))


def test_an_hour_that_occurs_twice_is_quiet_both_times() -> None:
    quiet = parse_quiet_hours("01:00-02:30", BERLIN)
    end = berlin("2026-10-25 02:30", fold=1)
    for at in ("02:15", "02:45"):
        assert quiet.end_at(berlin(f"2026-10-25 {at}")) == end
    assert quiet.end_at(berlin("2026-10-25 02:15", fold=1)) == end
    assert quiet.end_at(end) is None
    assert end - berlin("2026-10-25 01:00") == 2.5 * HOUR


def test_a_mail_waits_for_the_end_only_if_that_is_before_its_deadline() -> None:
    at, end = berlin("2026-06-10 23:00"), berlin("2026-06-11 07:00")
    assert NIGHT.delayed(at, None) == end
    assert NIGHT.delayed(at, end + HOUR) == end
    assert NIGHT.delayed(at, end) is None
    assert NIGHT.delayed(end, None) is None


def test_what_would_come_too_late_is_planned_before_the_quiet_hours() -> None:
    at, end = berlin("2026-06-11 05:30"), berlin("2026-06-11 07:00")
    assert NIGHT.planned(at, end + HOUR) == end
    assert NIGHT.planned(at, end) == berlin("2026-06-10 22:00") - HEAD_START
    assert NIGHT.planned(end, end + HOUR) == end


@pytest.mark.parametrize("day", ["2026-03-28", "2026-10-24", "2026-06-10"])
def test_no_mail_moves_further_than_the_query_reaches(day: str) -> None:
    quiet = parse_quiet_hours("00:01-00:00", BERLIN)
    for minutes in range(0, 3 * 24 * 60, 7):
        at = berlin(f"{day} 00:00") + timedelta(minutes=minutes)
        for deadline in (at + timedelta(minutes=1), at + timedelta(days=9)):
            assert abs(quiet.planned(at, deadline) - at) <= MAX_SHIFT


@pytest.mark.parametrize("text", ["", "22-7", "22:00", "24:00-07:00", "22:00-22:00", "22:00–07:00"])  # noqa: RUF001
def test_other_texts_are_no_quiet_hours(text: str) -> None:
    with pytest.raises(ValueError, match="22:00-07:00"):
        parse_quiet_hours(text, BERLIN)
    assert isinstance(NIGHT, QuietHours)
