"""Load shedding: a process rejects requests beyond its limits at once instead of slowing down."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from prometheus_client import Counter
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Monitoring asks these whether the process lives.
NEVER_SHED_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
RETRY_AFTER_S = 2
OVERLOADED_BODY = (
    b'{"errors":[{"message":"The server is overloaded. Please try again in a moment.",'
    b'"extensions":{"code":"RATE_LIMITED","retryAfterMs":%d}}]}' % (RETRY_AFTER_S * 1000)
)
OVERLOADED_HEADERS = Headers(
    {
        "content-type": "application/json",
        "content-length": str(len(OVERLOADED_BODY)),
        "retry-after": str(RETRY_AFTER_S),
    }
).raw

SHED_REQUESTS = Counter(
    "slotlock_shed_requests_total",
    "Requests and sockets that were rejected because this process was overloaded",
    ["type"],
)


class _OverloadedError(Exception):
    """The process has no room for a request or socket."""


class _ConcurrencyLimit:
    """At most `max_active` requests or sockets at once."""

    def __init__(self, max_active: int) -> None:
        self._max_active = max_active
        self._active = 0

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Count one more while the context is open.

        Raises:
            _OverloadedError: the limit is reached.
        """
        if self._active >= self._max_active:
            raise _OverloadedError
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1


class _IncompleteBodies:
    """At most `max_incomplete` requests whose bodies are incomplete; the oldest makes room.

    Honest clients send their bodies soon. Rejecting the newest request instead would let slow
    clients lock out all others.
    """

    def __init__(self, max_incomplete: int) -> None:
        self._max_incomplete = max_incomplete
        self._timeouts: dict[asyncio.Timeout, None] = {}

    @contextmanager
    def track(self, timeout: asyncio.Timeout) -> Iterator[None]:
        """Track a request while the context is open; its timeout may be made to expire."""
        if len(self._timeouts) >= self._max_incomplete:
            oldest = next(iter(self._timeouts))
            del self._timeouts[oldest]
            _expire_now(oldest)
        self._timeouts[timeout] = None
        try:
            yield
        finally:
            self._timeouts.pop(timeout, None)


def _expire_now(timeout: asyncio.Timeout) -> None:
    timeout.reschedule(asyncio.get_running_loop().time())


class LoadSheddingMiddleware:
    """Rejects requests and sockets beyond the limits of the process with 503.

    A request counts once its body is complete; as many more may have incomplete bodies. An event
    stream counts as a socket from its first line on.
    """

    def __init__(self, app: ASGIApp, max_requests: int, max_sockets: int) -> None:
        self._app = app
        self._requests = _ConcurrencyLimit(max_requests)
        self._sockets = _ConcurrencyLimit(max_sockets)
        self._incomplete_bodies = _IncompleteBodies(max_requests)

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
                with self._sockets.acquire():
                    await self._app(scope, receive, send)
        except _OverloadedError:
            SHED_REQUESTS.labels(kind).inc()
            await _reject(kind, send)

    async def _handle_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as permit:
            request = _TrackedRequest(permit, self._requests, self._sockets, receive, send)
            if scope["method"] == "POST":
                await self._handle_post(scope, request)
            else:
                request.start_processing()
                await self._app(scope, receive, request.send)

    async def _handle_post(self, scope: Scope, request: "_TrackedRequest") -> None:
        try:
            async with asyncio.timeout(None) as timeout:
                request.wait_for_body(self._incomplete_bodies, timeout)
                await self._app(scope, request.receive, request.send)
        except TimeoutError:
            if not timeout.expired():
                raise
            raise _OverloadedError from None


class _TrackedRequest:
    """A request that counts first as an incomplete body, then as a request, then as a stream.

    `permit` holds its current place.
    """

    def __init__(
        self,
        permit: ExitStack,
        requests: _ConcurrencyLimit,
        sockets: _ConcurrencyLimit,
        receive: Receive,
        send: Send,
    ) -> None:
        self._permit = permit
        self._requests = requests
        self._sockets = sockets
        self._receive = receive
        self._send = send
        self._is_processing = False
        self._timeout: asyncio.Timeout | None = None

    def wait_for_body(self, incomplete_bodies: _IncompleteBodies, timeout: asyncio.Timeout) -> None:
        """Count the request as an incomplete body, which a newer one may expire."""
        self._timeout = timeout
        self._permit.enter_context(incomplete_bodies.track(timeout))

    def start_processing(self) -> None:
        """Count the request as active.

        Raises:
            _OverloadedError: too many requests are active.
        """
        if not self._is_processing:
            self._is_processing = True
            self._permit.close()
            self._permit.enter_context(self._requests.acquire())

    async def receive(self) -> Message:
        """Receive a part of the body; the last one starts the processing."""
        message = await self._receive()
        if not message.get("more_body"):
            try:
                self.start_processing()
            except _OverloadedError:
                # The application would handle the error as its own, so the timeout cancels it.
                if self._timeout is not None:
                    _expire_now(self._timeout)
                await asyncio.get_running_loop().create_future()
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the response; an event stream counts as a socket from its start."""
        self.start_processing()
        if message["type"] == "http.response.start" and _is_event_stream(message):
            self._permit.close()
            self._permit.enter_context(self._sockets.acquire())
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
