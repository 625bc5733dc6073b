"""The settings of logs; `settings.Settings` inherits them."""

from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings


class LogSettings(BaseSettings):
    """The form, the level and the content of the log, which a process writes to stderr."""

    log_format: Literal["text", "json"] = Field(
        default="text",
        description="The form of log lines: `text`, or `json` with one object a line.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="The lowest level that slotlock logs: `debug`, `info`, `warning` or `error`.",
    )
    access_log: bool = Field(
        default=False,
        description="Whether the server logs each HTTP request and each operation on a socket. "
        "A line has the method, path, status, operation name, duration, request id and user id. "
        "It has no query text, variables, tokens or addresses.",
    )
