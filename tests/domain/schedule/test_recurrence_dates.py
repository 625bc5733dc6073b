"""Random rules in UTC, compared with a second implementation that tests every single day."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.recurrence import MAX_SPAN, occurrences
from slotlock.domain.shared.validation import InvalidInput

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NAMES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
Parts = Mapping[str, str]


def numbers(parts: Parts, name: str, default: int) -> list[int]:
    """Return the numbers of a part."""
    return [int(text) for text in parts.get(name, str(default)).split(",")]


def next_period(day: date, monthly: bool) -> date:
    """Return the first day of the next month or year."""
    if not monthly:
        return date(day.year + 1, 1, 1)
    return (day.replace(day=1) + 31 * DAY).replace(day=1)


def ordinals_of(day: date, monthly: bool) -> tuple[int, int]:
    """Return the number of the day in its month or year, from the start and from the end."""
    first = day.replace(day=1) if monthly else date(day.year, 1, 1)
    return (day - first).days + 1, -(next_period(day, monthly) - day).days


def matches_weekday(day: date, wanted: str, monthly: bool) -> bool:
    """Return whether the day matches one value of BYDAY."""
    nth, name = wanted[:-2], wanted[-2:]
    from_start, from_end = ordinals_of(day, monthly)
    ordinals = {(from_start - 1) // 7 + 1, -((-from_end - 1) // 7 + 1)}
    return NAMES[day.weekday()] == name and (not nth or int(nth) in ordinals)


def with_defaults(parts: Parts, start: date) -> Parts:
    """Return the parts with those that default to the start date."""
    if {"BYDAY", "BYMONTHDAY", "BYYEARDAY"} & parts.keys() or parts["FREQ"] == "DAILY":
        return parts
    if parts["FREQ"] == "WEEKLY":
        return {"BYDAY": NAMES[start.weekday()], **parts}
    month = {"BYMONTH": str(start.month)} if parts["FREQ"] == "YEARLY" else {}
    return {**month, "BYMONTHDAY": str(start.day), **parts}


def matches(day: date, parts: Parts) -> bool:
    """Return whether the day matches every part that restricts days."""
    monthly = parts["FREQ"] == "MONTHLY" or "BYMONTH" in parts
    return (
        day.month in numbers(parts, "BYMONTH", day.month)
        and not {*ordinals_of(day, True)}.isdisjoint(numbers(parts, "BYMONTHDAY", day.day))
        and not {*ordinals_of(day, False)}.isdisjoint(
            numbers(parts, "BYYEARDAY", ordinals_of(day, False)[0])
        )
        and any(
            matches_weekday(day, wanted, monthly)
            for wanted in parts.get("BYDAY", NAMES[day.weekday()]).split(",")
        )
    )


def period(day: date, parts: Parts) -> int:
    """Return the number of the day, week, month or year."""
    if parts["FREQ"] == "WEEKLY":
        return (day.toordinal() - 1 - NAMES.index(parts.get("WKST", "MO"))) // 7
    months = day.year * 12 + day.month
    return {"DAILY": day.toordinal(), "MONTHLY": months, "YEARLY": day.year}[parts["FREQ"]]


def expected(parts: Parts, start: datetime) -> Iterator[datetime]:
    """Yield the times of the series from the start on, for at least five years."""
    parts = with_defaults(parts, start.date())
    first_period, interval = period(start.date(), parts), int(parts.get("INTERVAL", "1"))
    hours, minutes = numbers(parts, "BYHOUR", start.hour), numbers(parts, "BYMINUTE", start.minute)
    times_of_day = sorted({(hour, minute) for hour in hours for minute in minutes})
    days = (start.date() + number * DAY for number in range(-366, MAX_SPAN.days + 367))
    days_in_interval = (day for day in days if (period(day, parts) - first_period) % interval == 0)
    for _, days_of_period in groupby(days_in_interval, lambda day: period(day, parts)):
        times = [
            datetime.combine(day, start.timetz()).replace(hour=hour, minute=minute)
            for day in days_of_period
            if matches(day, parts)
            for hour, minute in times_of_day
        ]
        if "BYSETPOS" in parts:
            indexes = {n - 1 if n > 0 else len(times) + n for n in numbers(parts, "BYSETPOS", 1)}
            times = [time for index, time in enumerate(times) if index in indexes]
        yield from (time for time in times if time >= start)


def number_list(minimum: int, maximum: int, max_size: int = 4) -> st.SearchStrategy[str]:
    """Draw the numbers of a part."""
    one = st.integers(minimum, maximum).filter(bool).map(str)
    return st.lists(one, min_size=1, max_size=max_size).map(",".join)


def weekdays(nth: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Draw the weekdays of BYDAY."""
    one = st.tuples(nth, st.sampled_from(NAMES)).map("".join)
    return st.lists(one, min_size=1, max_size=4).map(",".join)


PLAIN = st.just("")
NTH = PLAIN | st.integers(-5, 5).filter(bool).map(str)
ANY_FREQUENCY = {
    "INTERVAL": st.sampled_from(["1", "1", "2", "3", "4", "5", "7", "12", "53"]),
    "WKST": st.sampled_from(NAMES),
    "BYMONTH": number_list(1, 12),
    "BYHOUR": number_list(1, 23, 3),
    "BYMINUTE": number_list(1, 59, 3),
}
POSITIONS = {"BYSETPOS": st.sampled_from(["1", "-1", "2", "-2", "1,-1", "3,5,-7", "10"])}
BY_FREQUENCY = {
    "DAILY": {"BYMONTHDAY": number_list(-31, 31), "BYDAY": weekdays(PLAIN)},
    "WEEKLY": {"BYDAY": weekdays(PLAIN)} | POSITIONS,
    "MONTHLY": {"BYMONTHDAY": number_list(-31, 31), "BYDAY": weekdays(NTH)} | POSITIONS,
    "YEARLY": {
        "BYMONTHDAY": number_list(-31, 31),
        "BYYEARDAY": number_list(-366, 366, 20),
        "BYDAY": weekdays(NTH),
    }
    | POSITIONS,
}
RULES = st.sampled_from(sorted(BY_FREQUENCY)).flatmap(
    lambda freq: st.fixed_dictionaries(
        {"FREQ": st.just(freq)}, optional=ANY_FREQUENCY | BY_FREQUENCY[freq]
    )
)
STARTS = st.datetimes(
    datetime(1970, 1, 1),  # noqa: DTZ001
    datetime(2090, 12, 31),  # noqa: DTZ001
    timezones=st.just(UTC),
)


@given(parts=RULES, start=STARTS, count=st.integers(1, 40))
def test_a_series_has_exactly_the_days_that_match_the_rule(
    parts: Parts, start: datetime, count: int
) -> None:
    rule = ";".join(f"{name}={value}" for name, value in parts.items()) + f";COUNT={count}"
    expected_starts = [time for time in expected(parts, start) if time <= start + MAX_SPAN][:count]
    found = occurrences(Meeting(start, start + HOUR), rule, "UTC")
    if isinstance(found, InvalidInput):
        assert [problem.field for problem in found.problems] == ["rrule"]
        lacks_by_part = "BYSETPOS" in parts and not any(
            name.startswith("BY") and name != "BYSETPOS" for name in parts
        )
        assert lacks_by_part or len(expected_starts) < count
    else:
        assert [occurrence.start for occurrence in found] == expected_starts
