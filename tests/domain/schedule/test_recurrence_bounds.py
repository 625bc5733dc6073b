"""Limits of recurrence rules: number, time range, CPU time and malformed input."""

import re
from datetime import UTC, datetime, timedelta
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.recurrence import MAX_SPAN, occurrences
from slotlock.domain.schedule.recurrence_rules import MAX_OCCURRENCES
from slotlock.domain.shared.validation import InvalidInput
from tests.support.domain.builders import BERLIN, HOUR, hour_from


def problem_of(rule: str, start: str = "2030-03-18T08:00", zone: str = BERLIN) -> str:
    """Return the problem with the rule."""
    outcome = occurrences(hour_from(start), rule, zone)
    assert isinstance(outcome, InvalidInput), outcome
    assert [problem.field for problem in outcome.problems] == ["rrule"]
    message = outcome.problems[0].message
    invalid = re.fullmatch(r"This recurrence rule is invalid \((.*)\)\.", message)
    return f"{invalid[1]}." if invalid else message


@pytest.mark.parametrize("rule", ["FREQ=DAILY", "FREQ=DAILY;COUNT=2;UNTIL=20300401"])
def test_a_rule_needs_either_count_or_until(rule: str) -> None:
    assert problem_of(rule) == "A rule needs either COUNT or UNTIL."


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("FREQ=DAILY;COUNT=501", "COUNT must be from 1 to 500."),
        ("FREQ=DAILY;UNTIL=20320101", "A series can have at most 500 meetings."),
        ("FREQ=WEEKLY;UNTIL=20350331", "UNTIL must be at most five years after the start."),
        ("FREQ=WEEKLY;UNTIL=20300317", "UNTIL must not be before the start."),
        ("FREQ=YEARLY;COUNT=7", "Only 6 of 7 meetings are within five years of the start."),
        (
            "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=1",
            "The rule matches no time within five years of the start.",
        ),
        (
            "FREQ=WEEKLY;UNTIL=99991231",
            "UNTIL cannot be '99991231'. The year must be between 1970 and 2090.",
        ),
        ("FREQ=WEEKLY;UNTIL=20300231", "UNTIL cannot be '20300231'."),
    ],
)
def test_a_series_is_bounded_in_number_and_time(rule: str, problem: str) -> None:
    assert problem_of(rule) == problem


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "RRULE:",
        "FREQ",
        "FREQ=;COUNT=1",
        "COUNT=1",
        "FREQ=HOURLY;COUNT=1",
        "FREQ=SECONDLY;COUNT=1",
        "FREQ=DAILY;FREQ=DAILY;COUNT=1",
        "FREQ=DAILY;COUNT=1;",
        "FREQ=DAILY;COUNT=0",
        "FREQ=DAILY;COUNT=-1",
        "FREQ=DAILY;COUNT=1_0",
        "FREQ=DAILY;COUNT=1;INTERVAL=0",
        "FREQ=DAILY;COUNT=1;INTERVAL=99999999999999999999",
        "FREQ=DAILY;COUNT=1;BYEASTER=1",
        "FREQ=DAILY;COUNT=1;BYSECOND=1",
        "FREQ=YEARLY;COUNT=1;BYWEEKNO=1",
        "FREQ=DAILY;COUNT=1;BYDAY=1MO",
        "FREQ=WEEKLY;COUNT=1;BYDAY=1MO",
        "FREQ=MONTHLY;COUNT=1;BYDAY=53MO",
        "FREQ=MONTHLY;COUNT=1;BYDAY=0MO",
        "FREQ=DAILY;COUNT=1;BYDAY=MO(1)",
        "FREQ=DAILY;COUNT=1;BYDAY=",
        "FREQ=DAILY;COUNT=1;BYMONTH=0",
        "FREQ=DAILY;COUNT=1;BYMONTH=13",
        "FREQ=MONTHLY;COUNT=1;BYMONTHDAY=0",
        "FREQ=WEEKLY;COUNT=1;BYMONTHDAY=1",
        "FREQ=MONTHLY;COUNT=1;BYYEARDAY=1",
        "FREQ=MONTHLY;COUNT=1;BYSETPOS=1",
        "FREQ=DAILY;COUNT=1;BYHOUR=9;BYSETPOS=1",
        "FREQ=DAILY;COUNT=1;BYHOUR=24",
        "FREQ=DAILY;COUNT=1;BYHOUR=9,10;BYMINUTE=0,1,2,3,4,5,6,7,8,9,10,11,12",
        "FREQ=DAILY;UNTIL=2030-04-01",
        "FREQ=DAILY;UNTIL=20300401T256000",
        "FREQ=DAILY;UNTIL=20300401Z",
        "FREQ=DAILY;COUNT=1\nFREQ=DAILY;COUNT=1",
        "FREQ=DAILY;COUNT=1\nEXDATE:20300401T000000",
        "DTSTART:20300401T000000\nRRULE:FREQ=DAILY;COUNT=1",
        "RRULE:RRULE:FREQ=DAILY;COUNT=1",
        "RRULE;X-A=1:FREQ=DAILY;COUNT=1",
        "EXRULE:FREQ=DAILY;COUNT=1",
        "FREQ=DAILY;COUNT=\u0661",
        "FREQ=DA\u0131LY;COUNT=1",
        "FREQ=DAILY;COUNT=1;BYMONTH=" + ",".join("1" * 500),
    ],
)
def test_malformed_and_unsupported_rules_are_invalid(rule: str) -> None:
    assert problem_of(rule)


