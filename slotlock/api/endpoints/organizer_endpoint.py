"""Plain HTTP for organisers: who may ask, and answers that are JSON whatever goes wrong."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from slotlock.auth.authentication import authenticate, user_to_charge, verify_authorization
from slotlock.auth.container import Auth
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.users.user import Caller
from slotlock.graphql.core.errors import (
    INTERNAL_MESSAGE,
    RATE_LIMITED_MESSAGE,
    RETRY_AFTER_HEADERS,
    ErrorCode,
    RateLimitedError,
    log_error,
)
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.graphql.transport.client_info import client_address
from slotlock.infrastructure.mongo.client import is_unavailable

MAX_LOGGED_PATH_CHARS = 100
BEARER_CHALLENGE = {"WWW-Authenticate": "Bearer"}

Handler = Callable[[Auth, Caller, Request], Awaitable[Response]]


class HttpError(Exception):
    """The request is answered by its status; the code and the message say why."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers


class OrganizerEndpoint:
    """The ASGI application behind one address, which organisers ask with one method."""

    def __init__(
        self, auth: Auth, rate_limits: OperationRateLimits, handler: Handler, method: str = "POST"
    ) -> None:
        self._auth = auth
        self._rate_limits = rate_limits
        self._handler = handler
        self._method = method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # Quoted: a path can hold line breaks, with which somebody could write lines of the log.
        what = repr(scope["path"][:MAX_LOGGED_PATH_CHARS])
        response = await handle_errors(what, self._handle_request(Request(scope, receive)))
        if response is not None:
            await response(scope, receive, send)

    async def _handle_request(self, request: Request) -> Response:
        await charge_rate(self._auth, self._rate_limits, request, {OperationKind.FILE: 1})
        if request.method != self._method:
            text = f"This takes {self._method}."
            raise HttpError(405, ErrorCode.BAD_USER_INPUT, text, {"Allow": self._method})
        organiser = await require_organizer(self._auth, request)
        return await self._handler(self._auth, organiser, request)


async def handle_errors(subject: str, pending_response: Awaitable[Response]) -> Response | None:
    """The answer, or JSON that says what went wrong with it; None when nobody is left to hear."""
    try:
        return await pending_response
    except HttpError as refusal:
        response = error_response(refusal.status, refusal.code, str(refusal))
        response.headers.update(refusal.headers or {})
        return response
    except RateLimitedError as error:
        response = error_response(
            429, ErrorCode.RATE_LIMITED, RATE_LIMITED_MESSAGE, retryAfterMs=error.retry_after_ms
        )
        response.headers.update(error.headers)
        return response
    except ClientDisconnect:
        return None
    except Exception as error:
        error_id = log_error(f"{subject} failed", error)
        away = is_unavailable(error)
        response = error_response(
            503 if away else 500, ErrorCode.INTERNAL, INTERNAL_MESSAGE, errorId=error_id
        )
        response.headers.update(RETRY_AFTER_HEADERS if away else {})
        return response


async def require_organizer(auth: Auth, request: Request) -> Caller:
    """The organiser who asks, as of now. Errors: HttpRefusal."""
    caller = await optional_caller(auth, request)
    if caller is None:
        raise HttpError(401, ErrorCode.UNAUTHENTICATED, "Please sign in first.", BEARER_CHALLENGE)
    if not caller.is_organizer:
        raise HttpError(403, ErrorCode.FORBIDDEN, "Only organisers may do this.")
    return caller


async def charge_rate(
    auth: Auth,
    rate_limits: OperationRateLimits,
    request: Request,
    costs: Mapping[OperationKind, int],
) -> None:
    """Count a request, whatever comes of it, as one to `/graphql` is. Errors: RateLimitedError."""
    token = verify_authorization(auth, request.headers.get("authorization"))
    user_id = user_to_charge(auth, token)
    await rate_limits.wait(rate_limits.charge(costs, user_id, client_address(request.scope)))


async def optional_caller(auth: Auth, request: Request) -> Caller | None:
    """Who asks, or None for nobody in particular. Errors: HttpRefusal for a bad token."""
    try:
        return await authenticate(auth, request.headers.get("authorization"))
    except BadTokenError as error:
        raise HttpError(401, ErrorCode.UNAUTHENTICATED, str(error), BEARER_CHALLENGE) from None


def error_response(status: int, code: str, message: str, **fields: Any) -> JSONResponse:
    """The answer to a request that had no effect."""
    return JSONResponse({"error": message, "code": code, **fields}, status)


def query_params(request: Request, *allowed: str) -> dict[str, str]:
    """The parameters of the query string. Errors: HttpRefusal.

    One that is misspelt is refused: a dry run must not become an import by it.
    """
    given = request.query_params.multi_items()
    names = [name for name, _ in given]
    for name in names:
        if name not in allowed or names.count(name) > 1:
            text = f"The parameters are {', '.join(allowed)}, each at most once."
            raise HttpError(400, ErrorCode.BAD_USER_INPUT, text)
    return dict(given)


async def read_body(request: Request, media_type: str, max_bytes: int) -> bytes:
    """The body, if it is what is wanted. Errors: HttpRefusal."""
    content_type, _, rest = request.headers.get("content-type", "").partition(";")
    charset = rest.lower().partition("charset=")[2].partition(";")[0].strip(' "')
    if content_type.strip().lower() != media_type or charset not in ("", "utf-8"):
        text = f"This takes {media_type}, in UTF-8."
        raise HttpError(415, ErrorCode.BAD_USER_INPUT, text, {"Accept": media_type})
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            close = {"Connection": "close"}
            raise HttpError(
                413, ErrorCode.LIMIT_EXCEEDED, f"At most {max_bytes} bytes at once.", close
            )
    return bytes(body)
