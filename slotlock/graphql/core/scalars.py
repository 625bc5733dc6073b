"""Scalars: times with an offset, dates, local times, time zones and e-mail addresses."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from typing import NewType

import strawberry
from graphql import StringValueNode, ValueNode
from strawberry.types.scalar import ScalarDefinition

from slotlock.domain.schedule.zones import UNKNOWN_ZONE, find_zone
from slotlock.graphql.times import format_time

# RFC 3339, section 5.6. `fromisoformat` alone also accepts forms that are not RFC 3339.
_RFC3339 = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d{1,9})?"
    r"([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)",
    re.ASCII,
)
# ISO 8601 has it for the end of a day, RFC 3339 has not.
END_OF_DAY = "24:00"
END_OF_DAY_MESSAGE = "A day has no 24:00. Please use 00:00 of the next day."


def parse_time(value: object) -> datetime:
    """Return the time in UTC, truncated to milliseconds. Errors: ValueError."""
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise ValueError("Please use a time with an offset, like 2030-01-31T14:00:00+01:00.")
    if value[11:].startswith(END_OF_DAY):
        raise ValueError(END_OF_DAY_MESSAGE)
    try:
        instant = datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("This time does not exist.") from None
    return instant.replace(microsecond=instant.microsecond // 1000 * 1000)


def parse_zone(value: object) -> str:
    """Return the name of an existing time zone. Errors: ValueError."""
    if not isinstance(value, str) or find_zone(value) is None:
        raise ValueError(UNKNOWN_ZONE.message)
    return value


def parse_email_address(value: object) -> str:
    """Return any string: `InvalidInput` reports invalid addresses. Errors: ValueError."""
    if not isinstance(value, str):
        raise ValueError("An e-mail address must be a string.")  # noqa: TRY004
    return value


def parse_date(value: object) -> date:
    """Return a calendar date. Errors: ValueError."""
    if not isinstance(value, str) or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", value, re.ASCII):
        raise ValueError("Please use a date like 2030-01-31.")
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise ValueError("This date does not exist.") from None


def parse_local_time(value: object) -> time:
    """Return a time of day without a zone. Errors: ValueError."""
    if not isinstance(value, str) or not re.fullmatch(r"\d{2}:\d{2}(:\d{2})?", value, re.ASCII):
        raise ValueError("Please use a time of day like 14:00 or 14:00:30.")
    if value.startswith(END_OF_DAY):
        raise ValueError(END_OF_DAY_MESSAGE)
    try:
        return time.fromisoformat(value)
    except ValueError:
        raise ValueError("This time does not exist.") from None


TimeZone = NewType("TimeZone", str)
EmailAddress = NewType("EmailAddress", str)


def _scalar(
    name: str,
    description: str,
    serialize: Callable[..., str],
    parse: Callable[[object], object],
    specified_by_url: str | None = None,
) -> ScalarDefinition:
    """Define a scalar that is sent as a string, both as a variable and as a literal."""

    def parse_literal(node: ValueNode, _variables: object = None) -> object:
        # By default graphql-core also accepts an enum literal as a string.
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
        "A point in time, as `date-time` of RFC 3339 with an offset, like "
        "`2030-01-31T14:00:00+01:00`. The server returns UTC with milliseconds and truncates "
        "further digits (at most 9). Leap seconds and years outside 1 to 9999 (UTC) are invalid.",
        format_time,
        parse_time,
        "https://www.rfc-editor.org/rfc/rfc3339#section-5.6",
    ),
    date: _scalar(
        "Date",
        "A calendar date, like `2030-01-31`.",
        date.isoformat,
        parse_date,
        "https://scalars.graphql.org/chillicream/local-date.html",
    ),
    time: _scalar(
        "LocalTime",
        "A time of day without a zone, like `14:00` or `14:00:30`.",
        time.isoformat,
        parse_local_time,
    ),
    TimeZone: _scalar(
        "TimeZone",
        "A time zone of the IANA database, like `Europe/Berlin`.",
        str,
        parse_zone,
        "https://www.iana.org/time-zones",
    ),
    EmailAddress: _scalar(
        "EmailAddress",
        "An e-mail address. The server stores and returns it in lower case and Unicode NFC, "
        "without the blanks and line ends around it. Any "
        "string is accepted; an invalid address leads to `InvalidInput` or matches no account. "
        "`login` and the invitations to teams take a user name as well.",
        str,
        parse_email_address,
        "https://www.rfc-editor.org/rfc/rfc5321",
    ),
}
