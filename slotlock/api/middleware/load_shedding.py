"""Load shedding: a process rejects requests beyond its limits at once instead of slowing down."""

import asyncio

from prometheus_client import Counter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slotlock.graphql.transport.http_messages import (
    STOPPING_CHANGE_RESPONSE,
    STOPPING_RESPONSE,
    HttpResponse,
    send_response,
)

# Monitoring asks these whether the process lives.
NEVER_SHED_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
RETRY_AFTER_S = 2
OVERLOADED_BODY = (
    b'{"errors":[{"message":"The server is overloaded. Please try again in a moment.",'
    b'"extensions":{"code":"RATE_LIMITED","retryAfterMs":%d}}]}' % (RETRY_AFTER_S * 1000)
)
OVERLOADED_RESPONSE = HttpResponse(
    503,
    ((b"content-type", b"application/json"), (b"retry-after", b"%d" % RETRY_AFTER_S)),
    OVERLOADED_BODY,
)
OVERLOADED_HEADERS = [
    *OVERLOADED_RESPONSE.headers,
    (b"content-length", b"%d" % len(OVERLOADED_BODY)),
]

SHED_REQUESTS = Counter(
    "slotlock_shed_requests_total",
    "Requests and sockets that were rejected because this process was overloaded",
    ["type"],
)
# Both series begin at 0, so that the first rejected request counts in a rate.
for _kind in ("http", "websocket"):
    SHED_REQUESTS.labels(_kind)


class OverloadedError(Exception):
    """The process has no room for a request or socket."""


class ProcessLimit:
    """At most `max_active` requests or sockets at once in this process."""

    def __init__(self, max_active: int) -> None:
        self.max_active = max_active
        self.active = 0

    def acquire(self) -> None:
        """Count one more, until `release`.

        Raises:
            OverloadedError: the limit is reached.
        """
        if self.active >= self.max_active:
            raise OverloadedError
        self.active += 1

    def release(self) -> None:
        """Count one less."""
        self.active -= 1


class LoadSheddingMiddleware:
    """Rejects requests and sockets beyond the limits of the process with 503.

    A request counts once its body is complete; as many more may have incomplete bodies, of which
    the oldest makes room for the newest. Honest clients send their bodies soon. Rejecting the
    newest instead would let slow clients lock out all others. An event stream counts as a socket
    from its first line on.
    """

    def __init__(self, app: ASGIApp, max_requests: int, max_sockets: int) -> None:
        self._app = app
        self.requests = ProcessLimit(max_requests)
        self.sockets = ProcessLimit(max_sockets)
        self._max_incomplete_bodies = max_requests
        self.incomplete_bodies: dict[_TrackedRequest, None] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or socket, or reject it."""
        kind = scope["type"]
        if kind not in ("http", "websocket") or scope["path"] in NEVER_SHED_PATHS:
            await self._app(scope, receive, send)
            return
        try:
            if kind == "http":
                await self._handle_http(scope, receive, send)
            else:
                await self._handle_websocket(scope, receive, send)
        except OverloadedError:
            SHED_REQUESTS.labels(kind).inc()
            await _reject(kind, send)

    async def _handle_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.sockets.acquire()
        try:
            await self._app(scope, receive, send)
        finally:
            self.sockets.release()

    async def _handle_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = _TrackedRequest(self, receive, send)
        try:
            if scope["method"] != "POST":
                request.start_processing()
                await self._app(scope, receive, request.send)
            else:
                self._wait_for_body(request)
                await self._app(scope, request.receive, request.send)
        except asyncio.CancelledError:
            if request.is_own_cancellation():
                raise OverloadedError from None
            # Only a stop cancels it otherwise. uvicorn would log that as a failure of the server.
            if not request.has_response:
                is_change = scope["method"] == "POST" and request.is_processing
                response = STOPPING_CHANGE_RESPONSE if is_change else STOPPING_RESPONSE
                await send_response(response, send)
        finally:
            request.end()

    def _wait_for_body(self, request: "_TrackedRequest") -> None:
        if len(self.incomplete_bodies) >= self._max_incomplete_bodies:
            oldest = next(iter(self.incomplete_bodies))
            del self.incomplete_bodies[oldest]
            oldest.cancel()
        request.wait_for_body()


class _TrackedRequest:
    """A request that counts first as an incomplete body, then as a request, then as a stream."""

    __slots__ = (
        "_is_cancelled",
        "_limit",
        "_receive",
        "_send",
        "_shedding",
        "_task",
        "has_response",
        "is_processing",
    )

    def __init__(self, shedding: LoadSheddingMiddleware, receive: Receive, send: Send) -> None:
        self._shedding = shedding
        self._receive = receive
        self._send = send
        # The task of the request while its body arrives.
        self._task: asyncio.Task[object] | None = None
        # Whether the body is complete.
        self.is_processing = False
        self._is_cancelled = False
        # The limit that the request counts against now.
        self._limit: ProcessLimit | None = None
        # Whether the response has started.
        self.has_response = False

    def wait_for_body(self) -> None:
        """Count the request as an incomplete body; from now on it can be cancelled."""
        self._task = asyncio.current_task()
        self._shedding.incomplete_bodies[self] = None

    def cancel(self) -> None:
        """Cancel the request, because the process has no room for it."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()

    def is_own_cancellation(self) -> bool:
        """Return whether `cancel` caused the cancellation that was caught, and nobody else did."""
        return self._is_cancelled and self._task is not None and self._task.uncancel() == 0

    def start_processing(self) -> None:
        """Count the request as active.

        Raises:
            OverloadedError: too many requests are active.
        """
        if not self.is_processing:
            self.is_processing = True
            self._count_against(self._shedding.requests)

    def end(self) -> None:
        """Stop counting the request."""
        self._shedding.incomplete_bodies.pop(self, None)
        if self._limit is not None:
            self._limit.release()
            self._limit = None

    def _count_against(self, limit: ProcessLimit) -> None:
        self.end()
        limit.acquire()
        self._limit = limit

    async def receive(self) -> Message:
        """Receive a part of the body; the last one starts the processing."""
        message = await self._receive()
        if not message.get("more_body"):
            try:
                self.start_processing()
            except OverloadedError:
                # The application would handle the error as its own, so the request is cancelled.
                self.cancel()
                await asyncio.get_running_loop().create_future()
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the response; an event stream counts as a socket from its start."""
        self.start_processing()
        if message["type"] == "http.response.start":
            if _is_event_stream(message):
                self._count_against(self._shedding.sockets)
            self.has_response = True
        await self._send(message)


async def _reject(kind: str, send: Send) -> None:
    # uvicorn can send an HTTP response to a rejected handshake.
    prefix = "websocket." if kind == "websocket" else ""
    start = {"type": f"{prefix}http.response.start", "status": 503, "headers": OVERLOADED_HEADERS}
    await send(start)
    await send({"type": f"{prefix}http.response.body", "body": OVERLOADED_BODY})


def _is_event_stream(message: Message) -> bool:
    return any(
        name == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in message.get("headers", ())
    )
