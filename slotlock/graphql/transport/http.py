"""GraphQL over HTTP, and over server-sent events for clients that prefer them."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qsl

import orjson
from graphql import ExecutionResult, OperationType
from starlette.requests import ClientDisconnect
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from slotlock.auth.authentication import verify_authorization
from slotlock.domain.users.user import Caller
from slotlock.graphql.core.errors import (
    RETRY_AFTER_HEADERS,
    ErrorCode,
    GraphQLRequestError,
    RateLimitedError,
    error_body,
    internal_error,
)
from slotlock.graphql.execution.document_cache import DocumentError, Operation
from slotlock.graphql.execution.operation_executor import (
    failed_response,
    record_metrics,
    start_execution,
    to_response,
)
from slotlock.graphql.transport.client_info import (
    MAX_USER_AGENT_LENGTH,
    client_host,
    client_info,
)
from slotlock.graphql.transport.content_negotiation import names_explicitly, negotiate
from slotlock.graphql.transport.graphiql import graphiql_page
from slotlock.graphql.transport.graphql_server import (
    PERSISTED_QUERY_NOT_SUPPORTED,
    GraphQLServer,
    record_failure,
)
from slotlock.graphql.transport.http_messages import (
    STOPPING_CHANGE_RESPONSE,
    STOPPING_RESPONSE,
    HttpError,
    HttpRequest,
    HttpResponse,
    RawHeaders,
    check_body_size,
    check_declared_body,
    declares,
    parse_headers,
    receive_body,
    send_response,
    undeclared_body,
)
from slotlock.graphql.transport.sse import sse_stream
from slotlock.graphql.transport.token_places import ADDRESS_MESSAGE, has_token
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.request_deadline import RequestDeadline, RequestTimeoutError

JSON = "application/json"
GRAPHQL_JSON = "application/graphql-response+json"
EVENT_STREAM = "text/event-stream"
HTML = "text/html"
# The longest input of an organizer has 200,000 characters; JSON writes one in 12 bytes at most.
MAX_ORGANIZER_BODY_BYTES = 2_500_000
# Results of negotiation are cached by the header; browsers send about 150 characters.
MAX_ACCEPT_LENGTH = 1_000
OFFERED_MEDIA_TYPES = (JSON, GRAPHQL_JSON, EVENT_STREAM)
BROWSER_MEDIA_TYPES = (*OFFERED_MEDIA_TYPES, HTML)

_CONTENT_TYPES: Mapping[str, RawHeaders] = {
    media_type: ((b"content-type", media_type.encode()),) for media_type in (JSON, GRAPHQL_JSON)
}


class HttpEndpoint:
    """GraphQL at /graphql: an ASGI application, and a function for requests that need no ASGI."""

    def __init__(self, server: GraphQLServer, *, max_body_bytes: int, development: bool) -> None:
        self._server = server
        self._max_body_bytes = max_body_bytes
        self._development = development

    async def respond(self, sent: HttpRequest) -> HttpResponse | Response:
        """Respond to a GET or POST; only the response to one that prefers events is a stream.

        Every failure becomes a well-formed response. The deadline of the request begins here, with
        its body.
        """
        server, headers, media_type = self._server, sent.headers, sent.media_type
        operation: Operation | None = None
        is_executing = False
        try:
            if len(sent.content) > self._max_body_bytes and not sent.is_get:
                check_declared_body(headers, JSON)
                await self._check_large_body(len(sent.content), headers)
            payload = self._read_payload(sent)
            deadline = RequestDeadline(server.deadlines, sent.request_id)
            token = verify_authorization(server.auth, headers.get("authorization"))
            agent = headers.get("user-agent", "")[:MAX_USER_AGENT_LENGTH]
            client = client_info(sent.client_host, agent)
            request = parsed, variables = await server.parse_request(payload, token, client)
            deadline.operation_name = parsed.name
            if sent.is_get or parsed.operation_type is OperationType.SUBSCRIPTION:
                _check_operation(parsed, sent)
            operation = parsed  # from here on, the metrics count its failures
            with deadline:
                identity = await server.authenticate_and_charge(operation, token, client)
                deadline.identity = identity
                context = server.create_context(identity, client)
                if media_type == EVENT_STREAM:
                    return _EventStreamResponse(sse_stream(server, request, identity, context))
                is_executing = True
                result = start_execution(operation, variables, context)
                if not isinstance(result, ExecutionResult):
                    result = await result
            response = to_response(operation, result)
        except asyncio.CancelledError:  # by a stop
            is_change = is_executing and operation is not None and operation.is_mutation
            return STOPPING_CHANGE_RESPONSE if is_change else STOPPING_RESPONSE
        except Exception as error:
            if operation is None:
                return _error_response(error, media_type or JSON)
            if not (is_executing and isinstance(error, RequestTimeoutError | GraphQLRequestError)):
                record_failure(operation, error)
                return _error_response(error, media_type or JSON)
            response = failed_response(operation, error)
        record_metrics(operation, response)
        status = 400 if media_type == GRAPHQL_JSON and response.is_request_error else 200
        return HttpResponse(status, _CONTENT_TYPES[media_type or JSON], response.encode())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request over ASGI; every failure becomes a well-formed response."""
        media_type = JSON
        try:
            headers, is_get = parse_headers(scope["headers"]), scope["method"] == "GET"
            media_type = self._negotiate_media_type(headers, is_get=is_get)
            content = await self._receive_content(scope, receive, headers)
            request_id, host = scope.get("request_id", ""), client_host(scope)
            sent = HttpRequest(headers, media_type, content, host, request_id, is_get)
            response = graphiql_page() if media_type == HTML else await self.respond(sent)
        except ClientDisconnect:
            return
        except Exception as error:
            response = _error_response(error, media_type)
        if isinstance(response, HttpResponse):
            await send_response(response, send)
        else:
            await response(scope, receive, send)

    def _negotiate_media_type(self, headers: Mapping[str, str], *, is_get: bool) -> str:
        accept = headers.get("accept", "")[:MAX_ACCEPT_LENGTH] or "*/*"
        offered = BROWSER_MEDIA_TYPES if is_get and self._development else OFFERED_MEDIA_TYPES
        media_type = negotiate(accept, offered)
        if media_type is None:
            raise _not_acceptable()
        # Links and images of other pages accept any type, so only GraphQL clients name one.
        if is_get and not self._development and not names_explicitly(accept, OFFERED_MEDIA_TYPES):
            types = ", ".join(OFFERED_MEDIA_TYPES)
            raise HttpError(406, f"Name the type of the response to a GET in `Accept`: {types}.")
        return media_type

    async def _receive_content(
        self, scope: Scope, receive: Receive, headers: Mapping[str, str]
    ) -> bytes:
        """Return the parameters of a GET or the body of a POST."""
        if "authorization" not in headers and has_token(scope["query_string"]):
            raise HttpError(400, ADDRESS_MESSAGE)
        if scope["method"] == "GET":
            query_string: bytes = scope["query_string"]
            return query_string
        if scope["method"] != "POST":
            raise HttpError(405, "Use GET or POST.", {"Allow": "GET, POST"})
        check_declared_body(headers, JSON)
        size, limit = int(headers.get("content-length", 0)), self._max_body_bytes
        if size > limit:
            limit = await self._check_large_body(size, headers)
        return await receive_body(receive, limit)

    async def _check_large_body(self, size: int, headers: Mapping[str, str]) -> int:
        """Return the larger limit for organizers, all of whose inputs fit then.

        Raises:
            HttpError: 413 if the body is too large for the caller.
        """
        limit, token = self._max_body_bytes, headers.get("authorization")
        if size <= MAX_ORGANIZER_BODY_BYTES:
            with self._server.deadlines.begin():
                caller = await self._server.load_identity(
                    verify_authorization(self._server.auth, token)
                )
            if isinstance(caller, Caller) and caller.is_organizer:
                return MAX_ORGANIZER_BODY_BYTES
        check_body_size(size, limit)
        return limit

    def _read_payload(self, sent: HttpRequest) -> object:
        if sent.media_type is None:
            raise _not_acceptable()
        if sent.is_get:
            return _parse_query_string(sent.content)
        headers, body = sent.headers, sent.content
        encoding = headers.get("content-encoding", "")
        if not declares(headers.get("content-type", ""), encoding, JSON):
            raise undeclared_body(JSON)
        try:
            return orjson.loads(body)
        except (orjson.JSONDecodeError, RecursionError):
            raise _not_json("The body") from None


