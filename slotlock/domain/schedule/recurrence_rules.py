"""Parse and validate recurrence rules (RFC 5545, 3.3.10)."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from math import prod

from slotlock.domain.schedule.zones import validate_year
from slotlock.domain.shared.value_object import value_object

MAX_OCCURRENCES = 500
MAX_RULE_LENGTH = 500
MAX_SET_POSITIONS = 31
MAX_TIMES_PER_DAY = 24

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_WEEKDAY_PATTERN = rf"([+-]?[0-9]{{1,2}})?({'|'.join(WEEKDAYS)})"
_NUMBER_PATTERN = "[+-]?[0-9]{1,4}"
# The minimum and maximum of each part that lists numbers, and whether negative numbers count from
# the end. BYWEEKNO is missing: dateutil gets weeks around the new year wrong (pull request 1537).
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
# Parts whose few values are listed in the problem text.
_ENUMERATED_PARTS = ("FREQ", "WKST")
# The frequencies that allow a part (RFC 5545, table in 3.3.10). BYSETPOS does not allow DAILY,
# where it could only choose among times of the same day.
_ALLOWED_FREQUENCIES = {
    "BYMONTHDAY": ("YEARLY", "MONTHLY", "DAILY"),
    "BYYEARDAY": ("YEARLY",),
    "BYSETPOS": ("YEARLY", "MONTHLY", "WEEKLY"),
}


@value_object
class WeekdayRule:
    """A weekday (Monday is 0); `nth` selects one in a month or year, from the end if negative."""

    weekday: int
    nth: int | None = None


@value_object
class RecurrenceRule:
    """A rule with an end. `until` is a date, a naive local time or an instant in UTC.

    `by_parts` holds the numbers of the BY parts other than BYDAY, by name.
    """

    frequency: str
    interval: int
    count: int | None
    until: date | datetime | None
    week_start: int
    weekdays: tuple[WeekdayRule, ...]
    by_parts: Mapping[str, tuple[int, ...]]

    @property
    def max_weekday_ordinal(self) -> int:
        """Return the largest n for which an nth weekday exists in the rule's month or year."""
        return 53 if self.frequency == "YEARLY" and "BYMONTH" not in self.by_parts else 5


def parse_rule(text: str) -> RecurrenceRule | str:
    """Return the rule that the text describes, or the problem with it as a sentence."""
    if len(text) > MAX_RULE_LENGTH:
        return f"Please use at most {MAX_RULE_LENGTH} characters."
    if not text.isascii():
        return "A rule can contain only ASCII characters."
    if len(text.split()) > 1:
        return "A rule is one line without spaces. Please list excluded dates as holidays."
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
            allowed = ", ".join(_PART_PATTERNS)
            return f"A rule has parts as in FREQ=WEEKLY;COUNT=10. The parts are {allowed}."
        if name in parts:
            return f"{name} can appear only once."
        if not re.fullmatch(_PART_PATTERNS[name], value, re.ASCII):
            if name in _ENUMERATED_PARTS:
                allowed = _PART_PATTERNS[name].replace("|", ", ")
                return f"{name} cannot be {value!r}. It must be one of {allowed}."
            return f"{name} cannot be {value!r}."
        parts[name] = value
    if "FREQ" not in parts:
        return "A rule needs the part FREQ."
    if ("COUNT" in parts) == ("UNTIL" in parts):
        return "A rule needs either COUNT or UNTIL."
    return parts


def _validate_numbers(numbers: Mapping[str, tuple[int, ...]]) -> str | None:
    for name, values in numbers.items():
        minimum, maximum, signed = (_LIST_PARTS | _SINGLE_PARTS)[name]
        if not all(minimum <= (abs(value) if signed else value) <= maximum for value in values):
            from_end = f" or from -{maximum} to -{minimum}" if signed else ""
            return f"{name} must be from {minimum} to {maximum}{from_end}."
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
        return "BYDAY can number weekdays only with FREQ=YEARLY or FREQ=MONTHLY."
    maximum = rule.max_weekday_ordinal
    if any(not 1 <= abs(nth) <= maximum for nth in ordinals):
        return f"BYDAY must number weekdays from 1 to {maximum} or from -{maximum} to -1 here."
    return None


def _validate_by_parts(rule: RecurrenceRule) -> str | None:
    for name, frequencies in _ALLOWED_FREQUENCIES.items():
        if name in rule.by_parts and rule.frequency not in frequencies:
            return f"{name} cannot be combined with FREQ={rule.frequency}."
    positions = rule.by_parts.get("BYSETPOS", ())
    if positions and not rule.weekdays and len(rule.by_parts) == 1:
        return "BYSETPOS needs another BY part to choose from."
    if len(positions) > MAX_SET_POSITIONS:
        return f"BYSETPOS can list at most {MAX_SET_POSITIONS} positions."
    times = prod(len(set(rule.by_parts.get(name, (0,)))) for name in ("BYHOUR", "BYMINUTE"))
    if times > MAX_TIMES_PER_DAY:
        return f"A rule can match at most {MAX_TIMES_PER_DAY} times per day."
    return None
