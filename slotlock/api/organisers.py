"""Plain HTTP for organisers: who may ask, and answers that are JSON whatever goes wrong."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from slotlock.auth.auth import Auth
from slotlock.auth.identity import claimed, identify
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.people import Caller
from slotlock.graphql.addresses import address_of
from slotlock.graphql.errors import SORRY, TOO_MUCH, TRY_AGAIN, Code, RateLimitedError, logged
from slotlock.graphql.kinds import Kind
from slotlock.graphql.rates import Rates
from slotlock.stores.mongo import is_away

MOST_TOLD = 100
CHALLENGE = {"WWW-Authenticate": "Bearer"}

Respond = Callable[[Auth, Caller, Request], Awaitable[Response]]


class HttpRefusal(Exception):  # noqa: N818 - the fact, as the client reads it
    """The request is answered by its status; the code and the message say why."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers


class OrganisersEndpoint:
    """The ASGI application behind one address, which organisers ask with one method."""

    def __init__(self, auth: Auth, rates: Rates, respond: Respond, method: str = "POST") -> None:
        self._auth = auth
        self._rates = rates
        self._respond = respond
        self._method = method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # Quoted: a path can hold line breaks, with which somebody could write lines of the log.
        what = repr(scope["path"][:MOST_TOLD])
        response = await answered(what, self._answer(Request(scope, receive)))
        if response is not None:
            await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        await counted(self._auth, self._rates, request, {Kind.FILE: 1})
        if request.method != self._method:
            text = f"This takes {self._method}."
            raise HttpRefusal(405, Code.BAD_USER_INPUT, text, {"Allow": self._method})
        organiser = await organiser_of(self._auth, request)
        return await self._respond(self._auth, organiser, request)


async def answered(what: str, answer: Awaitable[Response]) -> Response | None:
    """The answer, or JSON that says what went wrong with it; None when nobody is left to hear."""
    try:
        return await answer
    except HttpRefusal as refusal:
        response = refused(refusal.status, refusal.code, str(refusal))
        response.headers.update(refusal.headers or {})
        return response
    except RateLimitedError as error:
        response = refused(429, Code.RATE_LIMITED, TOO_MUCH, retryAfterMs=error.retry_after_ms)
        response.headers.update(error.headers)
        return response
    except ClientDisconnect:
        return None
    except Exception as error:
        error_id = logged(f"{what} failed", error)
        away = is_away(error)
        response = refused(503 if away else 500, Code.INTERNAL, SORRY, errorId=error_id)
        response.headers.update(TRY_AGAIN if away else {})
        return response


async def organiser_of(auth: Auth, request: Request) -> Caller:
    """The organiser who asks, as of now. Errors: HttpRefusal."""
    caller = await caller_of(auth, request)
    if caller is None:
        raise HttpRefusal(401, Code.UNAUTHENTICATED, "Please sign in first.", CHALLENGE)
    if not caller.organises:
        raise HttpRefusal(403, Code.FORBIDDEN, "Only organisers may do this.")
    return caller


async def counted(auth: Auth, rates: Rates, request: Request, weights: Mapping[Kind, int]) -> None:
    """Count a request, whatever comes of it, as one to `/graphql` is. Errors: RateLimitedError."""
    whose = claimed(auth, request.headers.get("authorization"))
    await rates.allow(rates.ask(weights, whose, address_of(request.scope)))


async def caller_of(auth: Auth, request: Request) -> Caller | None:
    """Who asks, or None for nobody in particular. Errors: HttpRefusal for a bad token."""
    try:
        return await identify(auth, request.headers.get("authorization"))
    except BadTokenError as error:
        raise HttpRefusal(401, Code.UNAUTHENTICATED, str(error), CHALLENGE) from None


def refused(status: int, code: str, message: str, **more: Any) -> JSONResponse:
    """The answer to a request that had no effect."""
    return JSONResponse({"error": message, "code": code, **more}, status)


def parameters(request: Request, *known: str) -> dict[str, str]:
    """The parameters of the query string. Errors: HttpRefusal.

    One that is misspelt is refused: a dry run must not become an import by it.
    """
    given = request.query_params.multi_items()
    names = [name for name, _ in given]
    for name in names:
        if name not in known or names.count(name) > 1:
            text = f"The parameters are {', '.join(known)}, each at most once."
            raise HttpRefusal(400, Code.BAD_USER_INPUT, text)
    return dict(given)


async def body_of(request: Request, media_type: str, largest: int) -> bytes:
    """The body, if it is what is wanted. Errors: HttpRefusal."""
    content_type, _, rest = request.headers.get("content-type", "").partition(";")
    charset = rest.lower().partition("charset=")[2].partition(";")[0].strip(' "')
    if content_type.strip().lower() != media_type or charset not in ("", "utf-8"):
        text = f"This takes {media_type}, in UTF-8."
        raise HttpRefusal(415, Code.BAD_USER_INPUT, text, {"Accept": media_type})
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > largest:
            close = {"Connection": "close"}
            raise HttpRefusal(413, Code.LIMIT_EXCEEDED, f"At most {largest} bytes at once.", close)
    return bytes(body)
