"""Recurrence rules as text (RFC 5545, 3.3.10), and which of them can be kept."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import prod

from slotlock.domain.zones import year_problem

MAX_OCCURRENCES = 500
MAX_RULE = 500
MAX_POSITIONS = 31
MAX_TIMES_A_DAY = 24

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAY = rf"([+-]?[0-9]{{1,2}})?({'|'.join(WEEKDAYS)})"
_NUMBER = "[+-]?[0-9]{1,4}"
# The least and the greatest number of each part that lists some, and whether it counts from the
# end as well. No BYWEEKNO: dateutil mistakes weeks around the new year (its pull request 1537).
_LISTS = {
    "BYMONTH": (1, 12, False),
    "BYMONTHDAY": (1, 31, True),
    "BYYEARDAY": (1, 366, True),
    "BYHOUR": (0, 23, False),
    "BYMINUTE": (0, 59, False),
    "BYSETPOS": (1, 366, True),
}
_SINGLE = {"INTERVAL": (1, 9999, False), "COUNT": (1, MAX_OCCURRENCES, False)}
_FORMS = {
    "FREQ": "YEARLY|MONTHLY|WEEKLY|DAILY",
    "UNTIL": "[0-9]{8}(T[0-9]{6}Z?)?",
    "WKST": "|".join(WEEKDAYS),
    "BYDAY": f"{_DAY}(,{_DAY})*",
    **dict.fromkeys(_SINGLE, "[0-9]{1,4}"),
    **dict.fromkeys(_LISTS, f"{_NUMBER}(,{_NUMBER})*"),
}
# Those whose values are so few that they can be told.
_NAMED = ("FREQ", "WKST")
# The frequencies that go with a part; the RFC's table, 3.3.10. With DAILY, BYSETPOS could only
# choose among times of the same day.
_ONLY_WITH = {
    "BYMONTHDAY": ("YEARLY", "MONTHLY", "DAILY"),
    "BYYEARDAY": ("YEARLY",),
    "BYSETPOS": ("YEARLY", "MONTHLY", "WEEKLY"),
}


@dataclass(frozen=True, slots=True)
class Day:
    """A weekday (Monday is 0), or the nth one of its month or year, from the end if negative."""

    weekday: int
    nth: int | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that has an end. `until` is a date, a local time (naive) or an instant in UTC.

    `lists` has the numbers of each other BY part by its name.
    """

    frequency: str
    interval: int
    count: int | None
    until: date | datetime | None
    week_start: int
    days: tuple[Day, ...]
    lists: Mapping[str, tuple[int, ...]]


def parse_rule(text: str) -> Rule | str:
    """The rule that a text says, or what is wrong with it, as a sentence."""
    if len(text) > MAX_RULE:
        return f"At most {MAX_RULE} characters."
    if not text.isascii():
        return "A rule is written in ASCII."
    if len(text.split()) > 1:
        return "A rule is one line without spaces; days that are left out are `holidays`."
    parts = _parts(text.strip().upper().removeprefix("RRULE:"))
    if isinstance(parts, str):
        return parts
    numbers = {
        name: tuple(map(int, parts[name].split(","))) for name in (_SINGLE | _LISTS) & parts.keys()
    }
    if problem := _number_problem(numbers):
        return problem
    until = _until(parts["UNTIL"]) if "UNTIL" in parts else None
    if isinstance(until, str):
        return until
    rule = Rule(
        parts["FREQ"],
        numbers.get("INTERVAL", (1,))[0],
        numbers["COUNT"][0] if "COUNT" in numbers else None,
        until,
        WEEKDAYS.index(parts.get("WKST", "MO")),
        tuple(_days(parts.get("BYDAY", ""))),
        {name: numbers[name] for name in _LISTS if name in numbers},
    )
    return _day_problem(rule) or _list_problem(rule) or rule


def _parts(text: str) -> dict[str, str] | str:
    parts: dict[str, str] = {}
    for part in text.split(";"):
        name, _, value = part.partition("=")
        if name not in _FORMS:
            return f"A rule has parts like FREQ=WEEKLY;COUNT=10; they can be {', '.join(_FORMS)}."
        if name in parts:
            return f"{name} can be there once."
        if not re.fullmatch(_FORMS[name], value, re.ASCII):
            known = f": {_FORMS[name].replace('|', ', ')}" if name in _NAMED else ""
            return f"{name} cannot be {value!r}{known}."
        parts[name] = value
    if "FREQ" not in parts:
        return "A rule needs FREQ."
    if ("COUNT" in parts) == ("UNTIL" in parts):
        return "A rule needs COUNT or UNTIL, and not both."
    return parts


def _number_problem(numbers: Mapping[str, tuple[int, ...]]) -> str | None:
    for name, listed in numbers.items():
        least, most, signed = (_LISTS | _SINGLE)[name]
        if not all(least <= (abs(number) if signed else number) <= most for number in listed):
            from_end = f" or -{most} to -{least}" if signed else ""
            return f"{name} takes {least} to {most}{from_end}."
    return None


def _until(value: str) -> date | datetime | str:
    try:
        if "T" not in value:
            until: date = date.fromisoformat(value)
        else:
            until = datetime.strptime(value.rstrip("Z"), "%Y%m%dT%H%M%S")  # noqa: DTZ007
            until = until.replace(tzinfo=UTC) if value.endswith("Z") else until
    except ValueError:
        return f"UNTIL cannot be {value!r}."
    problem = year_problem(until)
    return f"UNTIL cannot be {value!r}. {problem}" if problem else until


def _days(value: str) -> Iterable[Day]:
    for nth, weekday in re.findall(_DAY, value):
        yield Day(WEEKDAYS.index(weekday), int(nth) if nth else None)


def _day_problem(rule: Rule) -> str | None:
    ordinals = [day.nth for day in rule.days if day.nth is not None]
    if not ordinals:
        return None
    if rule.frequency not in ("YEARLY", "MONTHLY"):
        return "Only of a month or a year there is an nth weekday."
    most = 53 if rule.frequency == "YEARLY" and "BYMONTH" not in rule.lists else 5
    if any(not 1 <= abs(nth) <= most for nth in ordinals):
        return f"BYDAY takes weekdays from the first to the {most}th here, or from the end."
    return None


def _list_problem(rule: Rule) -> str | None:
    for name, frequencies in _ONLY_WITH.items():
        if name in rule.lists and rule.frequency not in frequencies:
            return f"{name} does not go with FREQ={rule.frequency}."
    positions = rule.lists.get("BYSETPOS", ())
    if positions and not rule.days and len(rule.lists) == 1:
        return "BYSETPOS needs another BY part."
    if len(positions) > MAX_POSITIONS:
        return f"BYSETPOS takes at most {MAX_POSITIONS} positions."
    times = prod(len(set(rule.lists.get(name, (0,)))) for name in ("BYHOUR", "BYMINUTE"))
    return f"At most {MAX_TIMES_A_DAY} times a day." if times > MAX_TIMES_A_DAY else None
