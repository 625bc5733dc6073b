"""Scalars of our own: times that always carry an offset, zones that exist, addresses."""

import re
from datetime import UTC, date, datetime, time
from functools import cache
from typing import NewType
from zoneinfo import available_timezones

import strawberry
from strawberry.types.scalar import ScalarDefinition

# RFC 3339, 5.6, with the offset required; fromisoformat alone takes much that is not RFC 3339.
_RFC3339 = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)


def parse_time(value: object) -> datetime:
    """The time in UTC to the millisecond. Errors: ValueError."""
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise ValueError("a time is RFC 3339 with an offset, like 2030-01-31T14:00:00+01:00")
    try:
        instant = datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"there is no such time: {value}") from None
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def format_time(instant: datetime) -> str:
    """The time in UTC, RFC 3339, to the millisecond."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def parse_zone(value: object) -> str:
    """The name of a zone that exists. Errors: ValueError."""
    if not isinstance(value, str) or value not in _zones():
        raise ValueError("a time zone is an IANA name, like Europe/Berlin")
    return value


def parse_address(value: object) -> str:
    """Any text: whether it is an address is answered as data, beside the other fields."""
    if not isinstance(value, str):
        raise ValueError("an e-mail address is a string")  # noqa: TRY004
    return value


def parse_date(value: object) -> date:
    """A day of the calendar. Errors: ValueError."""
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value, re.ASCII):
        raise ValueError("a date is like 2030-01-31")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise ValueError(f"there is no such date: {value}") from None


def parse_local_time(value: object) -> time:
    """What a clock on the wall shows. Errors: ValueError."""
    if not isinstance(value, str) or not re.fullmatch(r"\d{2}:\d{2}(:\d{2})?", value, re.ASCII):
        raise ValueError("a local time is like 14:00 or 14:00:30")
    try:
        return time.fromisoformat(value)
    except ValueError:
        raise ValueError(f"no clock shows {value}") from None


TimeZone = NewType("TimeZone", str)
EmailAddress = NewType("EmailAddress", str)

SCALARS: dict[object, ScalarDefinition] = {
    datetime: strawberry.scalar(
        name="DateTime",
        description="A time, RFC 3339 with an offset; answered in UTC to the millisecond.",
        specified_by_url="https://www.rfc-editor.org/rfc/rfc3339",
        serialize=format_time,
        parse_value=parse_time,
    ),
    date: strawberry.scalar(
        name="Date",
        description="A day of the calendar, like `2030-01-31`.",
        serialize=date.isoformat,
        parse_value=parse_date,
    ),
    time: strawberry.scalar(
        name="LocalTime",
        description="What a clock on the wall shows, like `14:00`.",
        serialize=time.isoformat,
        parse_value=parse_local_time,
    ),
    TimeZone: strawberry.scalar(
        name="TimeZone",
        description="The name of a time zone in the IANA database, like `Europe/Berlin`.",
        specified_by_url="https://www.iana.org/time-zones",
        serialize=str,
        parse_value=parse_zone,
    ),
    EmailAddress: strawberry.scalar(
        name="EmailAddress",
        description="An e-mail address; kept and answered in lower case.",
        specified_by_url="https://www.rfc-editor.org/rfc/rfc5321",
        serialize=str,
        parse_value=parse_address,
    ),
}
