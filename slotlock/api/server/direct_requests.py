"""Requests to /graphql that are served without ASGI, and responses in one write.

ASGI describes a request in a dictionary, and passes its body and its response in several events,
each of which is awaited. A POST that arrives in one read needs none of that.
"""

import asyncio
from collections.abc import Awaitable
from functools import lru_cache, partial
from typing import Any

from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, HTTPScope
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from slotlock.api.graphql_posts import PATH, GraphQLPosts
from slotlock.api.middleware.load_shedding import (
    OVERLOADED_RESPONSE,
    SHED_REQUESTS,
    STOPPING_RESPONSE,
    OverloadedError,
)
from slotlock.api.middleware.security_headers import SECURITY_HEADERS
from slotlock.api.server.keep_alive import KeepAliveProtocol
from slotlock.api.server.raw_response import raw_response
from slotlock.api.server.repeated_headers import RepeatedHeader, repeatable_header
from slotlock.graphql.transport.client_info import client_address
from slotlock.graphql.transport.http import negotiate_post
from slotlock.graphql.transport.http_messages import HttpPost, HttpResponse, RawHeaders
from slotlock.graphql.transport.http_requests import parse_headers
from slotlock.infrastructure.telemetry.request_ids import HEADER, request_id


class _NoEvent:
    """Nobody waits for parts of a request that has arrived as a whole."""

    def set(self) -> None:
        """Wake nobody."""


class DirectRequest(RequestResponseCycle):
    """A request without ASGI, with the attributes that the protocol has for every request."""

    disconnected = False
    response_started = False
    response_complete = False
    more_body = False
    message_event: Any = _NoEvent()

    def __init__(self, post: HttpPost, *, keep_alive: bool) -> None:
        self.post = post
        self.keep_alive = keep_alive


