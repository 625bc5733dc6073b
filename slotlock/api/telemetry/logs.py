"""The configuration of the log: text or JSON, with the ids of the request in progress.

Clients and other servers write parts of a line, such as an error of the board or the reason of a
failure.
"""

import logging
import re
from datetime import UTC, datetime
from typing import Any

import orjson

from slotlock.domain.users.user import Caller
from slotlock.infrastructure.request_deadline import current_request
from slotlock.infrastructure.telemetry import tracing

ACCESS_LOGGER = "slotlock.access"
# What the text of an exception could contain as if it was another line of the log.
_BEGIN_OF_LINE = re.compile(r"^(?=\d{4}-)", re.MULTILINE)


def logging_config(log_format: str, level: str) -> dict[str, Any]:
    """Return the configuration of `logging` for a process; `log_format` is text or json."""
    formatter = JsonFormatter if log_format == "json" else TextFormatter
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": formatter}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level.upper()},
        "loggers": {
            # uvicorn warns of every malformed request, with which a client could fill the log. The
            # driver warns of every lost connection; slotlock logs one line when MongoDB becomes
            # unavailable. The debug lines of libraries contain commands and addresses.
            "uvicorn": {"level": "INFO"},
            "uvicorn.error": {"level": "ERROR"},
            "pymongo": {"level": "ERROR"},
            # `mail` is that of aiosmtpd, which takes the mails of `slotlock dev`.
            **{
                name: {"level": "WARNING"}
                for name in ("asyncio", "urllib3", "opentelemetry", "mail")
            },
            ACCESS_LOGGER: {"level": "INFO"},
        },
    }


def request_fields() -> dict[str, str]:
    """Return the ids of the request of this task and of its trace, those that there are."""
    fields: dict[str, str] = {}
    request = current_request()
    if request is not None:
        if request.request_id:
            fields["requestId"] = request.request_id
        if isinstance(request.identity, Caller):
            # Commands without GraphQL log no users, and start faster without it.
            from slotlock.graphql.core import ids

            fields["userId"] = ids.user_global_id(request.identity.user_id)
    return fields | tracing.current_ids()


def printable(text: str, allowed: str = "") -> str:
    """Return a text with an escape instead of each character that a terminal would not print.

    A terminal obeys control characters, and a line break would begin a forged line.
    """
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in allowed else each.encode("unicode_escape").decode()
        for each in text
    )


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = request_fields() | getattr(record, "fields", {})
    return {k: printable(v) if isinstance(v, str) else v for k, v in fields.items()}


class TextFormatter(logging.Formatter):
    """One line of text, which ends with the ids of the request; a traceback follows."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  (of logging)
        """Return the line without a traceback."""
        fields = ((k, str(v).replace(" ", "\\x20")) for k, v in _fields(record).items())
        line = printable(super().formatMessage(record))
        return " ".join((line, *(f"{k}={v}" for k, v in fields)))

    def formatException(self, ei: Any) -> str:  # noqa: N802  (of logging)
        """Return a traceback, none of whose lines looks like another line of the log."""
        return _BEGIN_OF_LINE.sub("  ", printable(super().formatException(ei), "\n"))


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, which contains a traceback as a text."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": printable(record.getMessage()),
            **_fields(record),
        }
        if record.exc_info:
            line["exception"] = printable(self.formatException(record.exc_info), "\n")
        return orjson.dumps(line, default=str).decode()
