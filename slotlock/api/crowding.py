"""Past what a process can carry it says so at once, instead of slowing down until nobody is served.

Pure ASGI: what is under way is what has begun and not ended, however it ends.
"""

from prometheus_client import Counter
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

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


class Crowding:
    """Lets so many requests and sockets be under way at once; further ones are told 503."""

    def __init__(self, app: ASGIApp, most_requests: int, most_sockets: int) -> None:
        self._app = app
        self._most = {"http": most_requests, "websocket": most_sockets}
        self._under_way = dict.fromkeys(self._most, 0)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or socket, or turn it away."""
        kind = scope["type"]
        if kind not in self._most or scope["path"] in ALWAYS_ANSWERED:
            await self._app(scope, receive, send)
        elif self._under_way[kind] >= self._most[kind]:
            TURNED_AWAY.labels(kind).inc()
            # To a handshake, uvicorn can send the answer of a plain request.
            prefix = "websocket." if kind == "websocket" else ""
            start = {"type": f"{prefix}http.response.start", "status": 503, "headers": HEADERS}
            await send(start)
            await send({"type": f"{prefix}http.response.body", "body": BODY})
        else:
            self._under_way[kind] += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._under_way[kind] -= 1