def _not_acceptable() -> HttpError:
    return HttpError(406, f"The response can be {', '.join(OFFERED_MEDIA_TYPES)}.")


def _check_operation(operation: Operation, sent: HttpRequest) -> None:
    if sent.is_get and operation.is_mutation:
        raise HttpError(405, "Send mutations by POST.", {"Allow": "POST"})
    is_subscription = operation.operation_type is OperationType.SUBSCRIPTION
    if is_subscription and sent.media_type != EVENT_STREAM:
        text = f"Use a WebSocket for a subscription, or an `Accept` that prefers {EVENT_STREAM}."
        raise HttpError(406, text)


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
            is_accepted = media_type == JSON and "locations" in error.errors[0]
            # Clients that persist queries expect 200 as of Apollo's server, for every media type.
            is_accepted |= error.errors == [PERSISTED_QUERY_NOT_SUPPORTED]
            status = 200 if is_accepted else 400
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
            parse_qsl(query.decode(), errors="strict")  # without blank ones: they are not set
        )
    except ValueError:
        raise HttpError(400, "The parameters are not in UTF-8.") from None
    for name in ("variables", "extensions"):
        if name in parameters:
            parameters[name] = _decode_json(parameters[name].encode(), f"`{name}`")
    return parameters


def _decode_json(text: bytes, subject: str) -> object:
    try:
        return orjson.loads(text)
    except (orjson.JSONDecodeError, RecursionError):
        raise _not_json(subject) from None


def _not_json(subject: str) -> HttpError:
    reason = "is not JSON in UTF-8, is nested too deeply or has too large a number"
    return HttpError(400, f"{subject} {reason}.")
