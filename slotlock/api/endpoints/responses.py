"""JSON responses of the HTTP endpoints outside GraphQL, above all those to failures."""

from collections.abc import Awaitable
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from slotlock.graphql.core.errors import (
    INTERNAL_MESSAGE,
    RATE_LIMITED_MESSAGE,
    RETRY_AFTER_HEADERS,
    ErrorCode,
    RateLimitedError,
    log_error,
)
from slotlock.graphql.transport.http_messages import HttpError
from slotlock.infrastructure.mongo.client import is_commit_unknown, is_unavailable
from slotlock.infrastructure.request_deadline import within_deadline

UNKNOWN_CHANGE_MESSAGE = (
    "The server could not confirm the change in time: it may have happened. "
    "Please send the request again."
)


async def respond_in_time(subject: str, pending_response: Awaitable[Response]) -> Response | None:
    """Await a response until the deadline of its request; turn its failure into JSON.

    Return None if the client has disconnected. The log names the subject of an unexpected failure.
    """
    try:
        with within_deadline():
            return await pending_response
    except HttpError as error:
        response = to_response(error)
    except RateLimitedError as error:
        response = error_response(
            429, ErrorCode.RATE_LIMITED, RATE_LIMITED_MESSAGE, retryAfterMs=error.retry_after_ms
        )
        response.headers.update(error.headers)
    except ClientDisconnect:
        return None
    except Exception as error:
        error_id = log_error(f"{subject} failed", error)
        unavailable = is_unavailable(error)
        status = 503 if unavailable else 500
        code, message = ErrorCode.INTERNAL, INTERNAL_MESSAGE
        if is_commit_unknown(error):
            code, message = ErrorCode.OUTCOME_UNKNOWN, UNKNOWN_CHANGE_MESSAGE
        response = error_response(status, code, message, errorId=error_id)
        response.headers.update(RETRY_AFTER_HEADERS if unavailable else {})
    return response


def to_response(error: HttpError) -> JSONResponse:
    """Return the response to a request that is rejected."""
    return JSONResponse(error.body, error.status, error.headers)


def error_response(status: int, code: str, message: str, **fields: Any) -> JSONResponse:
    """Return the JSON response to a request that failed."""
    return JSONResponse({"error": message, "code": code, **fields}, status)


def method_not_allowed(*allowed: str) -> HttpError:
    """Return the error for a request by another method than the allowed ones."""
    return HttpError(405, f"Use {' or '.join(allowed)}.", {"Allow": ", ".join(allowed)})
