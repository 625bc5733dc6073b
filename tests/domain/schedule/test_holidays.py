"""Lists of holidays: their days, invalid ones, and those of an iCalendar file."""

from datetime import date, timedelta

import pytest

from slotlock.domain.schedule.holiday_files import parse_ics
from slotlock.domain.schedule.holidays import Holiday, HolidayList, HolidayListId, build_list
from slotlock.domain.shared.validation import InvalidInput

LIST_ID = HolidayListId("a" * 24)
EASTER = Holiday(date(2031, 4, 11), date(2031, 4, 14), "Easter")
MAY_DAY = Holiday(date(2031, 5, 1), date(2031, 5, 1))

DAYS = [EASTER.first + timedelta(days=n) for n in range(501)]
TOO_MANY = [Holiday(day, day) for day in DAYS]


def calendar(*events: str) -> str:
    """Return an iCalendar file with these events."""
    lines = "".join(f"BEGIN:VEVENT\r\nUID:1\r\n{e}\r\nEND:VEVENT\r\n" for e in events)
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\n{lines}END:VCALENDAR\r\n"


def test_a_list_has_its_holidays_by_date_and_all_their_days() -> None:
    built = build_list(LIST_ID, "  School 2031 ", [MAY_DAY, EASTER, MAY_DAY])
    assert isinstance(built, HolidayList)
    assert (built.name, built.holidays) == ("School 2031", (EASTER, MAY_DAY))
    assert built.dates == {date(2031, 4, day) for day in (11, 12, 13, 14)} | {date(2031, 5, 1)}


@pytest.mark.parametrize(
    ("name", "holidays", "field"),
    [
        (" ", [MAY_DAY], "name"),
        ("x" * 101, [MAY_DAY], "name"),
        ("School", [], "holidays"),
        ("School", TOO_MANY, "holidays"),
        ("School", [Holiday(MAY_DAY.last, EASTER.first)], "holidays"),
        ("School", [Holiday(date(2031, 1, 1), date(2033, 1, 1))], "holidays"),
        ("School", [Holiday(MAY_DAY.first, MAY_DAY.last, "x" * 101)], "holidays"),
    ],
)  # fmt: skip
def test_an_invalid_list_is_refused(name: str, holidays: list[Holiday], field: str) -> None:
    refused = build_list(LIST_ID, name, holidays)
    assert isinstance(refused, InvalidInput)
    assert [problem.field for problem in refused.problems] == [field]


def test_the_events_of_a_calendar_are_holidays_with_their_last_day() -> None:
    text = calendar(
        "DTSTART;VALUE=DATE:20310411\r\nDTEND;VALUE=DATE:20310415\r\nSUMMARY:Easter",
        "DTSTART;VALUE=DATE:20310501",
        "DTSTART:20310601T220000\r\nDTEND:20310603T000000\r\nSUMMARY:Whitsun",
    )
    whitsun = Holiday(date(2031, 6, 1), date(2031, 6, 2), "Whitsun")
    assert parse_ics(text) == (EASTER, MAY_DAY, whitsun)


@pytest.mark.parametrize(
    "text",
    [
        "holidays",
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n",
        calendar("SUMMARY:Easter"),
        calendar("DTSTART;VALUE=DATE:20311341"),
        calendar("DTSTART;VALUE=DATE:20311225\r\nRRULE:FREQ=YEARLY"),
        "x" * 200_001,
    ],
)
def test_a_file_that_cannot_be_read_is_refused(text: str) -> None:
    refused = parse_ics(text)
    assert isinstance(refused, InvalidInput)
    assert [problem.field for problem in refused.problems] == ["ics"]
