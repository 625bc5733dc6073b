"""Failures as pages for browsers: a link to an export or a calendar may be wrong or expired."""

import html
import json
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slotlock.api.middleware.response_headers import page_policy
from slotlock.graphql.transport.content_negotiation import negotiate
from slotlock.graphql.transport.http import MAX_ACCEPT_LENGTH
from slotlock.graphql.transport.http_messages import parse_headers

JSON, TEXT, HTML = "application/json", "text/plain", "text/html"
STYLE = (
    "body{margin:3rem auto;max-width:40rem;padding:0 1rem;font:1rem/1.55 system-ui,sans-serif}"
    "h1{font-size:1.5rem;line-height:1.25}button{font:inherit;min-height:2.75rem;padding:0 1.25rem}"
)
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
{paragraphs}
</body>
</html>
"""
POLICY = page_policy(STYLE)


class ErrorPages:
    """Turns the text of a failure into a page if the client prefers HTML, as a browser does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        accept = scope["type"] == "http" and parse_headers(scope["headers"]).get("accept", "")
        if accept and negotiate(accept[:MAX_ACCEPT_LENGTH], (JSON, HTML)) == HTML:
            send = _SendAsPage(send)
        await self._app(scope, receive, send)


class _SendAsPage:
    """Sends messages; the response to a failure waits for its body, and becomes a page."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_failure(message):
            self._start = message
            return
        if (start := self._start) is not None:
            self._start = None
            # Every failure is sent in one piece.
            page = _page(start, message["body"])
            if page is not None:
                start, message = _with_page(start, page), {**message, "body": page}
            await self._send(start)
        await self._send(message)


def _is_failure(start: Message) -> bool:
    return start["status"] >= HTTPStatus.BAD_REQUEST and _content_type(start) in (JSON, TEXT)


def _content_type(start: Message) -> str:
    return parse_headers(start["headers"]).get("content-type", "").partition(";")[0]


def _page(start: Message, body: bytes) -> bytes | None:
    """Return the page of a failure; None for JSON of another form, such as that of `/readyz`."""
    texts = [body.decode()]
    if _content_type(start) == JSON:
        failure: dict[str, object] = json.loads(body)
        if "error" not in failure:
            return None
        texts = [str(failure["error"])]
        if "errorId" in failure:
            texts.append(f"Error id: {failure['errorId']}")
    paragraphs = "\n".join(f"<p>{html.escape(text)}</p>" for text in texts)
    title = HTTPStatus(start["status"]).phrase
    return PAGE.format(title=title, style=STYLE, paragraphs=paragraphs).encode()


def _with_page(start: Message, page: bytes) -> Message:
    replaced = (b"content-type", b"content-length")
    headers = [
        *(header for header in start["headers"] if header[0] not in replaced),
        (b"content-type", f"{HTML}; charset=utf-8".encode()),
        (b"content-length", b"%d" % len(page)),
        (b"content-security-policy", POLICY.encode()),
        (b"vary", b"Accept"),
    ]
    return {**start, "headers": headers}