def test_all_problems_are_returned_together() -> None:
    reversed_meeting = Meeting(datetime(1900, 1, 2, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC))
    outcome = occurrences(reversed_meeting, "every week", "Mars/Olympus")
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == [
        "startTime",
        "endTime",
        "rrule",
        "timeZone",
    ]


SLOWEST_RULES = [
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=1",
    "FREQ=DAILY;INTERVAL=7;BYDAY=TU;COUNT=1",
    "FREQ=DAILY;INTERVAL=9999;BYDAY=TU;COUNT=2",
    "FREQ=WEEKLY;BYDAY=MO;COUNT=1;BYSETPOS=" + ",".join(map(str, range(8, 39))),
    "FREQ=WEEKLY;INTERVAL=260;BYMONTH=1;BYDAY=SA,SU;COUNT=500",
    "FREQ=MONTHLY;BYDAY=5MO;BYMONTHDAY=1;COUNT=1",
    "FREQ=YEARLY;BYYEARDAY=366;BYMONTH=1;COUNT=1",
    "FREQ=YEARLY;COUNT=500;BYHOUR=" + ",".join(map(str, range(24))) + ";BYDAY=MO,TU,WE,TH,FR,SA",
    "FREQ=YEARLY;COUNT=1;BYMONTHDAY=31;BYSETPOS=" + ",".join(map(str, range(336, 367))),
]


@pytest.mark.parametrize("rule", SLOWEST_RULES)
@pytest.mark.parametrize("year", [1970, 2026, 2090])
def test_the_slowest_known_rules_take_less_than_half_a_second(rule: str, year: int) -> None:
    # dateutil searches for some of them until the year 9999; the slowest takes 0.05 s.
    started = process_time()
    occurrences(hour_from(f"{year}-12-31T23:00"), rule, "Pacific/Kiritimati")
    assert process_time() - started < 0.5


def test_a_rule_that_continues_after_the_year_9999_of_the_library_ends_as_others_do() -> None:
    # The rule is evaluated near the year 9999, where its second date is 1 January 10000.
    rule = "FREQ=WEEKLY;INTERVAL=1346;COUNT=2"
    problem = "Only 1 of 2 meetings are within five years of the start."
    assert problem_of(rule, "2030-03-16T09:00") == problem


def number_list(minimum: int, maximum: int) -> st.SearchStrategy[str]:
    """Draw the numbers of a part, some of them invalid."""
    numbers = st.integers(minimum, maximum).map(str) | st.sampled_from(
        ["0", "+1", "-1", "", "x", "1e3"]
    )
    return st.lists(numbers, min_size=1, max_size=8).map(",".join)


WEEKDAYS = st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"])
ORDINAL_DAYS = st.tuples(st.sampled_from(["", "1", "-1", "5", "53", "0"]), WEEKDAYS).map("".join)
PARTS = {
    "INTERVAL": st.integers(0, 20).map(str) | st.integers().map(str),
    "WKST": WEEKDAYS,
    "BYDAY": st.lists(ORDINAL_DAYS, max_size=4).map(",".join),
    "BYMONTH": number_list(1, 12),
    "BYMONTHDAY": number_list(-31, 31),
    "BYYEARDAY": number_list(-366, 366),
    "BYSETPOS": number_list(-366, 366),
    "BYHOUR": number_list(0, 24),
    "BYMINUTE": number_list(0, 60),
    "BYEASTER": number_list(0, 3),
    "DTSTART": st.just("20300401"),
}
ENDS = st.one_of(
    st.integers(1, 9).map("COUNT={}".format),
    st.integers(-1, 600).map("COUNT={}".format),
    st.datetimes().map(lambda at: f"UNTIL={at.year:04}{at:%m%d}"),
    st.datetimes(datetime(2030, 1, 1), datetime(2036, 1, 1)).map("UNTIL={:%Y%m%dT%H%M%S}".format),  # noqa: DTZ001
    st.text(max_size=5),
)
RULES = st.tuples(
    st.sampled_from(["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY"]).map("FREQ={}".format),
    ENDS,
    st.dictionaries(st.sampled_from(sorted(PARTS)), st.none(), max_size=4).flatmap(
        lambda names: st.fixed_dictionaries({name: PARTS[name] for name in names})
    ),
).map(lambda drawn: ";".join([*drawn[:2], *(f"{k}={v}" for k, v in drawn[2].items())]))
ZONES = st.sampled_from([BERLIN, "Pacific/Apia", "America/Santiago", "Africa/Casablanca"])
INSTANTS = st.datetimes(timezones=st.just(UTC))
RECENT_INSTANTS = st.datetimes(datetime(1960, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@settings(max_examples=2 * settings().max_examples)
@given(
    first=st.builds(Meeting, INSTANTS, INSTANTS)
    | st.tuples(RECENT_INSTANTS, st.timedeltas(timedelta(0), 2 * HOUR)).map(
        lambda drawn: Meeting(drawn[0], drawn[0] + drawn[1])
    ),
    rule=RULES | st.text(),
    zone=ZONES | ZONES | ZONES | st.text(max_size=10),
)
@example(Meeting(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)), "", "")
def test_any_input_gives_a_bounded_series_or_problems(first: Meeting, rule: str, zone: str) -> None:
    found = occurrences(first, rule, zone)
    if isinstance(found, InvalidInput):
        assert found.problems
        return
    starts = [occurrence.start for occurrence in found]
    assert starts == sorted(set(starts))
    assert 1 <= len(starts) <= MAX_OCCURRENCES
    assert first.start <= starts[0]
    assert starts[-1] - first.start <= MAX_SPAN + timedelta(days=1)
    assert {occurrence.end - occurrence.start for occurrence in found} == {first.end - first.start}
