"""Series of any rule, in UTC, computed a second time by asking of every day whether it matches."""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st

from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.recurrence import MAX_SPAN, occurrences
from slotlock.domain.shared.validation import InvalidInput

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NAMES = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
Parts = Mapping[str, str]


def numbers(parts: Parts, name: str, default: int) -> list[int]:
    """The numbers of a part."""
    return [int(each) for each in parts.get(name, str(default)).split(",")]


def after(day: date, monthly: bool) -> date:
    """The first day of the next month or year."""
    if not monthly:
        return date(day.year + 1, 1, 1)
    return (day.replace(day=1) + 31 * DAY).replace(day=1)


def place(day: date, monthly: bool) -> tuple[int, int]:
    """Which day of its month or year it is, from the beginning and from the end."""
    first = day.replace(day=1) if monthly else date(day.year, 1, 1)
    return (day - first).days + 1, -(after(day, monthly) - day).days


def on_weekday(day: date, wanted: str, monthly: bool) -> bool:
    """Whether a day is what one value of BYDAY says."""
    nth, name = wanted[:-2], wanted[-2:]
    front, back = place(day, monthly)
    ordinals = {(front - 1) // 7 + 1, -((-back - 1) // 7 + 1)}
    return NAMES[day.weekday()] == name and (not nth or int(nth) in ordinals)


def completed(parts: Parts, start: date) -> Parts:
    """The parts with what they leave to the start."""
    if {"BYDAY", "BYMONTHDAY", "BYYEARDAY"} & parts.keys() or parts["FREQ"] == "DAILY":
        return parts
    if parts["FREQ"] == "WEEKLY":
        return {"BYDAY": NAMES[start.weekday()], **parts}
    month = {"BYMONTH": str(start.month)} if parts["FREQ"] == "YEARLY" else {}
    return {**month, "BYMONTHDAY": str(start.day), **parts}


def matches(day: date, parts: Parts) -> bool:
    """Whether every part that speaks of days says yes to this one."""
    monthly = parts["FREQ"] == "MONTHLY" or "BYMONTH" in parts
    return (
        day.month in numbers(parts, "BYMONTH", day.month)
        and not {*place(day, True)}.isdisjoint(numbers(parts, "BYMONTHDAY", day.day))
        and not {*place(day, False)}.isdisjoint(numbers(parts, "BYYEARDAY", place(day, False)[0]))
        and any(
            on_weekday(day, wanted, monthly)
            for wanted in parts.get("BYDAY", NAMES[day.weekday()]).split(",")
        )
    )


def period(day: date, parts: Parts) -> int:
    """The number of the day, week, month or year."""
    if parts["FREQ"] == "WEEKLY":
        return (day.toordinal() - 1 - NAMES.index(parts.get("WKST", "MO"))) // 7
    months = day.year * 12 + day.month
    return {"DAILY": day.toordinal(), "MONTHLY": months, "YEARLY": day.year}[parts["FREQ"]]


def expected(parts: Parts, start: datetime) -> Iterator[datetime]:
    """The times of the series from the start on, for at least five years."""
    parts = completed(parts, start.date())
    begin, interval = period(start.date(), parts), int(parts.get("INTERVAL", "1"))
    hours, minutes = numbers(parts, "BYHOUR", start.hour), numbers(parts, "BYMINUTE", start.minute)
    clocks = sorted({(hour, minute) for hour in hours for minute in minutes})
    days = (start.date() + ahead * DAY for ahead in range(-366, MAX_SPAN.days + 367))
    fitting = (day for day in days if (period(day, parts) - begin) % interval == 0)
    for _, those in groupby(fitting, lambda day: period(day, parts)):
        times = [
            datetime.combine(day, start.timetz()).replace(hour=hour, minute=minute)
            for day in those
            if matches(day, parts)
            for hour, minute in clocks
        ]
        if "BYSETPOS" in parts:
            chosen = {n - 1 if n > 0 else len(times) + n for n in numbers(parts, "BYSETPOS", 1)}
            times = [time for at, time in enumerate(times) if at in chosen]
        yield from (time for time in times if time >= start)


def listed(least: int, most: int, longest: int = 4) -> st.SearchStrategy[str]:
    """Numbers as a part lists them."""
    one = st.integers(least, most).filter(bool).map(str)
    return st.lists(one, min_size=1, max_size=longest).map(",".join)


def weekdays(nth: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Weekdays as BYDAY lists them."""
    one = st.tuples(nth, st.sampled_from(NAMES)).map("".join)
    return st.lists(one, min_size=1, max_size=4).map(",".join)


PLAIN = st.just("")
NTH = PLAIN | st.integers(-5, 5).filter(bool).map(str)
ANY = {
    "INTERVAL": st.sampled_from(["1", "1", "2", "3", "4", "5", "7", "12", "53"]),
    "WKST": st.sampled_from(NAMES),
    "BYMONTH": listed(1, 12),
    "BYHOUR": listed(1, 23, 3),
    "BYMINUTE": listed(1, 59, 3),
}
POSITIONS = {"BYSETPOS": st.sampled_from(["1", "-1", "2", "-2", "1,-1", "3,5,-7", "10"])}
WITH = {
    "DAILY": {"BYMONTHDAY": listed(-31, 31), "BYDAY": weekdays(PLAIN)},
    "WEEKLY": {"BYDAY": weekdays(PLAIN)} | POSITIONS,
    "MONTHLY": {"BYMONTHDAY": listed(-31, 31), "BYDAY": weekdays(NTH)} | POSITIONS,
    "YEARLY": {
        "BYMONTHDAY": listed(-31, 31),
        "BYYEARDAY": listed(-366, 366, 20),
        "BYDAY": weekdays(NTH),
    }
    | POSITIONS,
}
RULES = st.sampled_from(sorted(WITH)).flatmap(
    lambda freq: st.fixed_dictionaries({"FREQ": st.just(freq)}, optional=ANY | WITH[freq])
)
STARTS = st.datetimes(
    datetime(1970, 1, 1),  # noqa: DTZ001
    datetime(2090, 12, 31),  # noqa: DTZ001
    timezones=st.just(UTC),
)


# SLOTLOCK_CAMPAIGN says how many.
@settings(deadline=None, max_examples=int(os.environ.get("SLOTLOCK_CAMPAIGN", "50")))
@given(parts=RULES, start=STARTS, count=st.integers(1, 40))
def test_a_series_is_every_day_that_matches_and_no_other(
    parts: Parts, start: datetime, count: int
) -> None:
    rule = ";".join(f"{name}={value}" for name, value in parts.items()) + f";COUNT={count}"
    within = [time for time in expected(parts, start) if time <= start + MAX_SPAN][:count]
    found = occurrences(Meeting(start, start + HOUR), rule, "UTC")
    if isinstance(found, InvalidInput):
        assert [problem.field for problem in found.problems] == ["rrule"]
        needless = "BYSETPOS" in parts and not any(
            name.startswith("BY") and name != "BYSETPOS" for name in parts
        )
        assert needless or len(within) < count
    else:
        assert [each.start for each in found] == within
