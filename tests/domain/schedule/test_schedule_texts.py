"""When a slot takes place: lessons of a course in one line, other meetings one by one."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.schedule_texts import SCHEDULE_WORDS, format_schedule

ZONE = "Europe/Berlin"
MONDAY = date(2031, 5, 5)


def meeting(day: date, begin: str = "10:00", end: str = "11:00", nights: int = 0) -> Meeting:
    """Return a meeting in Berlin."""
    times = (f"{day}T{begin}", f"{day + timedelta(nights)}T{end}")
    return Meeting(*(datetime.fromisoformat(each).replace(tzinfo=ZoneInfo(ZONE)) for each in times))


def weekly(first: date, count: int, *skipped: int, weeks: int = 1) -> tuple[Meeting, ...]:
    """Return lessons on one weekday, without those of the skipped weeks."""
    numbers = (number for number in range(count) if number not in skipped)
    return tuple(meeting(first + timedelta(weeks=weeks * number)) for number in numbers)


COURSE = weekly(MONDAY, 9, 5)


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "Mondays 10:00–11:00, May 5 to June 30, 2031, not on June 9 (Berlin time)"),
        ("de", "montags 10:00–11:00, 5. Mai bis 30. Juni 2031, nicht am 9. Juni (Ortszeit Berlin)"),
        ("fr", "le lundi 10:00–11:00, du 5 mai au 30 juin 2031, sauf le 9 juin (heure de Berlin)"),
        (
            "es",
            "los lunes 10:00–11:00, del 5 de mayo al 30 de junio de 2031, excepto el 9 de junio "
            "(hora de Berlin)",
        ),
        ("zh", "每周一 10:00–11:00，2031年5月5日至6月30日，6月9日除外（Berlin 当地时间）"),
    ],
)
def test_a_course_is_a_line_with_its_lessons_and_not_one_block(
    language: str, expected: str
) -> None:
    assert format_schedule(COURSE, ZONE, language) == expected


@pytest.mark.parametrize(
    ("meetings", "expected"),
    [
        ([meeting(MONDAY)], "Mon, May 5, 2031, 10:00–11:00"),
        (
            [meeting(MONDAY, "22:00", "06:00", nights=4)],
            "Mon, May 5, 2031, 22:00–Fri, May 9, 2031, 06:00",
        ),
        (weekly(MONDAY, 2), "Mon, May 5, 2031, 10:00–11:00; Mon, May 12, 2031, 10:00–11:00"),
        (
            weekly(MONDAY, 4, weeks=2),
            "Mondays every 2 weeks 10:00–11:00, May 5 to June 16, 2031",
        ),
        (
            weekly(date(2031, 12, 15), 5, 1),
            "Mondays 10:00–11:00, December 15, 2031 to January 12, 2032, not on December 22, 2031",
        ),
        (
            sorted((*weekly(MONDAY, 3), *weekly(date(2031, 5, 7), 4)), key=lambda each: each.start),
            "Mondays 10:00–11:00, May 5 to May 19, 2031; "
            "Wednesdays 10:00–11:00, May 7 to May 28, 2031",
        ),
        (
            (*weekly(MONDAY, 3), meeting(date(2031, 5, 24), "09:00", "17:00")),
            "Mondays 10:00–11:00, May 5 to May 19, 2031; Sat, May 24, 2031, 09:00–17:00",
        ),
        (
            [meeting(MONDAY + timedelta(days)) for days in range(7)],
            "Mon, May 5, 2031, 10:00–11:00; Tue, May 6, 2031, 10:00–11:00; "
            "Wed, May 7, 2031, 10:00–11:00; Thu, May 8, 2031, 10:00–11:00; "
            "Fri, May 9, 2031, 10:00–11:00 (+2)",
        ),
    ],
)
def test_other_meetings_are_listed_one_by_one(meetings: list[Meeting], expected: str) -> None:
    assert format_schedule(tuple(meetings), ZONE, "en") == f"{expected} (Berlin time)"


def test_lessons_have_one_local_time_although_the_clocks_change() -> None:
    course = weekly(date(2031, 3, 24), 3)
    assert len({each.start.astimezone(UTC).time() for each in course}) == 2
    assert format_schedule(course, ZONE, "en") == (
        "Mondays 10:00–11:00, March 24 to April 7, 2031 (Berlin time)"
    )


def test_meetings_of_thousands_of_years_are_listed() -> None:
    course = (*weekly(MONDAY, 2), meeting(date(9000, 5, 4)))
    assert format_schedule(course, ZONE, "en").count(";") == len(course) - 1


@pytest.mark.parametrize("language", SCHEDULE_WORDS)
@pytest.mark.parametrize("year", [1, 9999])
def test_a_time_that_no_local_year_can_hold_is_in_utc(language: str, year: int) -> None:
    start = datetime(year, 1 if year == 1 else 12, 1 if year == 1 else 31, 0, 30, tzinfo=UTC)
    zone = "America/New_York" if year == 1 else "Pacific/Auckland"
    end = start + timedelta(hours=23)
    assert "UTC" in format_schedule((Meeting(start, end),), zone, language)
