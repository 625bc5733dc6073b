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
