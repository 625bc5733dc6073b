"""Failures as clients see them: a code to act on, a sentence to read, nothing internal."""

import logging
import re
import secrets
from enum import StrEnum
from typing import Any

from graphql import GraphQLError

from slotlock.infrastructure.mongo.client import is_unavailable

INTERNAL_MESSAGE = "Something went wrong on our side. Please try again."
# While MongoDB is away: how many seconds until it is worth asking again.
UNAVAILABLE_RETRY_AFTER_S = 5
RETRY_AFTER_HEADERS = {"Retry-After": str(UNAVAILABLE_RETRY_AFTER_S)}
RATE_LIMITED_MESSAGE = "This is too much at once. Please ask again later."

_FOUND_VALUE = re.compile(r"(?:, found|(\?) Found): .*", re.DOTALL)
_REJECTED_VALUE = re.compile(r"( cannot represent (?:a )?[a-z0-9 -]*value): .*", re.DOTALL)

log = logging.getLogger("slotlock.graphql")


class ErrorCode(StrEnum):
    """`extensions.code` of an error."""

    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    BAD_USER_INPUT = "BAD_USER_INPUT"
    PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
    VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    RATE_LIMITED = "RATE_LIMITED"
    INTERNAL = "INTERNAL"


class GraphQLRequestError(Exception):
    """A failure that its reader is meant to see."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class RateLimitedError(Exception):
    """There is no room for the operation before `retry_after_ms`."""

    def __init__(self, retry_after_ms: int) -> None:
        super().__init__(retry_after_ms)
        self.retry_after_ms = retry_after_ms

    @property
    def headers(self) -> dict[str, str]:
        """What an answer of 429 says of it, in whole seconds."""
        return {"Retry-After": str(-(-self.retry_after_ms // 1000))}

    @property
    def as_error(self) -> dict[str, Any]:
        """The error as it is sent."""
        sent = error_body(ErrorCode.RATE_LIMITED, RATE_LIMITED_MESSAGE)
        sent["extensions"]["retryAfterMs"] = self.retry_after_ms
        return sent


def error_body(code: ErrorCode, message: str) -> dict[str, Any]:
    """An error that has no place in a document."""
    return {"message": message, "extensions": {"code": code}}


def format_error(error: GraphQLError) -> dict[str, Any]:
    """The error as it is sent. What was not meant to be seen is logged under an id instead."""
    original = error.original_error
    while isinstance(original, GraphQLError):
        original = original.original_error
    if isinstance(original, GraphQLRequestError):
        return _located_error_body(error, original.code, str(original))
    # Without an original the executor itself objects, and a ValueError comes from a scalar of ours:
    # both speak of what the caller sent.
    if original is None or (isinstance(original, ValueError) and error.path is None):
        return _located_error_body(error, ErrorCode.BAD_USER_INPUT, without_values(error.message))
    sent = _located_error_body(error, ErrorCode.INTERNAL, INTERNAL_MESSAGE)
    return _with_error_id(sent, f"a field failed at {error.path}", original)


def without_values(message: str) -> str:
    """A message of graphql-core, which repeats what was sent whole, passwords included."""
    return _REJECTED_VALUE.sub(r"\1.", _FOUND_VALUE.sub(lambda cut: cut[1] or ".", message))


def log_error(description: str, error: BaseException) -> str:
    """Log a failure that is ours; returns the id under which it is found."""
    error_id = secrets.token_hex(6)
    if is_unavailable(error):  # one line each, however many ask meanwhile
        log.error("error %s: %s: MongoDB is away", error_id, description)
    else:
        log.error("error %s: %s", error_id, description, exc_info=error)
    return error_id


def internal_error(description: str, error: BaseException) -> dict[str, Any]:
    """A failure that is ours and has no place in a document, logged and as it is sent."""
    return _with_error_id(error_body(ErrorCode.INTERNAL, INTERNAL_MESSAGE), description, error)


def _with_error_id(body: dict[str, Any], description: str, error: BaseException) -> dict[str, Any]:
    body["extensions"]["errorId"] = log_error(description, error)
    if is_unavailable(error):
        body["extensions"]["retryAfterMs"] = UNAVAILABLE_RETRY_AFTER_S * 1000
    return body


def _located_error_body(error: GraphQLError, code: ErrorCode, message: str) -> dict[str, Any]:
    sent: dict[str, Any] = {"message": message, "extensions": {"code": code}}
    if error.locations:
        sent["locations"] = [location.formatted for location in error.locations]
    if error.path is not None:
        sent["path"] = error.path
    return sent