class DirectProtocol(KeepAliveProtocol):
    """Serves POSTs to /graphql that arrive in one read without ASGI, and all else over ASGI."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._posts: GraphQLPosts | None = self.app_state.get("graphql_posts")
        # The body of a request whose header does not decide yet whether ASGI serves it.
        self._held_body: bytes | None = None
        # The header of the latest direct request, for the next one.
        self._repeated_header: RepeatedHeader | None = None
        # The request that is processed; `cycle` is the one that arrived last.
        self._current_cycle: RequestResponseCycle | None = None
        # The next request, while the client does not read the response before it.
        self._delayed: tuple[RequestResponseCycle, ASGI3Application] | None = None

    def data_received(self, data: bytes) -> None:
        """Parse a read. ASGI serves a request that continues in the next read."""
        previous = self.cycle
        super().data_received(data)
        if self._held_body is not None:
            self._pass_to_asgi()
        request = self.cycle
        if request is not previous and isinstance(request, DirectRequest) and request.keep_alive:
            self._repeated_header = repeatable_header(data, request.post)

    def serve_repeated_header(self, data: bytes) -> bool:
        """Serve a read that is one request with the header of the one before.

        Return False if the parser has to read it, which it must if a request is in progress.
        """
        header = self._repeated_header
        if header is None or not self.cycle.response_complete or self.transport.is_closing():
            return False
        post = header.find_post(data)
        if post is None:
            return False
        self._unset_keepalive_if_required()
        self._enqueue(DirectRequest(post, keep_alive=True))
        return True

    def on_headers_complete(self) -> None:
        """Hold a POST to /graphql until the end of the read, and pass others to ASGI."""
        if (
            self._posts is not None
            and self.url == PATH
            and self.parser.get_method() == b"POST"
            and not self.parser.should_upgrade()
            and not self.expect_100_continue
        ):
            self._held_body = b""
        else:
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Add a part to the body of the latest request."""
        if self._held_body is not None:
            self._held_body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Serve a request that was held, after those before it."""
        if self._held_body is None:
            super().on_message_complete()
            return
        headers = parse_headers(self.scope["headers"])
        post = HttpPost(
            headers,
            negotiate_post(headers),
            self._held_body,
            self._client_host(),
            request_id(headers.get(HEADER)),
        )
        if self._posts is None or not self._posts.accepts(post):
            self._pass_to_asgi()
            super().on_message_complete()
            return
        self._held_body = None
        self._enqueue(
            DirectRequest(
                post,
                keep_alive=self.parser.get_http_version() != "1.0"
                and self.parser.should_keep_alive(),
            )
        )

    def _pass_to_asgi(self) -> None:
        body, self._held_body = self._held_body, None
        if not (self._rejection or self.transport.is_closing()):
            super().on_headers_complete()
            if body:
                super().on_body(body)

    def _client_host(self) -> str | None:
        """Return the address of the client, which a trusted proxy names, as uvicorn does."""
        host = self.client[0] if self.client else None
        app = self.app
        if isinstance(app, ProxyHeadersMiddleware) and host in app.trusted_hosts:
            values = [value for name, value in self.scope["headers"] if name == b"x-forwarded-for"]
            if values:
                forwarded_for = b", ".join(values).decode("latin-1")
                return app.trusted_hosts.get_trusted_client_address(forwarded_for)[0] or host
        return host

    def _enqueue(self, request: DirectRequest) -> None:
        previous, self.cycle = self.cycle, request
        if previous is None or previous.response_complete:
            self._start_asgi_task(request, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((request, self.app))

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Start to process a request: over ASGI, unless it is a direct one.

        A client gets no further response before it has read the one before.
        """
        if self.flow.write_paused:
            self._delayed = cycle, app
            return
        self._current_cycle = cycle
        if isinstance(cycle, DirectRequest) and self._posts is not None:
            task = self.loop.create_task(self._serve(cycle, self._posts))
            task.add_done_callback(self.tasks.discard)
            self.tasks.add(task)
        else:
            super()._start_asgi_task(cycle, partial(self.call_app, app))

    def call_app(
        self,
        app: ASGI3Application,
        scope: HTTPScope,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
    ) -> Awaitable[None]:
        """Call an application for a request over ASGI."""
        return app(scope, receive, send)

    def resume_writing(self) -> None:
        """Process the next request, if it waited until the client had read a response."""
        super().resume_writing()
        if self._delayed is not None:
            delayed, self._delayed = self._delayed, None
            self._start_asgi_task(*delayed)

    def responding_address(self) -> str | None:
        """Return the address of the client to which the latest response goes."""
        cycle = self._current_cycle
        if isinstance(cycle, DirectRequest):
            return client_address({"client": (cycle.post.client_host,)})
        return client_address({"client": cycle.scope["client"] if cycle else self.client})

    async def _serve(self, request: DirectRequest, posts: GraphQLPosts) -> None:
        try:
            posts.limit.acquire()
            try:
                self._respond(request, await posts.respond(request.post))
            finally:
                posts.limit.release()
        except OverloadedError:
            SHED_REQUESTS.labels("http").inc()
            self._respond(request, OVERLOADED_RESPONSE)
        except asyncio.CancelledError:
            self._respond(request, STOPPING_RESPONSE)
        except BaseException:  # as uvicorn does
            self.logger.exception("a direct request failed")
            self._fail(request)

    def _respond(self, request: DirectRequest, response: HttpResponse) -> None:
        """Write a response after the tasks that are ready.

        A write wakes its reader, who takes the processor. The responses to one batch are therefore
        written in a row, and the next requests arrive together.
        """
        self.loop.call_soon(self._write_response, request, response)

    def _write_response(self, request: DirectRequest, response: HttpResponse) -> None:
        """Write a response with the security headers, unless the client has disconnected."""
        if request.disconnected:
            return
        request.response_started = request.response_complete = True
        if CLOSE_HEADER in response.headers:
            request.keep_alive = False
        self.transport.write(
            b"%sx-request-id: %s\r\ncontent-length: %d\r\n%s%s\r\n%s"
            % (
                _header_block(response.status, response.headers),
                request.post.request_id.encode(),
                len(response.body),
                self._default_headers(),
                b"" if request.keep_alive else b"connection: close\r\n",
                response.body,
            )
        )
        if not request.keep_alive:
            self.transport.close()
        self.on_response_complete()

    def _fail(self, request: DirectRequest) -> None:
        if not (request.response_started or request.disconnected):
            self.transport.write(raw_response(500, "Internal Server Error"))
        request.response_started = request.response_complete = True
        self.transport.close()

    def _default_headers(self) -> bytes:
        return b"".join(b"%s: %s\r\n" % header for header in self.server_state.default_headers)


@lru_cache(maxsize=256)
def _header_block(status: int, headers: RawHeaders) -> bytes:
    """Return the status line, the headers of a response and the security headers."""
    shown = [header for header in headers if header != CLOSE_HEADER]
    names = {name for name, _ in headers}
    missing = (header for header in SECURITY_HEADERS if header[0] not in names)
    return STATUS_LINE[status] + b"".join(b"%s: %s\r\n" % each for each in (*shown, *missing))
