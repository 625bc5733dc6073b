"""Errors as clients receive them: a code, a message, and nothing internal."""

import logging
import math
import secrets
import time
from enum import StrEnum
from typing import Any

from graphql import GraphQLError

from slotlock.infrastructure.mongo.client import is_unavailable, may_have_written, outage_reason
from slotlock.infrastructure.mongo.concurrency_limiter import MongoOverloadedError
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.request_deadline import current_request

INTERNAL_MESSAGE = "An internal error occurred. Please try again."
OUTCOME_UNKNOWN_MESSAGE = (
    "The server could not confirm the change in time: it may have happened. "
    "Repeat the request with the same idempotency key, or look at your bookings."
)
MAX_CAUSE_LENGTH = 200
OUTAGE_LOG_INTERVAL_S = 1.0
# How many seconds clients should wait before they retry while MongoDB, or the Redis without which
# nothing can be returned, is unavailable.
UNAVAILABLE_RETRY_AFTER_S = 1
RETRY_AFTER_HEADERS = {"Retry-After": str(UNAVAILABLE_RETRY_AFTER_S)}
RATE_LIMITED_MESSAGE = "You sent too many requests. Please try again later."

log = logging.getLogger("slotlock.graphql")


class ErrorCode(StrEnum):
    """The values of `extensions.code` of an error."""

    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "FORBIDDEN"
    BAD_USER_INPUT = "BAD_USER_INPUT"
    PARSE_FAILED = "GRAPHQL_PARSE_FAILED"
    VALIDATION_FAILED = "GRAPHQL_VALIDATION_FAILED"
    LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
    RATE_LIMITED = "RATE_LIMITED"
    INTERNAL = "INTERNAL"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    PERSISTED_QUERY_NOT_SUPPORTED = "PERSISTED_QUERY_NOT_SUPPORTED"


class GraphQLRequestError(Exception):
    """An error whose message is sent to the client; `field` is the argument that it is about."""

    def __init__(self, code: ErrorCode, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.field = field


def bad_input(field: str, message: str) -> GraphQLRequestError:
    """Create the error for an argument or an input field."""
    return GraphQLRequestError(ErrorCode.BAD_USER_INPUT, message, field)


class RateLimitedError(Exception):
    """The operation exceeds a rate limit until `retry_after_ms` have passed."""

    def __init__(self, retry_after_ms: int) -> None:
        super().__init__(retry_after_ms)
        self.retry_after_ms = retry_after_ms

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a 429 response, with `Retry-After` in whole seconds."""
        return {"Retry-After": str(-(-self.retry_after_ms // 1000))}

    @property
    def as_error(self) -> dict[str, Any]:
        """The error in a GraphQL response."""
        body = error_body(ErrorCode.RATE_LIMITED, RATE_LIMITED_MESSAGE)
        body["extensions"]["retryAfterMs"] = self.retry_after_ms
        return body


def error_body(code: ErrorCode, message: str) -> dict[str, Any]:
    """Return an error without a location in a document."""
    return {"message": message, "extensions": {"code": code}}


def format_error(error: GraphQLError, *, is_mutation: bool) -> dict[str, Any]:
    """Return the error as it is sent. Internal errors are logged and replaced by an error id."""
    original = original_error(error) or error
    if isinstance(original, GraphQLRequestError):
        return located_error_body(error, original.code, str(original), original.field)
    if isinstance(original, RateLimitedError):
        body = located_error_body(error, ErrorCode.RATE_LIMITED, RATE_LIMITED_MESSAGE)
        body["extensions"]["retryAfterMs"] = original.retry_after_ms
        return body
    # Below the root field, the change has happened, and a field of its result is missing.
    is_result = error.path is not None and len(error.path) > 1 and is_unavailable(original)
    if is_mutation and (is_result or may_have_written(original)):
        body = located_error_body(error, ErrorCode.OUTCOME_UNKNOWN, OUTCOME_UNKNOWN_MESSAGE)
    else:
        body = located_error_body(error, ErrorCode.INTERNAL, INTERNAL_MESSAGE)
    return _with_error_id(body, f"a field failed at {error.path}", original)


class OutageLog:
    """Logs failures during an outage of a server: one a second, with the count of the others."""

    def __init__(self) -> None:
        self._error_id = ""
        self._logged_at = -math.inf
        self._unlogged_count = 0

    def log(self, description: str, error: BaseException) -> str:
        """Log a failure unless one was logged within a second. Returns the id of the last one."""
        now = time.monotonic()
        if now - self._logged_at < OUTAGE_LOG_INTERVAL_S:
            self._unlogged_count += 1
            return self._error_id
        self._error_id = secrets.token_hex(6)
        # Without a traceback: every request fails alike.
        cause = f"{type(error).__name__}: {outage_reason(error)}"[:MAX_CAUSE_LENGTH]
        log.error(
            "error %s: %s: no result in time: %s (%d more since the last line)",
            self._error_id,
            description,
            cause,
            self._unlogged_count,
        )
        self._logged_at, self._unlogged_count = now, 0
        return self._error_id


_outage_log = OutageLog()


def log_error(description: str, error: BaseException) -> str:
    """Log an internal error. Returns the error id that finds it in the log."""
    if _is_outage(error):
        return _outage_log.log(description, error)
    error_id = secrets.token_hex(6)
    log.error("error %s: %s", error_id, description, exc_info=error)
    return error_id


def internal_error(description: str, error: BaseException) -> dict[str, Any]:
    """Log an internal error and return it without a location in a document."""
    return _with_error_id(error_body(ErrorCode.INTERNAL, INTERNAL_MESSAGE), description, error)


def _with_error_id(body: dict[str, Any], description: str, error: BaseException) -> dict[str, Any]:
    body["extensions"]["errorId"] = log_error(description, error)
    request = current_request()
    if request is not None and request.request_id:
        body["extensions"]["requestId"] = request.request_id
    if isinstance(error, MongoOverloadedError):
        body["extensions"]["retryAfterMs"] = error.retry_after_ms
    elif _is_outage(error):
        body["extensions"]["retryAfterMs"] = UNAVAILABLE_RETRY_AFTER_S * 1000
    return body


def _is_outage(error: BaseException) -> bool:
    return is_unavailable(error) or isinstance(error, RedisUnavailableError)


def original_error(error: GraphQLError) -> Exception | None:
    """Return what a resolver or a scalar raised; None for an error of graphql-core itself."""
    original = error.original_error
    while isinstance(original, GraphQLError):
        original = original.original_error
    return original


def located_error_body(
    error: GraphQLError, code: ErrorCode, message: str, field: str | None = None
) -> dict[str, Any]:
    """Return an error with its place in the document and in the response."""
    body = error_body(code, message)
    if field is not None:
        body["extensions"]["field"] = field
    if error.locations:
        body["locations"] = [location.formatted for location in error.locations]
    if error.path is not None:
        body["path"] = error.path
    return body
