"""GraphQL over HTTP, and over server-sent events for clients that prefer them."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qsl

import orjson
from graphql import OperationType
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from slotlock.graphql.context import Context, Identity
from slotlock.graphql.core.errors import (
    RETRY_AFTER_HEADERS,
    ErrorCode,
    RateLimitedError,
    error_body,
    internal_error,
)
from slotlock.graphql.execution.documents import DocumentError
from slotlock.graphql.execution.operation_executor import execute_operation
from slotlock.graphql.transport.client_info import client_host, client_info
from slotlock.graphql.transport.content_negotiation import names_explicitly, negotiate
from slotlock.graphql.transport.graphiql import graphiql_page
from slotlock.graphql.transport.http_messages import (
    HttpPost,
    HttpResponse,
    RawHeaders,
    send_response,
)
from slotlock.graphql.transport.http_requests import (
    HttpError,
    check_body_size,
    check_declared_body,
    parse_headers,
    receive_body,
)
from slotlock.graphql.transport.server import GraphQLRequest, GraphQLServer
from slotlock.graphql.transport.sse import sse_stream
from slotlock.infrastructure.mongo.client import is_unavailable

JSON = "application/json"
GRAPHQL_JSON = "application/graphql-response+json"
EVENT_STREAM = "text/event-stream"
HTML = "text/html"
# Results of negotiation are cached by the header; browsers send about 150 characters.
MAX_ACCEPT_LENGTH = 1_000
OFFERED_MEDIA_TYPES = (JSON, GRAPHQL_JSON, EVENT_STREAM)
BROWSER_MEDIA_TYPES = (*OFFERED_MEDIA_TYPES, HTML)

_CONTENT_TYPES: Mapping[str, RawHeaders] = {
    media_type: ((b"content-type", media_type.encode()),) for media_type in (JSON, GRAPHQL_JSON)
}


class HttpEndpoint:
    """GraphQL at /graphql: an ASGI application, and a function for POSTs that need no ASGI."""

    def __init__(self, server: GraphQLServer, *, max_body_bytes: int, development: bool) -> None:
        self._server = server
        self._max_body_bytes = max_body_bytes
        self._development = development

    async def respond(self, post: HttpPost) -> HttpResponse:
        """Respond to a POST whose response is no event stream.

        Every failure becomes a well-formed response.
        """
        try:
            media_type = _required(post.media_type)
            self._check_declared_body(post.headers)
            check_body_size(len(post.body), self._max_body_bytes)
            payload = _decode_json(post.body, "The body")
            request, _, context = await self._begin(
                payload, post.headers, post.client_host, post.request_id
            )
            return await _execute(request, context, media_type)
        except Exception as error:
            return _error_response(error, post.media_type or JSON)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request over ASGI; every failure becomes a well-formed response."""
        media_type = JSON
        try:
            headers = parse_headers(scope["headers"])
            media_type = self._negotiate_media_type(scope["method"], headers)
            response = await self._respond(scope, receive, headers, media_type)
        except ClientDisconnect:
            return
        except Exception as error:
            response = _error_response(error, media_type)
        if isinstance(response, HttpResponse):
            await send_response(response, send)
        else:
            await response(scope, receive, send)

    def _negotiate_media_type(self, method: str, headers: Mapping[str, str]) -> str:
        if method == "POST":
            return _required(negotiate_post(headers))
        accept = _accepted_types(headers)
        is_get = method == "GET"
        offered = BROWSER_MEDIA_TYPES if is_get and self._development else OFFERED_MEDIA_TYPES
        media_type = _required(negotiate(accept, offered))
        # Links and images of other pages accept any type, so only GraphQL clients name one.
        if is_get and not self._development and not names_explicitly(accept, OFFERED_MEDIA_TYPES):
            types = ", ".join(OFFERED_MEDIA_TYPES)
            raise HttpError(406, f"Name the type of the response to a GET in `Accept`: {types}.")
        return media_type

    async def _respond(
        self, scope: Scope, receive: Receive, headers: Mapping[str, str], media_type: str
    ) -> HttpResponse | Response:
        method = scope["method"]
        if method not in ("GET", "POST"):
            raise HttpError(405, "Use GET or POST.", {"Allow": "GET, POST"})
        if media_type == HTML:
            return graphiql_page()
        if method == "GET":
            payload: object = _parse_query_string(scope["query_string"])
        else:
            self._check_declared_body(headers)
            body = await receive_body(receive, self._max_body_bytes)
            payload = _decode_json(body, "The body")
        request, identity, context = await self._begin(
            payload,
            headers,
            client_host(scope),
            scope.get("request_id", ""),
            allows_mutation=method == "POST",
        )
        if media_type == EVENT_STREAM:
            return _EventStreamResponse(sse_stream(self._server, request, identity, context))
        return await _execute(request, context, media_type)

    def _check_declared_body(self, headers: Mapping[str, str]) -> None:
        check_declared_body(headers, JSON)
        check_body_size(int(headers.get("content-length", 0)), self._max_body_bytes)

    async def _begin(
        self,
        payload: object,
        headers: Mapping[str, str],
        host: str | None,
        request_id: str,
        *,
        allows_mutation: bool = True,
    ) -> tuple[GraphQLRequest, Identity, Context]:
        """Parse a request, authenticate its caller and charge it to the rate limits.

        The deadline of the request begins here, with its body.
        """
        deadline = self._server.deadlines.begin(request_id)
        token = self._server.verify_token(headers.get("authorization"))
        client = client_info(host, headers.get("user-agent", ""))
        request = await self._server.parse_request(payload, token, client)
        deadline.operation_name = request.operation.name
        if request.operation.is_mutation and not allows_mutation:
            raise HttpError(405, "Send mutations by POST.", {"Allow": "POST"})
        identity = await self._server.authenticate_and_charge(request.operation, token, client)
        deadline.identity = identity
        return request, identity, self._server.create_context(identity, client)


