"""Failures as clients see them: a code to act on, a sentence to read, nothing internal."""

import logging
import re
import secrets
from enum import StrEnum
from typing import Any

from graphql import GraphQLError

from slotlock.stores.mongo import is_away

SORRY = "Something went wrong on our side. Please try again."
# While MongoDB is away: how many seconds until it is worth asking again.
TRY_AGAIN_S = 5
TRY_AGAIN = {"Retry-After": str(TRY_AGAIN_S)}
TOO_MUCH = "This is too much at once. Please ask again later."

_FOUND = re.compile(r"(?:, found|(\?) Found): .*", re.DOTALL)
_VALUE = re.compile(r"( cannot represent (?:a )?[a-z0-9 -]*value): .*", re.DOTALL)

log = logging.getLogger("slotlock.graphql")


class Code(StrEnum):
    """`extensions.code` of an error."""

    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    BAD_USER_INPUT = "BAD_USER_INPUT"
    PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
    VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    RATE_LIMITED = "RATE_LIMITED"
    INTERNAL = "INTERNAL"


class RefusedError(Exception):
    """A failure that its reader is meant to see."""

    def __init__(self, code: Code, message: str) -> None:
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
    def shown(self) -> dict[str, Any]:
        """The error as it is sent."""
        sent = failure(Code.RATE_LIMITED, TOO_MUCH)
        sent["extensions"]["retryAfterMs"] = self.retry_after_ms
        return sent


def failure(code: Code, message: str) -> dict[str, Any]:
    """An error that has no place in a document."""
    return {"message": message, "extensions": {"code": code}}


def formatted(error: GraphQLError) -> dict[str, Any]:
    """The error as it is sent. What was not meant to be seen is logged under an id instead."""
    original = error.original_error
    while isinstance(original, GraphQLError):
        original = original.original_error
    if isinstance(original, RefusedError):
        return _sent(error, original.code, str(original))
    # Without an original the executor itself objects, and a ValueError comes from a scalar of ours:
    # both speak of what the caller sent.
    if original is None or (isinstance(original, ValueError) and error.path is None):
        return _sent(error, Code.BAD_USER_INPUT, without_values(error.message))
    sent = _sent(error, Code.INTERNAL, SORRY)
    return _told(sent, f"a field failed at {error.path}", original)


def without_values(message: str) -> str:
    """A message of graphql-core, which repeats what was sent whole, passwords included."""
    return _VALUE.sub(r"\1.", _FOUND.sub(lambda cut: cut[1] or ".", message))


def logged(what: str, error: BaseException) -> str:
    """Log a failure that is ours; returns the id under which it is found."""
    error_id = secrets.token_hex(6)
    if is_away(error):  # one line each, however many ask meanwhile
        log.error("error %s: %s: MongoDB is away", error_id, what)
    else:
        log.error("error %s: %s", error_id, what, exc_info=error)
    return error_id


def internal(what: str, error: BaseException) -> dict[str, Any]:
    """A failure that is ours and has no place in a document, logged and as it is sent."""
    return _told(failure(Code.INTERNAL, SORRY), what, error)


def _told(sent: dict[str, Any], what: str, error: BaseException) -> dict[str, Any]:
    sent["extensions"]["errorId"] = logged(what, error)
    if is_away(error):
        sent["extensions"]["retryAfterMs"] = TRY_AGAIN_S * 1000
    return sent


def _sent(error: GraphQLError, code: Code, message: str) -> dict[str, Any]:
    sent: dict[str, Any] = {"message": message, "extensions": {"code": code}}
    if error.locations:
        sent["locations"] = [location.formatted for location in error.locations]
    if error.path is not None:
        sent["path"] = error.path
    return sent
