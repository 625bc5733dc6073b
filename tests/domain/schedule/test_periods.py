"""Periods of a school day: names become times, and times become names again."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.periods import (
    MAX_PERIODS,
    Period,
    build_periods,
    find_all_periods,
    find_periods,
    find_times,
    loses_period,
)
from slotlock.domain.schedule.schedule_texts import format_periods
from slotlock.domain.schedule.timetables import Timetable, Weekday, WeeklyMeeting, to_meetings
from slotlock.domain.shared.validation import InvalidInput
from tests.support.domain.builders import NOW

BERLIN = "Europe/Berlin"
ZONES = (BERLIN, "UTC", "Asia/Shanghai", "America/St_Johns", "Pacific/Kiritimati")
TUESDAY, FRIDAY = Weekday.TUESDAY, Weekday.FRIDAY
THIRD = Period("3", time(10, 5), time(10, 50))
FOURTH = Period("4", time(10, 55), time(11, 40))
SHORT = Period("3", time(10), time(10, 30), (FRIDAY,))
SCHOOL = (Period("3", THIRD.start, THIRD.end, (Weekday.MONDAY, TUESDAY)), FOURTH, SHORT)


def meeting_on(
    weekday: Weekday, times: tuple[time, time], zone: str = BERLIN, week: int = 0
) -> Meeting:
    """Return a meeting in some week, as a timetable makes it."""
    day = date(2030, 1, 7) + timedelta(weeks=week, days=weekday.value)
    made = to_meetings(Timetable(day, day, (WeeklyMeeting(weekday, *times),)), zone)
    assert isinstance(made, tuple)
    return made[0]


def name_of(meeting: Meeting, zone: str, periods: Sequence[Period]) -> str | None:
    found = find_periods(meeting, zone, periods)
    return None if found is None else found.name


def code_of(*periods: Period) -> tuple[str, str] | None:
    """Return the code of the problem with periods, and of which one."""
    built = build_periods(periods)
    if not isinstance(built, InvalidInput):
        return None
    [problem] = built.problems
    assert problem.field == "periods"
    return problem.message.code.name, problem.message.about


# The clocks change at night.
MINUTES = st.integers(5 * 60, 23 * 60)
NAMES = st.text("0123456789 AJSé节", min_size=1, max_size=20)


@st.composite
def valid_periods(draw: st.DrawFn) -> tuple[Period, ...]:
    """Return some valid periods, of one school or of two."""

    def period() -> Period:
        start = draw(MINUTES)
        end = draw(st.integers(start + 1, 23 * 60 + 59))
        times = time(*divmod(start, 60)), time(*divmod(end, 60))
        return Period(draw(NAMES), *times, tuple(draw(st.sets(st.sampled_from(Weekday)))))

    built = build_periods([period() for _ in range(draw(st.integers(1, 6)))])
    assume(not isinstance(built, InvalidInput))
    assert isinstance(built, tuple)
    return built


@given(valid_periods(), st.sampled_from(Weekday), st.sampled_from(ZONES), st.integers(0, 60))
def test_each_period_and_each_double_period_comes_back_in_each_zone_and_week(
    periods: tuple[Period, ...], weekday: Weekday, zone: str, week: int
) -> None:
    on_day = [each for each in periods if weekday in each.days]
    for first in on_day:
        for last in on_day:
            if last is not first and last.start < first.end:
                continue
            meeting = meeting_on(weekday, (first.start, last.end), zone, week)
            found = find_periods(meeting, zone, periods)
            assert found is not None
            assert (found.first.start, found.last.end) == (first.start, last.end)
            assert found.weekday is weekday
            assert find_times(found.name, weekday, periods) == (first.start, last.end)
    for each in on_day:
        is_alone = sum((each.start, each.end) == (it.start, it.end) for it in on_day) == 1
        if is_alone:
            meeting = meeting_on(weekday, (each.start, each.end), zone, week)
            assert name_of(meeting, zone, periods) == each.name


def test_a_meeting_is_in_the_periods_with_which_it_starts_and_ends() -> None:
    third = meeting_on(TUESDAY, (THIRD.start, THIRD.end))
    double = meeting_on(TUESDAY, (THIRD.start, FOURTH.end))
    assert [name_of(each, BERLIN, SCHOOL) for each in (third, double)] == ["3", "3\u20134"]
    for start, end in (("10:05", "10:55"), ("10:06", "10:50"), ("10:55", "10:50")):
        times = time.fromisoformat(start), time.fromisoformat(end)
        assert name_of(meeting_on(TUESDAY, times), BERLIN, SCHOOL) is None
    # Two that overlap are no double lesson.
    overlap = (Period("a", time(8), time(9)), Period("b", time(8, 30), time(9, 30)))
    assert name_of(meeting_on(TUESDAY, (time(8), time(9, 30))), BERLIN, overlap) is None
    # A day later at the same time of day it is no lesson.
    assert name_of(Meeting(third.start, third.end + timedelta(days=1)), BERLIN, SCHOOL) is None
    # In another zone, and on another weekday, it is at another time.
    assert name_of(third, "Europe/London", SCHOOL) is None
    assert name_of(meeting_on(FRIDAY, (THIRD.start, THIRD.end)), BERLIN, SCHOOL) is None
    assert name_of(meeting_on(FRIDAY, (SHORT.start, SHORT.end)), BERLIN, SCHOOL) == "3"
    # Seconds do not count, and years out of range are no error.
    late = Meeting(third.start, third.end + timedelta(seconds=30))
    assert name_of(late, BERLIN, SCHOOL) == "3"
    ends = (datetime.max.replace(tzinfo=NOW.tzinfo), datetime.min.replace(tzinfo=NOW.tzinfo))
    assert [name_of(Meeting(at, at), "Asia/Shanghai", SCHOOL) for at in ends] == [None, None]


def test_of_two_schools_each_has_its_names() -> None:
    schools = build_periods(
        [
            Period("JS 1", time(8), time(8, 45)),
            Period("JS 2", time(8, 50), time(9, 35)),
            Period("GS 1", time(8), time(8, 40)),
            Period("GS 2", time(8, 50), time(9, 30)),
        ]
    )
    assert isinstance(schools, tuple)
    times = [("8:00", "8:45"), ("8:00", "8:40"), ("8:00", "9:35"), ("8:00", "9:30")]
    clock = [[time.fromisoformat(f"{at:0>5}") for at in each] for each in times]
    found = [name_of(meeting_on(TUESDAY, (start, end)), BERLIN, schools) for start, end in clock]
    assert found[:3] == ["JS 1", "GS 1", "JS 1\u2013JS 2"]
    assert find_times(str(found[3]), TUESDAY, schools) == (time(8), time(9, 30))


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("3", (THIRD.start, THIRD.end)),
        ("３", (THIRD.start, THIRD.end)),  # noqa: RUF001
        ("第3节", (THIRD.start, THIRD.end)),
        ("3. Stunde", (THIRD.start, THIRD.end)),
        ("3-4", (THIRD.start, FOURTH.end)),
        ("3 \u2013 4", (THIRD.start, FOURTH.end)),
        ("第3-4节", (THIRD.start, FOURTH.end)),
        ("第3节至第4节", (THIRD.start, FOURTH.end)),
        ("3.-4. Std.", (THIRD.start, FOURTH.end)),
        ("lesson 3 to 4", (THIRD.start, FOURTH.end)),
        *((text, None) for text in ("4-3", "5", "", "-", "3-5", "第节", "3;4", "-3")),
    ],
)
def test_files_name_periods_in_the_words_of_schools(
    text: str, times: tuple[time, time] | None
) -> None:
    assert find_times(text, TUESDAY, SCHOOL) == times


def test_each_limit_has_its_error() -> None:
    assert build_periods([]) == ()
    assert (
        code_of(*(Period(str(number), time(8), time(9)) for number in range(MAX_PERIODS))) is None
    )
    many = [Period(str(number), time(8), time(9)) for number in range(MAX_PERIODS + 1)]
    assert code_of(*many) == ("PERIOD_COUNT", "")
    assert code_of(Period(" \u200b", time(8), time(9))) == ("NAME_MISSING", "")
    assert code_of(Period("x" * 20, time(8), time(9))) is None
    assert code_of(Period("x" * 21, time(8), time(9))) == ("TOO_LONG", "x" * 21)
    assert code_of(Period("9", time(23), time(0))) == ("PERIOD_REVERSED", "9")
    assert code_of(Period("9", time(9), time(9, 0, 30))) == ("PERIOD_REVERSED", "9")
    same = Period(" ３", time(12), time(13), (Weekday.SUNDAY, TUESDAY))  # noqa: RUF001
    assert code_of(THIRD, same) == ("PERIOD_TWICE", "３")  # noqa: RUF001
    assert code_of(SCHOOL[0], SHORT) is None
    assert code_of(SHORT, THIRD) == ("PERIOD_TWICE", "3")
    built = build_periods(
        [FOURTH, Period(" 3\t", time(8, 0, 59), time(9), (FRIDAY, TUESDAY, FRIDAY))]
    )
    assert built == (Period("3", time(8), time(9), (TUESDAY, FRIDAY)), FOURTH)


def test_a_course_has_its_weekdays_and_periods_in_each_language() -> None:
    meetings = (
        meeting_on(FRIDAY, (SHORT.start, SHORT.end)),
        meeting_on(TUESDAY, (THIRD.start, FOURTH.end), week=1),
        meeting_on(FRIDAY, (SHORT.start, SHORT.end), week=1),
        meeting_on(FRIDAY, (time(20), time(21)), week=2),
    )
    found = find_all_periods(meetings, BERLIN, SCHOOL)
    assert {language: format_periods(found, language) for language in ("en", "de", "zh")} == {
        "en": "Tue, period 3\u20134; Fri, period 3",
        "de": "Di, 3\u20134. Stunde; Fr, 3. Stunde",
        "zh": "周二第3\u20134节、周五第3节",
    }
    lunch = find_all_periods(meetings, BERLIN, [Period("Mittag", SHORT.start, SHORT.end)])
    assert format_periods(lunch, "de") == "Fr, Mittag"
    assert find_all_periods(meetings, BERLIN, ()) == ()
    assert format_periods((), "de") == ""


def test_another_list_leaves_meetings_that_are_in_no_period_now() -> None:
    third = [meeting_on(TUESDAY, (THIRD.start, THIRD.end))]
    evening = [meeting_on(TUESDAY, (time(20), time(21)))]
    renamed = [Period("2a", THIRD.start, THIRD.end)]
    assert loses_period(third, BERLIN, SCHOOL, [FOURTH])
    assert loses_period([*evening, *third], BERLIN, SCHOOL, ())
    assert not loses_period(third, BERLIN, SCHOOL, renamed)
    assert not loses_period(evening, BERLIN, SCHOOL, ())
    assert not loses_period(third, "Europe/London", SCHOOL, ())
