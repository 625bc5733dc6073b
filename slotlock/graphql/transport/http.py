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

from slotlock.graphql.core.errors import (
    RETRY_AFTER_HEADERS,
    ErrorCode,
    RateLimitedError,
    error_body,
    internal_error,
)
from slotlock.graphql.execution.documents import DocumentError
from slotlock.graphql.execution.executor import execute_operation
from slotlock.graphql.transport.client_info import client_info
from slotlock.graphql.transport.content_negotiation import names_explicitly, negotiate
from slotlock.graphql.transport.graphiql import graphiql_page
from slotlock.graphql.transport.server import GraphQLRequest, GraphQLServer
from slotlock.graphql.transport.sse import sse_stream
from slotlock.infrastructure.mongo.client import is_unavailable

JSON = "application/json"
GRAPHQL_JSON = "application/graphql-response+json"
EVENT_STREAM = "text/event-stream"
HTML = "text/html"
MAX_ACCEPT_LENGTH = 1_000
OFFERED_MEDIA_TYPES = (JSON, GRAPHQL_JSON, EVENT_STREAM)
BROWSER_MEDIA_TYPES = (*OFFERED_MEDIA_TYPES, HTML)


class HttpError(Exception):
    """The request is answered by its status; the message says why."""

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.code = ErrorCode.LIMIT_EXCEEDED if status == 413 else ErrorCode.BAD_USER_INPUT


class HttpEndpoint:
    """The ASGI application at /graphql for HTTP. A body has at most so many bytes."""

    def __init__(self, server: GraphQLServer, max_body_bytes: int) -> None:
        self._server = server
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Whatever it holds, the answer is well-formed."""
        request = Request(scope, receive)
        media_type = JSON
        try:
            media_type = self._negotiate_media_type(request)
            response = await self._respond(request, media_type)
        except HttpError as error:
            response = _error_response(
                error.status, [error_body(error.code, str(error))], media_type
            )
            response.headers.update(error.headers or {})
        except DocumentError as error:
            # A client of plain JSON looks for errors in answers of 200 (GraphQL over HTTP, 6.4.1).
            legacy = (
                media_type == JSON
                and error.errors[0]["extensions"]["code"] in _DOCUMENT_ERROR_CODES
            )
            response = _error_response(200 if legacy else 400, error.errors, media_type)
        except RateLimitedError as error:
            response = _error_response(429, [error.as_error], media_type)
            response.headers.update(error.headers)
        except ClientDisconnect:
            return
        except Exception as error:
            failed = internal_error("a request failed outside its operation", error)
            away = is_unavailable(error)
            response = _error_response(503 if away else 500, [failed])
            response.headers.update(RETRY_AFTER_HEADERS if away else {})
        await response(scope, receive, send)

    def _negotiate_media_type(self, request: Request) -> str:
        # Cut, as what was made of it is remembered: browsers send some 150 characters.
        accept = ",".join(request.headers.getlist("accept"))[:MAX_ACCEPT_LENGTH] or "*/*"
        get, development = request.method == "GET", self._server.development
        chosen = negotiate(
            accept, BROWSER_MEDIA_TYPES if get and development else OFFERED_MEDIA_TYPES
        )
        if chosen is None:
            raise HttpError(406, f"The answer can be {', '.join(OFFERED_MEDIA_TYPES)}.")
        # What follows a link or loads a picture takes whatever comes; a client says what it takes.
        if get and not (development or names_explicitly(accept, OFFERED_MEDIA_TYPES)):
            raise HttpError(
                406, f"Of a GET, `Accept` names the answer: {', '.join(OFFERED_MEDIA_TYPES)}."
            )
        return chosen

    async def _respond(self, request: Request, media_type: str) -> Response:
        if request.method not in ("GET", "POST"):
            raise HttpError(405, "GraphQL takes GET and POST.", {"Allow": "GET, POST"})
        if media_type == HTML:
            return graphiql_page()
        get = request.method == "GET"
        sent = (
            _parse_query_string(request.scope["query_string"])
            if get
            else _decode_json(await _read_body(request, self._max_body_bytes))
        )
        client, authorization = client_info(request), request.headers.get("authorization")
        asked = await self._server.parse_request(sent, authorization, client)
        if get and asked.operation.is_mutation:
            raise HttpError(405, "A mutation is sent by POST.", {"Allow": "POST"})
        identity = await self._server.authenticate_and_charge(
            asked.operation, authorization, client
        )
        context = self._server.create_context(identity, client)
        if media_type == EVENT_STREAM:
            return _EventStreamResponse(sse_stream(self._server, asked, identity, context))
        if asked.operation.operation_type is OperationType.SUBSCRIPTION:
            raise HttpError(406, f"A subscription needs a WebSocket, or to prefer {EVENT_STREAM}.")
        return await self._execute(asked, context, media_type)

    async def _execute(
        self, graphql_request: GraphQLRequest, context: Any, media_type: str
    ) -> Response:
        answer = await execute_operation(
            graphql_request.operation, graphql_request.variables, context
        )
        status = 400 if answer.is_request_error and media_type == GRAPHQL_JSON else 200
        return Response(orjson.dumps(answer.body), status, media_type=media_type)


class _EventStreamResponse(StreamingResponse):
    """Events that end with whoever listens, not when the rest is collected as garbage."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type=EVENT_STREAM, headers=headers)
        self._events = events

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._events):
            await super().stream_response(send)


_DOCUMENT_ERROR_CODES = {ErrorCode.PARSE_FAILED, ErrorCode.VALIDATION_FAILED}


def _error_response(status: int, errors: list[dict[str, Any]], media_type: str = JSON) -> Response:
    shown = GRAPHQL_JSON if media_type == GRAPHQL_JSON else JSON
    return Response(orjson.dumps({"errors": errors}), status, media_type=shown)


def _parse_query_string(query: bytes) -> dict[str, Any]:
    try:
        sent: dict[str, Any] = dict(
            parse_qsl(query.decode(), keep_blank_values=True, errors="strict")
        )
    except ValueError:
        raise HttpError(400, "The parameters are not in UTF-8.") from None
    for name in ("variables", "extensions"):
        if sent.get(name):
            sent[name] = _decode_json(sent[name].encode(), f"`{name}` is")
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


async def _read_body(request: Request, max_bytes: int) -> bytes:
    if not _is_json(request.headers):
        raise HttpError(415, f"A request is {JSON}, in UTF-8.", {"Accept": JSON})
    if int(request.headers.get("content-length", 0)) > max_bytes:
        raise _too_large(max_bytes)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise _too_large(max_bytes)
    return bytes(body)


def _too_large(max_bytes: int) -> HttpError:
    return HttpError(413, f"A request has at most {max_bytes} bytes.", {"Connection": "close"})


def _decode_json(text: bytes, subject: str = "The body is") -> object:
    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, RecursionError):
        reason = "not JSON in UTF-8, or nested too deeply, or has too large a number"
        raise HttpError(400, f"{subject} {reason}.") from None
