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
ALWAYS_ANSWERED = frozenset({"/healthz", "/readyz", "/metrics"})
RETRY_AFTER_S = 2
BODY = (
    b'{"errors":[{"message":"Too much is under way here. Please ask again in a moment.",'
    b'"extensions":{"code":"RATE_LIMITED","retryAfterMs":%d}}]}' % (RETRY_AFTER_S * 1000)
)
HEADERS = Headers(
    {
        "content-type": "application/json",
        "content-length": str(len(BODY)),
        "retry-after": str(RETRY_AFTER_S),
    }
).raw

TURNED_AWAY = Counter(
    "slotlock_turned_away_total",
    "Requests and sockets (http, websocket) for which there was no room in this process",
    ["type"],
)


class _NoRoomError(Exception):
    """Ends what would have been answered."""


class _Room:
    """So many at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken = 0

    @contextmanager
    def place(self) -> Iterator[None]:
        """Have a place in it as long as this lasts. Errors: _NoRoomError."""
        if self._taken >= self._most:
            raise _NoRoomError
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1


class _Coming:
    """So many requests whose bodies are not whole; for one more, the eldest is given up.

    Bodies of the honest come soon. To refuse the newest would let whoever holds on shut all out.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[asyncio.Timeout, None] = {}

    @contextmanager
    def place(self, limit: asyncio.Timeout) -> Iterator[None]:
        """Have a place in it, until this limit is made to pass."""
        if len(self._waiting) >= self._most:
            eldest = next(iter(self._waiting))
            del self._waiting[eldest]
            _give_up(eldest)
        self._waiting[limit] = None
        try:
            yield
        finally:
            self._waiting.pop(limit, None)


def _give_up(limit: asyncio.Timeout) -> None:
    limit.reschedule(asyncio.get_running_loop().time())


class Crowding:
    """Lets so many requests and sockets be under way at once; further ones are told 503.

    A request is under way once its body is whole, and so many more may be on their way here.
    An event stream lasts as a socket does, and has a place among those from its first line on.
    """

    def __init__(self, app: ASGIApp, most_requests: int, most_sockets: int) -> None:
        self._app = app
        self._requests, self._sockets = _Room(most_requests), _Room(most_sockets)
        self._coming = _Coming(most_requests)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or socket, or turn it away."""
        kind = scope["type"]
        if kind not in ("http", "websocket") or scope["path"] in ALWAYS_ANSWERED:
            await self._app(scope, receive, send)
            return
        try:
            if kind == "http":
                await self._request(scope, receive, send)
            else:
                with self._sockets.place():
                    await self._app(scope, receive, send)
        except _NoRoomError:
            TURNED_AWAY.labels(kind).inc()
            # To a handshake, uvicorn can send the answer of a plain request.
            prefix = "websocket." if kind == "websocket" else ""
            start = {"type": f"{prefix}http.response.start", "status": 503, "headers": HEADERS}
            await send(start)
            await send({"type": f"{prefix}http.response.body", "body": BODY})

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            with ExitStack() as place:
                place.enter_context(self._requests.place())
                await self._app(scope, receive, self._sending(place, send))
            return
        limit = asyncio.timeout(None)
        try:
            async with limit:
                await self._with_body(scope, receive, send, limit)
        except TimeoutError:
            if not limit.expired():
                raise
            raise _NoRoomError from None

    async def _with_body(
        self, scope: Scope, receive: Receive, send: Send, limit: asyncio.Timeout
    ) -> None:
        whole = False
        with ExitStack() as place:
            place.enter_context(self._coming.place(limit))

            def begin() -> None:
                nonlocal whole
                if not whole:
                    whole = True
                    place.close()
                    place.enter_context(self._requests.place())

            async def receive_to_the_end() -> Message:
                message = await receive()
                if not message.get("more_body"):
                    try:
                        begin()
                    except _NoRoomError:  # the application would take it for a failure of its own
                        _give_up(limit)
                        await asyncio.get_running_loop().create_future()
                return message

            sending = self._sending(place, send)

            async def send_even_early(message: Message) -> None:
                begin()
                await sending(message)

            await self._app(scope, receive_to_the_end, send_even_early)

    def _sending(self, place: ExitStack, send: Send) -> Send:
        async def send_from_its_place(message: Message) -> None:
            if message["type"] == "http.response.start" and _begins_a_stream(message):
                place.close()
                place.enter_context(self._sockets.place())
            await send(message)

        return send_from_its_place


def _begins_a_stream(start: Message) -> bool:
    return any(
        name == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in start.get("headers", ())
    )
