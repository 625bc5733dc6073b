"""GraphQL over HTTP, and over server-sent events for clients that prefer those."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qsl

import orjson
from graphql import OperationType
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from slotlock.graphql.accept import names, preferred
from slotlock.graphql.addresses import client_of
from slotlock.graphql.conversation import Conversation, GraphQLRequest
from slotlock.graphql.documents import DocumentError
from slotlock.graphql.errors import TRY_AGAIN, Code, RateLimitedError, failure, internal
from slotlock.graphql.events import event_stream
from slotlock.graphql.execution import run
from slotlock.graphql.graphiql import graphiql_page
from slotlock.stores.mongo import is_away

JSON = "application/json"
GRAPHQL_JSON = "application/graphql-response+json"
EVENTS = "text/event-stream"
HTML = "text/html"
MOST_ACCEPT = 1_000
OFFERED = (JSON, GRAPHQL_JSON, EVENTS)
OFFERED_TO_BROWSERS = (*OFFERED, HTML)


class HttpError(Exception):
    """The request is answered by its status; the message says why."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.code = Code.LIMIT_EXCEEDED if status == 413 else Code.BAD_USER_INPUT


class HttpEndpoint:
    """The ASGI application at /graphql for HTTP. A body has at most so many bytes."""

    def __init__(self, conversation: Conversation, max_body: int) -> None:
        self._conversation = conversation
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Whatever it holds, the answer is well-formed."""
        request = Request(scope, receive)
        media_type = JSON
        try:
            media_type = self._media_type(request)
            response = await self._respond(request, media_type)
        except HttpError as error:
            response = _refusal(error.status, [failure(error.code, str(error))], media_type)
            response.headers.update(error.headers or {})
        except DocumentError as error:
            # A client of plain JSON looks for errors in answers of 200 (GraphQL over HTTP, 6.4.1).
            legacy = media_type == JSON and error.errors[0]["extensions"]["code"] in _IN_DOCUMENT
            response = _refusal(200 if legacy else 400, error.errors, media_type)
        except RateLimitedError as error:
            response = _refusal(429, [error.shown], media_type)
            response.headers.update(error.headers)
        except ClientDisconnect:
            return
        except Exception as error:
            failed = internal("a request failed outside its operation", error)
            away = is_away(error)
            response = _refusal(503 if away else 500, [failed])
            response.headers.update(TRY_AGAIN if away else {})
        await response(scope, receive, send)

    def _media_type(self, request: Request) -> str:
        # Cut, as what was made of it is remembered: browsers send some 150 characters.
        accept = ",".join(request.headers.getlist("accept"))[:MOST_ACCEPT] or "*/*"
        get, development = request.method == "GET", self._conversation.development
        chosen = preferred(accept, OFFERED_TO_BROWSERS if get and development else OFFERED)
        if chosen is None:
            raise HttpError(406, f"The answer can be {', '.join(OFFERED)}.")
        # What follows a link or loads a picture takes whatever comes; a client says what it takes.
        if get and not (development or names(accept, OFFERED)):
            raise HttpError(406, f"Of a GET, `Accept` names the answer: {', '.join(OFFERED)}.")
        return chosen

    async def _respond(self, request: Request, media_type: str) -> Response:
        if request.method not in ("GET", "POST"):
            raise HttpError(405, "GraphQL takes GET and POST.", {"Allow": "GET, POST"})
        if media_type == HTML:
            return graphiql_page()
        get = request.method == "GET"
        sent = (
            _parameters(request.scope["query_string"])
            if get
            else _decoded(await _body(request, self._max_body))
        )
        client, authorization = client_of(request), request.headers.get("authorization")
        asked = await self._conversation.read(sent, authorization, client)
        if get and asked.operation.changes:
            raise HttpError(405, "A mutation is sent by POST.", {"Allow": "POST"})
        identity = await self._conversation.admit(asked.operation, authorization, client)
        context = self._conversation.context(identity, client)
        if media_type == EVENTS:
            return _Events(event_stream(self._conversation, asked, identity, context))
        if asked.operation.kind is OperationType.SUBSCRIPTION:
            raise HttpError(406, f"A subscription needs a WebSocket, or to prefer {EVENTS}.")
        return await self._answer(asked, context, media_type)

    async def _answer(self, asked: GraphQLRequest, context: Any, media_type: str) -> Response:
        answer = await run(asked.operation, asked.variables, context)
        status = 400 if answer.refused and media_type == GRAPHQL_JSON else 200
        return Response(orjson.dumps(answer.body), status, media_type=media_type)


class _Events(StreamingResponse):
    """Events that end with whoever listens, not when the rest is collected as garbage."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type=EVENTS, headers=headers)
        self._events = events

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._events):
            await super().stream_response(send)


_IN_DOCUMENT = {Code.PARSE_FAILED, Code.VALIDATION_FAILED}


def _refusal(status: int, errors: list[dict[str, Any]], media_type: str = JSON) -> Response:
    shown = GRAPHQL_JSON if media_type == GRAPHQL_JSON else JSON
    return Response(orjson.dumps({"errors": errors}), status, media_type=shown)


def _parameters(query: bytes) -> dict[str, Any]:
    try:
        sent: dict[str, Any] = dict(
            parse_qsl(query.decode(), keep_blank_values=True, errors="strict")
        )
    except ValueError:
        raise HttpError(400, "The parameters are not in UTF-8.") from None
    for name in ("variables", "extensions"):
        if sent.get(name):
            sent[name] = _decoded(sent[name].encode(), f"`{name}` is")
    return sent


def _is_json(headers: Headers) -> bool:
    """Whether the body is said to be JSON in UTF-8, neither compressed nor a form's.

    A browser asks before another site's page can send that (a preflight: CORS in the Fetch
    standard), so that no such page makes it change anything.
    """
    content_type, *parameters = headers.get("content-type", "").lower().split(";")
    parted = (parameter.partition("=") for parameter in parameters)
    named = {name.strip(): value.strip(' "') for name, _, value in parted}
    return (
        content_type.strip() == JSON
        and named.get("charset", "utf-8") == "utf-8"
        and headers.get("content-encoding", "identity").lower() == "identity"
    )


async def _body(request: Request, most: int) -> bytes:
    if not _is_json(request.headers):
        raise HttpError(415, f"A request is {JSON}, in UTF-8.", {"Accept": JSON})
    if int(request.headers.get("content-length", 0)) > most:
        raise _too_large(most)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise _too_large(most)
    return bytes(body)


def _too_large(most: int) -> HttpError:
    return HttpError(413, f"A request has at most {most} bytes.", {"Connection": "close"})


def _decoded(text: bytes, what: str = "The body is") -> object:
    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, RecursionError):
        reason = "not JSON in UTF-8, or nested too deeply, or has too large a number"
        raise HttpError(400, f"{what} {reason}.") from None
