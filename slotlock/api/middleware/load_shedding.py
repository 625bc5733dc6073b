"""Past what a process can carry it says so at once, instead of slowing down until nobody is served.

Pure ASGI: what is under way is what has begun and not ended, however it ends.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from prometheus_client import Counter
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Machines ask these whether the process lives.
NEVER_SHED_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
RETRY_AFTER_S = 2
OVERLOADED_BODY = (
    b'{"errors":[{"message":"Too much is under way here. Please ask again in a moment.",'
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
    "Requests and sockets (http, websocket) for which there was no room in this process",
    ["type"],
)


class _OverloadedError(Exception):
    """Ends what would have been answered."""


class _ConcurrencyLimit:
    """So many at once."""

    def __init__(self, max_active: int) -> None:
        self._max_active = max_active
        self._active = 0

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Have a place in it as long as this lasts. Errors: _NoRoomError."""
        if self._active >= self._max_active:
            raise _OverloadedError
        self._active += 1
        try:
            yield
        finally:
            self._active -= 1


class _IncompleteBodies:
    """So many requests whose bodies are not whole; for one more, the eldest is given up.

    Bodies of the honest come soon. To refuse the newest would let whoever holds on shut all out.
    """

    def __init__(self, max_incomplete: int) -> None:
        self._max_incomplete = max_incomplete
        self._timeouts: dict[asyncio.Timeout, None] = {}

    @contextmanager
    def track(self, timeout: asyncio.Timeout) -> Iterator[None]:
        """Have a place in it, until this limit is made to pass."""
        if len(self._timeouts) >= self._max_incomplete:
            eldest = next(iter(self._timeouts))
            del self._timeouts[eldest]
            _expire_now(eldest)
        self._timeouts[timeout] = None
        try:
            yield
        finally:
            self._timeouts.pop(timeout, None)


def _expire_now(timeout: asyncio.Timeout) -> None:
    timeout.reschedule(asyncio.get_running_loop().time())


class LoadSheddingMiddleware:
    """Lets so many requests and sockets be under way at once; further ones are told 503.

    A request is under way once its body is whole, and so many more may be on their way here.
    An event stream lasts as a socket does, and has a place among those from its first line on.
    """

    def __init__(self, app: ASGIApp, max_requests: int, max_sockets: int) -> None:
        self._app = app
        self._requests, self._sockets = (
            _ConcurrencyLimit(max_requests),
            _ConcurrencyLimit(max_sockets),
        )
        self._incomplete_bodies = _IncompleteBodies(max_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or socket, or turn it away."""
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
            # To a handshake, uvicorn can send the answer of a plain request.
            prefix = "websocket." if kind == "websocket" else ""
            start = {
                "type": f"{prefix}http.response.start",
                "status": 503,
                "headers": OVERLOADED_HEADERS,
            }
            await send(start)
            await send({"type": f"{prefix}http.response.body", "body": OVERLOADED_BODY})

    async def _handle_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            with ExitStack() as place:
                place.enter_context(self._requests.acquire())
                await self._app(scope, receive, self._moving_streams(place, send))
            return
        limit = asyncio.timeout(None)
        try:
            async with limit:
                await self._handle_with_body(scope, receive, send, limit)
        except TimeoutError:
            if not limit.expired():
                raise
            raise _OverloadedError from None

    async def _handle_with_body(
        self, scope: Scope, receive: Receive, send: Send, timeout: asyncio.Timeout
    ) -> None:
        whole = False
        with ExitStack() as place:
            place.enter_context(self._incomplete_bodies.track(timeout))

            def start_processing() -> None:
                nonlocal whole
                if not whole:
                    whole = True
                    place.close()
                    place.enter_context(self._requests.acquire())

            async def receive_and_start() -> Message:
                message = await receive()
                if not message.get("more_body"):
                    try:
                        start_processing()
                    except (
                        _OverloadedError
                    ):  # the application would take it for a failure of its own
                        _expire_now(timeout)
                        await asyncio.get_running_loop().create_future()
                return message

            sending = self._moving_streams(place, send)

            async def start_and_send(message: Message) -> None:
                start_processing()
                await sending(message)

            await self._app(scope, receive_and_start, start_and_send)

    def _moving_streams(self, permit: ExitStack, send: Send) -> Send:
        async def send_and_move(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_event_stream(message):
                permit.close()
                permit.enter_context(self._sockets.acquire())
            await send(message)

        return send_and_move


def _is_event_stream(message: Message) -> bool:
    return any(
        name == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in message.get("headers", ())
    )
