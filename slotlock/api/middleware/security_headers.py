"""What browsers are told about every answer, errors included: to make nothing more of it.

`Strict-Transport-Security` is the proxy's, which knows whether there is TLS.
"""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# No answer of ours is a page, but GraphiQL in development, which brings a policy of its own.
CONTENT_SECURITY_POLICY = (
    b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", CONTENT_SECURITY_POLICY),
    (b"x-frame-options", b"DENY"),
    # Other sites' pages may not embed an answer. Those that are allowed to call the API do so by
    # CORS, which this does not concern (Fetch, 3.7).
    (b"cross-origin-resource-policy", b"same-origin"),
    # Most answers are somebody's; what may be kept says so itself.
    (b"cache-control", b"no-store"),
)
# Of a request, and of a handshake that is refused.
_RESPONSE_STARTS = {"http.response.start", "websocket.http.response.start"}


class SecurityHeaders:
    """Around the whole application, so that what fails inside of it gets them, too.

    What is refused before it is asked, or by closing a handshake, gets them from `refusals` and
    `sockets`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; an answer's own headers stand."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] in _RESPONSE_STARTS:
                own = message.get("headers", ())
                named = {name for name, _ in own}
                message["headers"] = [
                    *own,
                    *(each for each in SECURITY_HEADERS if each[0] not in named),
                ]
            await send(message)

        await self._app(scope, receive, send_with_headers)
