"""Recurrence rules as text (RFC 5545, 3.3.10), and which of them can be kept."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from math import prod

from slotlock.domain.schedule.zones import validate_year

MAX_OCCURRENCES = 500
MAX_RULE_LENGTH = 500
MAX_SET_POSITIONS = 31
MAX_TIMES_PER_DAY = 24

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_WEEKDAY_PATTERN = rf"([+-]?[0-9]{{1,2}})?({'|'.join(WEEKDAYS)})"
_NUMBER_PATTERN = "[+-]?[0-9]{1,4}"
# The least and the greatest number of each part that lists some, and whether it counts from the
# end as well. No BYWEEKNO: dateutil mistakes weeks around the new year (its pull request 1537).
_LIST_PARTS = {
    "BYMONTH": (1, 12, False),
    "BYMONTHDAY": (1, 31, True),
    "BYYEARDAY": (1, 366, True),
    "BYHOUR": (0, 23, False),
    "BYMINUTE": (0, 59, False),
    "BYSETPOS": (1, 366, True),
}
_SINGLE_PARTS = {"INTERVAL": (1, 9999, False), "COUNT": (1, MAX_OCCURRENCES, False)}
_PART_PATTERNS = {
    "FREQ": "YEARLY|MONTHLY|WEEKLY|DAILY",
    "UNTIL": "[0-9]{8}(T[0-9]{6}Z?)?",
    "WKST": "|".join(WEEKDAYS),
    "BYDAY": f"{_WEEKDAY_PATTERN}(,{_WEEKDAY_PATTERN})*",
    **dict.fromkeys(_SINGLE_PARTS, "[0-9]{1,4}"),
    **dict.fromkeys(_LIST_PARTS, f"{_NUMBER_PATTERN}(,{_NUMBER_PATTERN})*"),
}
# Those whose values are so few that they can be told.
_ENUMERATED_PARTS = ("FREQ", "WKST")
# The frequencies that go with a part; the RFC's table, 3.3.10. With DAILY, BYSETPOS could only
# choose among times of the same day.
_ALLOWED_FREQUENCIES = {
    "BYMONTHDAY": ("YEARLY", "MONTHLY", "DAILY"),
    "BYYEARDAY": ("YEARLY",),
    "BYSETPOS": ("YEARLY", "MONTHLY", "WEEKLY"),
}


@dataclass(frozen=True, slots=True)
class WeekdayRule:
    """A weekday (Monday is 0), or the nth one of its month or year, from the end if negative."""

    weekday: int
    nth: int | None = None


@dataclass(frozen=True, slots=True)
class RecurrenceRule:
    """A rule that has an end. `until` is a date, a local time (naive) or an instant in UTC.

    `lists` has the numbers of each other BY part by its name.
    """

    frequency: str
    interval: int
    count: int | None
    until: date | datetime | None
    week_start: int
    weekdays: tuple[WeekdayRule, ...]
    by_parts: Mapping[str, tuple[int, ...]]


def parse_rule(text: str) -> RecurrenceRule | str:
    """The rule that a text says, or what is wrong with it, as a sentence."""
    if len(text) > MAX_RULE_LENGTH:
        return f"At most {MAX_RULE_LENGTH} characters."
    if not text.isascii():
        return "A rule is written in ASCII."
    if len(text.split()) > 1:
        return "A rule is one line without spaces; days that are left out are `holidays`."
    parts = _parse_parts(text.strip().upper().removeprefix("RRULE:"))
    if isinstance(parts, str):
        return parts
    numbers = {
        name: tuple(map(int, parts[name].split(",")))
        for name in (_SINGLE_PARTS | _LIST_PARTS) & parts.keys()
    }
    if problem := _validate_numbers(numbers):
        return problem
    until = _parse_until(parts["UNTIL"]) if "UNTIL" in parts else None
    if isinstance(until, str):
        return until
    rule = RecurrenceRule(
        parts["FREQ"],
        numbers.get("INTERVAL", (1,))[0],
        numbers["COUNT"][0] if "COUNT" in numbers else None,
        until,
        WEEKDAYS.index(parts.get("WKST", "MO")),
        tuple(_parse_weekdays(parts.get("BYDAY", ""))),
        {name: numbers[name] for name in _LIST_PARTS if name in numbers},
    )
    return _validate_weekdays(rule) or _validate_by_parts(rule) or rule


def _parse_parts(text: str) -> dict[str, str] | str:
    parts: dict[str, str] = {}
    for part in text.split(";"):
        name, _, value = part.partition("=")
        if name not in _PART_PATTERNS:
            known = ", ".join(_PART_PATTERNS)
            return f"A rule has parts like FREQ=WEEKLY;COUNT=10; they can be {known}."
        if name in parts:
            return f"{name} can be there once."
        if not re.fullmatch(_PART_PATTERNS[name], value, re.ASCII):
            known = (
                f": {_PART_PATTERNS[name].replace('|', ', ')}" if name in _ENUMERATED_PARTS else ""
            )
            return f"{name} cannot be {value!r}{known}."
        parts[name] = value
    if "FREQ" not in parts:
        return "A rule needs FREQ."
    if ("COUNT" in parts) == ("UNTIL" in parts):
        return "A rule needs COUNT or UNTIL, and not both."
    return parts


def _validate_numbers(numbers: Mapping[str, tuple[int, ...]]) -> str | None:
    for name, listed in numbers.items():
        least, most, signed = (_LIST_PARTS | _SINGLE_PARTS)[name]
        if not all(least <= (abs(number) if signed else number) <= most for number in listed):
            from_end = f" or -{most} to -{least}" if signed else ""
            return f"{name} takes {least} to {most}{from_end}."
    return None


def _parse_until(value: str) -> date | datetime | str:
    try:
        if "T" not in value:
            until: date = date.fromisoformat(value)
        else:
            until = datetime.strptime(value.rstrip("Z"), "%Y%m%dT%H%M%S")  # noqa: DTZ007
            until = until.replace(tzinfo=UTC) if value.endswith("Z") else until
    except ValueError:
        return f"UNTIL cannot be {value!r}."
    problem = validate_year(until)
    return f"UNTIL cannot be {value!r}. {problem}" if problem else until


def _parse_weekdays(value: str) -> Iterable[WeekdayRule]:
    for nth, weekday in re.findall(_WEEKDAY_PATTERN, value):
        yield WeekdayRule(WEEKDAYS.index(weekday), int(nth) if nth else None)


def _validate_weekdays(rule: RecurrenceRule) -> str | None:
    ordinals = [day.nth for day in rule.weekdays if day.nth is not None]
    if not ordinals:
        return None
    if rule.frequency not in ("YEARLY", "MONTHLY"):
        return "Only of a month or a year there is an nth weekday."
    most = 53 if rule.frequency == "YEARLY" and "BYMONTH" not in rule.by_parts else 5
    if any(not 1 <= abs(nth) <= most for nth in ordinals):
        return f"BYDAY takes weekdays from the first to the {most}th here, or from the end."
    return None


def _validate_by_parts(rule: RecurrenceRule) -> str | None:
    for name, frequencies in _ALLOWED_FREQUENCIES.items():
        if name in rule.by_parts and rule.frequency not in frequencies:
            return f"{name} does not go with FREQ={rule.frequency}."
    positions = rule.by_parts.get("BYSETPOS", ())
    if positions and not rule.weekdays and len(rule.by_parts) == 1:
        return "BYSETPOS needs another BY part."
    if len(positions) > MAX_SET_POSITIONS:
        return f"BYSETPOS takes at most {MAX_SET_POSITIONS} positions."
    times = prod(len(set(rule.by_parts.get(name, (0,)))) for name in ("BYHOUR", "BYMINUTE"))
    return f"At most {MAX_TIMES_PER_DAY} times a day." if times > MAX_TIMES_PER_DAY else None
