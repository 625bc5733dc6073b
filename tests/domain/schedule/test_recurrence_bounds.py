"""What no recurrence rule can do: go on for ever, take long, or break anything."""

import os
from datetime import UTC, datetime, timedelta
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.recurrence import MAX_SPAN, occurrences
from slotlock.domain.schedule.recurrence_rules import MAX_OCCURRENCES
from slotlock.domain.shared.validation import InvalidInput
from tests.domain.schedule.test_recurrence import BERLIN, HOUR, meeting


def refused(rule: str, start: str = "2030-03-18T08:00", zone: str = BERLIN) -> str:
    """What is said about the rule."""
    answer = occurrences(meeting(start), rule, zone)
    assert isinstance(answer, InvalidInput), answer
    assert [problem.field for problem in answer.problems] == ["rrule"]
    return answer.problems[0].message


@pytest.mark.parametrize("rule", ["FREQ=DAILY", "FREQ=DAILY;COUNT=2;UNTIL=20300401"])
def test_a_rule_has_count_or_until_and_not_both(rule: str) -> None:
    assert refused(rule) == "A rule needs COUNT or UNTIL, and not both."


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("FREQ=DAILY;COUNT=501", "COUNT takes 1 to 500."),
        ("FREQ=DAILY;UNTIL=20320101", "At most 500 occurrences."),
        ("FREQ=WEEKLY;UNTIL=20350331", "UNTIL is more than five years after the start."),
        ("FREQ=WEEKLY;UNTIL=20300317", "UNTIL is before the start."),
        ("FREQ=YEARLY;COUNT=7", "Only 6 of 7 come within five years of the start."),
        (
            "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=1",
            "The rule matches no time within five years of the start.",
        ),
        (
            "FREQ=WEEKLY;UNTIL=99991231",
            "UNTIL cannot be '99991231'. The year is from 1970 to 2090.",
        ),
        ("FREQ=WEEKLY;UNTIL=20300231", "UNTIL cannot be '20300231'."),
    ],
)
def test_no_series_goes_on_for_ever(rule: str, said: str) -> None:
    assert refused(rule) == said


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
def test_what_is_no_rule_or_none_that_can_be_kept_is_refused(rule: str) -> None:
    assert refused(rule)


def test_everything_that_is_wrong_is_named_at_once() -> None:
    backwards = Meeting(datetime(1900, 1, 2, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC))
    answer = occurrences(backwards, "every week", "Mars/Olympus")
    assert isinstance(answer, InvalidInput)
    assert [problem.field for problem in answer.problems] == [
        "startTime",
        "endTime",
        "rrule",
        "timeZone",
    ]


AT_WORST = [
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


@pytest.mark.parametrize("rule", AT_WORST)
@pytest.mark.parametrize("year", [1970, 2026, 2090])
def test_no_rule_takes_long(rule: str, year: int) -> None:
    # Some would be searched for up to the year 9999. Of these, the longest takes 0.05 s.
    started = process_time()
    occurrences(meeting(f"{year}-12-31T23:00"), rule, "Pacific/Kiritimati")
    assert process_time() - started < 0.5


def test_a_rule_that_goes_on_beyond_the_calendar_ends_like_any_other() -> None:
    # In the years where the library searches, the second would be on 1 January 10000.
    rule = "FREQ=WEEKLY;INTERVAL=1346;COUNT=2"
    said = "Only 1 of 2 come within five years of the start."
    assert refused(rule, "2030-03-16T09:00") == said


def listed(least: int, most: int) -> st.SearchStrategy[str]:
    """Numbers as a part lists them, some of them wrong."""
    numbers = st.integers(least, most).map(str) | st.sampled_from(["0", "+1", "-1", "", "x", "1e3"])
    return st.lists(numbers, min_size=1, max_size=8).map(",".join)


WEEKDAYS = st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"])
ORDINAL_DAYS = st.tuples(st.sampled_from(["", "1", "-1", "5", "53", "0"]), WEEKDAYS).map("".join)
PARTS = {
    "INTERVAL": st.integers(0, 20).map(str) | st.integers().map(str),
    "WKST": WEEKDAYS,
    "BYDAY": st.lists(ORDINAL_DAYS, max_size=4).map(",".join),
    "BYMONTH": listed(1, 12),
    "BYMONTHDAY": listed(-31, 31),
    "BYYEARDAY": listed(-366, 366),
    "BYSETPOS": listed(-366, 366),
    "BYHOUR": listed(0, 24),
    "BYMINUTE": listed(0, 60),
    "BYEASTER": listed(0, 3),
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
LATELY = st.datetimes(datetime(1960, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@settings(deadline=None, max_examples=int(os.environ.get("SLOTLOCK_CAMPAIGN", "200")))
@given(
    first=st.builds(Meeting, INSTANTS, INSTANTS)
    | st.tuples(LATELY, st.timedeltas(timedelta(0), 2 * HOUR)).map(
        lambda drawn: Meeting(drawn[0], drawn[0] + drawn[1])
    ),
    rule=RULES | st.text(),
    zone=ZONES | ZONES | ZONES | st.text(max_size=10),
)
@example(Meeting(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)), "", "")
def test_whatever_is_filled_in_comes_to_a_series_that_ends_or_to_problems(
    first: Meeting, rule: str, zone: str
) -> None:
    found = occurrences(first, rule, zone)
    if isinstance(found, InvalidInput):
        assert found.problems
        return
    at = [each.start for each in found]
    assert at == sorted(set(at))
    assert 1 <= len(at) <= MAX_OCCURRENCES
    assert first.start <= at[0]
    assert at[-1] - first.start <= MAX_SPAN + timedelta(days=1)
    assert {each.end - each.start for each in found} == {first.end - first.start}