def negotiate_post(headers: Mapping[str, str]) -> str | None:
    """Return the type of the response to a POST that the client prefers; None if none fits."""
    return negotiate(_accepted_types(headers), OFFERED_MEDIA_TYPES)


def _accepted_types(headers: Mapping[str, str]) -> str:
    return headers.get("accept", "")[:MAX_ACCEPT_LENGTH] or "*/*"


def _required(media_type: str | None) -> str:
    if media_type is None:
        raise HttpError(406, f"The response can be {', '.join(OFFERED_MEDIA_TYPES)}.")
    return media_type


async def _execute(request: GraphQLRequest, context: Context, media_type: str) -> HttpResponse:
    if request.operation.operation_type is OperationType.SUBSCRIPTION:
        text = f"Use a WebSocket for a subscription, or an `Accept` that prefers {EVENT_STREAM}."
        raise HttpError(406, text)
    result = await execute_operation(request.operation, request.variables, context)
    status = 400 if media_type == GRAPHQL_JSON and result.is_request_error else 200
    return HttpResponse(status, _CONTENT_TYPES[media_type], result.encode())


class _EventStreamResponse(StreamingResponse):
    """Server-sent events; a client that disconnects ends the generator at once."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type=EVENT_STREAM, headers=headers)
        self._events = events

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self._events):
            await super().stream_response(send)


def _error_response(error: Exception, media_type: str) -> HttpResponse:
    match error:
        case HttpError():
            errors = [error_body(ErrorCode(error.code), str(error))]
            return _errors(error.status, errors, media_type, error.headers)
        case DocumentError():
            # Clients of application/json expect 200 here (GraphQL over HTTP, 6.4.1).
            # Only errors of a document have locations; the others are about the request.
            is_document_error = "locations" in error.errors[0]
            status = 200 if media_type == JSON and is_document_error else 400
            return _errors(status, error.errors, media_type)
        case RateLimitedError():
            return _errors(429, [error.as_error], media_type, error.headers)
        case _:
            errors = [internal_error("a request failed outside its operation", error)]
            if is_unavailable(error):
                return _errors(503, errors, JSON, RETRY_AFTER_HEADERS)
            return _errors(500, errors, JSON)


def _errors(
    status: int,
    errors: list[dict[str, Any]],
    media_type: str,
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    content_type = _CONTENT_TYPES[GRAPHQL_JSON if media_type == GRAPHQL_JSON else JSON]
    others = ((name.lower().encode(), value.encode()) for name, value in (headers or {}).items())
    return HttpResponse(status, (*content_type, *others), orjson.dumps({"errors": errors}))


def _parse_query_string(query: bytes) -> dict[str, Any]:
    try:
        parameters: dict[str, Any] = dict(
            parse_qsl(query.decode(), keep_blank_values=True, errors="strict")
        )
    except ValueError:
        raise HttpError(400, "The parameters are not in UTF-8.") from None
    for name in ("variables", "extensions"):
        if parameters.get(name):
            parameters[name] = _decode_json(parameters[name].encode(), f"`{name}`")
    return parameters


def _decode_json(text: bytes, subject: str) -> object:
    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, RecursionError):
        reason = "is not JSON in UTF-8, is nested too deeply or has too large a number"
        raise HttpError(400, f"{subject} {reason}.") from None
