"""Scalars of our own: times that always carry an offset, zones that exist, addresses."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import NewType

import strawberry
from graphql import StringValueNode, ValueNode
from strawberry.types.scalar import ScalarDefinition

from slotlock.domain.schedule.zones import find_zone

# RFC 3339, 5.6, with the offset required; fromisoformat alone takes much that is not RFC 3339.
_RFC3339 = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?"
    r"([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
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


def parse_zone(value: object) -> str:
    """The name of a zone that exists. Errors: ValueError."""
    if not isinstance(value, str) or find_zone(value) is None:
        raise ValueError("a time zone is an IANA name, like Europe/Berlin")
    return value


def parse_email_address(value: object) -> str:
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


def _scalar(
    name: str,
    description: str,
    serialize: Callable[..., str],
    parse: Callable[[object], object],
    specified_by_url: str | None = None,
) -> ScalarDefinition:
    """A scalar that is a string, as a variable and as a literal."""

    def parse_literal(node: ValueNode, _variables: object = None) -> object:
        # Left to itself, graphql-core takes the name of an enum's value for a string.
        return parse(node.value if isinstance(node, StringValueNode) else None)

    return strawberry.scalar(
        name=name,
        description=description,
        specified_by_url=specified_by_url,
        serialize=serialize,
        parse_value=parse,
        parse_literal=parse_literal,
    )


SCALARS: dict[object, ScalarDefinition] = {
    datetime: _scalar(
        "DateTime",
        "A time: `date-time` of RFC 3339, so always with an offset, like "
        "`2030-01-31T14:00:00+01:00`. Answered in UTC to the millisecond; further digits, at most "
        "9 in all, are cut off. There are no leap seconds, and no times before year 1 or after "
        "year 9999 in UTC.",
        format_time,
        parse_time,
        "https://www.rfc-editor.org/rfc/rfc3339#section-5.6",
    ),
    date: _scalar(
        "Date",
        "A day of the calendar, like `2030-01-31`.",
        date.isoformat,
        parse_date,
        "https://scalars.graphql.org/chillicream/local-date.html",
    ),
    time: _scalar(
        "LocalTime",
        "What a clock on the wall shows, like `14:00` or `14:00:30`.",
        time.isoformat,
        parse_local_time,
    ),
    TimeZone: _scalar(
        "TimeZone",
        "The name of a time zone in the IANA database, like `Europe/Berlin`.",
        str,
        parse_zone,
        "https://www.iana.org/time-zones",
    ),
    EmailAddress: _scalar(
        "EmailAddress",
        "An e-mail address, kept and answered in lower case and one form of Unicode. Any text can "
        "be sent: one that is no address is told by `InvalidInput`, or is nobody's.",
        str,
        parse_email_address,
        "https://www.rfc-editor.org/rfc/rfc5321",
    ),
}
