"""How the API writes times. Commands that import no GraphQL use it, too."""

from datetime import UTC, datetime

import orjson


def format_time(instant: datetime) -> str:
    """Format a time in UTC as RFC 3339 with milliseconds."""
    if instant.tzinfo is not UTC:
        instant = instant.astimezone(UTC)
    # A third of the time of `isoformat`. The text is in quotes, and ends in a variable way.
    seconds = orjson.dumps(instant)[1:20].decode()
    milliseconds = instant.microsecond // 1000
    return f"{seconds}.{milliseconds:03}Z" if milliseconds else seconds + ".000Z"


def format_times(instants: list[datetime]) -> list[str]:
    """Format times as `format_time` does. Most are whole seconds in UTC, and need no call each."""
    text = orjson.dumps(instants, option=orjson.OPT_UTC_Z)
    if b"." in text or text.count(b'Z"') != len(instants):
        return [format_time(instant) for instant in instants]
    formatted: list[str] = orjson.loads(text.replace(b'Z"', b'.000Z"'))
    return formatted


# Executed operations serialize lists with it.
format_time.serialize_all = format_times  # type: ignore[attr-defined]
