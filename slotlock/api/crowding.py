"""Past what a process can carry it says so at once, instead of slowing down until nobody is served.

Pure ASGI: what is under way is what has begun and not ended, however it ends.
"""

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


class Crowding:
    """Lets so many requests and sockets be under way at once; further ones are told 503.

    An event stream lasts as a socket does, and has a place among those from its first line on.
    """

    def __init__(self, app: ASGIApp, most_requests: int, most_sockets: int) -> None:
        self._app = app
        self._requests, self._sockets = _Room(most_requests), _Room(most_sockets)

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
        with ExitStack() as place:
            place.enter_context(self._requests.place())

            async def send_from_its_place(message: Message) -> None:
                if message["type"] == "http.response.start" and _begins_a_stream(message):
                    place.close()
                    place.enter_context(self._sockets.place())
                await send(message)

            await self._app(scope, receive, send_from_its_place)


def _begins_a_stream(start: Message) -> bool:
    return any(
        name == b"content-type" and value.startswith(b"text/event-stream")
        for name, value in start.get("headers", ())
    )
