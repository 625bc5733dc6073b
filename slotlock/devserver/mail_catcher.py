"""A mail server on loopback: it shows the mails of `slotlock dev` at `/mail`, and delivers none."""

import email
import email.policy
import html
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from ipaddress import ip_address

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from slotlock.api.endpoints.responses import to_response
from slotlock.api.middleware.response_headers import page_policy
from slotlock.domain.shared.value_object import value_object
from slotlock.graphql.transport.http_messages import HttpError

MAX_MAILS = 500
MAX_MAIL_BYTES = 10_000_000
STYLE = "body { margin: 2rem; font: 1rem/1.5 sans-serif } iframe { width: 100%; height: 32rem }"
# A mail is a document of another origin, without scripts. Its links open in tabs of their own.
MAIL_POLICY = (
    "sandbox allow-popups allow-popups-to-escape-sandbox; "
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"
)
MAIL_HEADERS = {"Content-Security-Policy": MAIL_POLICY, "X-Frame-Options": "SAMEORIGIN"}


@value_object
class CaughtMail:
    """A mail as it arrived; `number` grows by one with each."""

    number: int
    recipients: tuple[str, ...]
    content: bytes

    @property
    def message(self) -> EmailMessage:
        """The mail, parsed."""
        return email.message_from_bytes(self.content, EmailMessage, policy=email.policy.default)


class MailCatcher:
    """Takes every mail, and has the last ones."""

    def __init__(self) -> None:
        self.mails: deque[CaughtMail] = deque(maxlen=MAX_MAILS)
        self.count = 0

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: ARG002, N802 - the library calls it
        """Take a mail, and return the response."""
        self.count += 1
        content = bytes(envelope.original_content or b"")
        self.mails.append(CaughtMail(self.count, tuple(envelope.rcpt_tos), content))
        return "250 caught"


@contextmanager
def catching_mail(handler: object) -> Iterator[int]:
    """Serve SMTP on loopback with a handler of aiosmtpd, in a thread; yield the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    controller = Controller(
        handler, "127.0.0.1", port, server_hostname="localhost", data_size_limit=MAX_MAIL_BYTES
    )
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


def mail_routes(catcher: MailCatcher) -> list[Route]:
    """Return the routes that show the caught mails, the newest first, to this machine only."""

    async def show_all(request: Request) -> Response:
        if not _is_local(request):
            return _not_found()
        policy = f"{page_policy(STYLE)}; frame-src 'self'"
        return HTMLResponse(_page(catcher), headers={"Content-Security-Policy": policy})

    async def show_one(request: Request) -> Response:
        number = request.path_params["number"]
        mail = next((each for each in [*catcher.mails] if each.number == number), None)
        if mail is None or not _is_local(request):
            return _not_found()
        body = mail.message.get_body(("html", "plain"))
        content = "" if body is None else str(body.get_content())
        if body is None or body.get_content_subtype() == "plain":
            content = f"<head></head><pre>{html.escape(content)}</pre>"
        return HTMLResponse(
            content.replace("<head>", '<head><base target="_blank">', 1), headers=MAIL_HEADERS
        )

    async def show_source(request: Request) -> Response:
        number = request.path_params["number"]
        mail = next((each for each in [*catcher.mails] if each.number == number), None)
        if mail is None or not _is_local(request):
            return _not_found()
        return PlainTextResponse(mail.content.decode(errors="replace"))

    return [
        Route("/mail", show_all),
        Route("/mail/{number:int}", show_one),
        Route("/mail/{number:int}/source", show_source),
    ]


def _is_local(request: Request) -> bool:
    """Return whether a request comes from this machine: mails contain links that sign in."""
    return request.client is not None and ip_address(request.client.host).is_loopback


def _not_found() -> Response:
    return to_response(HttpError(404, "There is no such mail."))


def _page(catcher: MailCatcher) -> str:
    rows = [_row(mail) for mail in reversed([*catcher.mails])]
    content = "\n".join(rows) or "<p>Nothing was sent yet. Mails leave after about a minute.</p>"
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Mail</title>'
        f"<style>{STYLE}</style></head>\n<body>\n<h1>Mail</h1>\n"
        f"<p>The last {MAX_MAILS} mails; none was delivered.</p>\n{content}\n</body>\n</html>\n"
    )


def _row(mail: CaughtMail) -> str:
    message, number = mail.message, mail.number
    shown = (mail.recipients[0], message["Subject"], message["Date"])
    names = [part.get_filename() or "" for part in message.iter_attachments()]
    summary = " · ".join(html.escape(str(each)) for each in (*shown, *names))
    return (
        f"<details><summary>{summary}</summary>"
        f'<iframe sandbox="allow-popups allow-popups-to-escape-sandbox" loading="lazy" '
        f'title="Mail {number}" src="mail/{number}"></iframe>'
        f'<p><a href="mail/{number}/source">Source</a></p></details>'
    )
