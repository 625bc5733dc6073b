"""`/unsubscribe/{token}`: the links of mails that a user may refuse (RFC 8058).

Programs that scan mails follow links. GET therefore shows a page with a button, and only POST
changes something: what the button or, with one click, a mail program sends.
"""

import html
from functools import partial

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from slotlock.api.endpoints.endpoint import Endpoint, any_token
from slotlock.api.middleware.error_pages import PAGE, POLICY, STYLE
from slotlock.auth.authentication import VerifiedToken
from slotlock.auth.container import Auth
from slotlock.auth.tokens import parse_unsubscribe_token
from slotlock.domain.shared.unchanged import UNCHANGED
from slotlock.domain.users.user import MailTopic
from slotlock.graphql.limits.operation_kinds import OperationKind
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.graphql.transport.http_messages import HttpError
from slotlock.infrastructure.mail.mail_texts import language_of
from slotlock.services.site.current_site import CurrentSite

# The only form of the page sends to the page itself.
FORM_POLICY = POLICY.replace("form-action 'none'", "form-action 'self'")
# The question, the button and the confirmation, by language and topic.
TEXTS = {
    "en": {
        MailTopic.REMINDERS: ("No more reminders by mail?", "You get no more reminders by mail."),
        MailTopic.ANNOUNCEMENTS: (
            "No more announcements by mail?",
            "You get no more announcements by mail.",
        ),
    },
    "de": {
        MailTopic.REMINDERS: (
            "Keine Erinnerungen mehr per E-Mail?",
            "Es kommen keine Erinnerungen mehr per E-Mail.",
        ),
        MailTopic.ANNOUNCEMENTS: (
            "Keine Rundmails mehr?",
            "Es kommen keine Rundmails mehr.",
        ),
    },
    "zh": {
        MailTopic.REMINDERS: ("退订提醒邮件", "你不会再收到提醒邮件。"),
        MailTopic.ANNOUNCEMENTS: ("退订通知邮件", "你不会再收到通知邮件。"),
    },
}
BUTTONS = {"en": "Unsubscribe", "de": "Abbestellen", "zh": "退订"}
HINTS = {
    "en": "Mails about your own bookings still come. Your account has this setting, too.",
    "de": "E-Mails zu eigenen Buchungen kommen weiterhin. Die Einstellung steht auch im Konto.",
    "zh": "与你自己的预约有关的邮件仍会发送。你也可以在账号中更改此设置。",
}


def unsubscribe_endpoint(
    auth: Auth, rate_limits: OperationRateLimits, site: CurrentSite
) -> Endpoint[VerifiedToken]:
    """Create the endpoint of the links, with whose paths others could unsubscribe the user."""
    return Endpoint(
        auth,
        rate_limits,
        any_token,
        partial(_respond, site),
        ("GET", "HEAD", "POST"),
        costs={OperationKind.WRITE: 1},
        subject="unsubscribing",
    )


async def _respond(
    site: CurrentSite, auth: Auth, _token: VerifiedToken, request: Request
) -> Response:
    users = auth.repositories.users
    found = parse_unsubscribe_token(auth.tokens, request.path_params["token"])
    user = found and await users.find_soon(found[0])
    if not found or not user or user.erased:
        raise HttpError(404, "This link is not valid.")
    user_id, topic = found
    is_done = request.method == "POST"
    if is_done:
        await users.set_preferences(user_id, UNCHANGED, {topic: False})
    values = await site.load()
    return _page(language_of(user.locale, values.locale), topic, is_done=is_done)


def _page(language: str, topic: MailTopic, *, is_done: bool) -> Response:
    title = html.escape(TEXTS[language][topic][is_done])
    form = f'<form method="post"><button>{html.escape(BUTTONS[language])}</button></form>\n'
    hint = f"<p>{html.escape(HINTS[language])}</p>"
    page = PAGE.format(title=title, style=STYLE, paragraphs=hint if is_done else form + hint)
    page = page.replace('lang="en"', f'lang="{language}"', 1)
    return HTMLResponse(page, headers={"Content-Security-Policy": FORM_POLICY})
