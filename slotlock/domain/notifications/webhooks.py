"""Webhooks: the addresses that get a signed request when something happens."""

import re
import unicodedata
from dataclasses import field, replace
from datetime import datetime, timedelta
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, NewType
from urllib.parse import urlsplit, urlunsplit

import idna

from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.audit.audit_notes import AuditNote, field_edits
from slotlock.domain.booking.booking_refusals import KeyReused
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.shared.declare import outcome, refusal, shown
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import strip_blanks, validate_line
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId

WebhookId = NewType("WebhookId", str)
# The id of a webhook as clients see it.
ShownWebhookId = Annotated[str, "webhook"]

MAX_URL_LENGTH = 500
# With a number as its last label, a resolver may take a name for an IP address.
HOST_NAME = re.compile(r"(?:[\w-]{1,63}\.)*(?!(?:\d+|0[xX][\da-fA-F]*)\.?$)[\w-]{1,63}\.?")
MAX_HOST_LENGTH = 253
# Readers of URLs disagree about these.
_NOT_IN_URL = re.compile(r"[\s\\]")
MAX_WEBHOOKS = 50
# How long requests are signed with a secret, too, after it was replaced.
ROTATION_PERIOD = timedelta(days=1)
# Each signs every request: more would not fit into the headers that receivers accept.
MAX_SECRETS = 10
DISABLED_AFTER = timedelta(days=5)


class WebhookEvent(DescribedEnum):
    """What a webhook can be about.

    Messages have the name as `booking.confirmed`.
    """

    BOOKING_CONFIRMED = "booking.confirmed", "A place was booked, or a hold was confirmed."
    BOOKING_HELD = (
        "booking.held",
        "A hold was placed, by a user or as an offer of the waiting list.",
    )
    BOOKING_MOVED = "booking.moved", "A booking was moved; the message is about the new one."
    BOOKING_CANCELLED = "booking.cancelled", "A booking was cancelled, or its slot was."
    BOOKING_EXPIRED = "booking.expired", "A hold expired."
    BOOKING_PROMOTED = (
        "booking.promoted",
        "The waiting list booked a free place for its first user.",
    )
    BOOKING_CHECKED_IN = "booking.checked_in", "A user was checked in."
    BOOKING_NO_SHOW = "booking.no_show", "A booking was marked as a no-show."
    WAITLIST_JOINED = "waitlist.joined", "A user joined a waiting list."
    WAITLIST_LEFT = "waitlist.left", "A waiting list entry ended without a booking."
    SLOT_PUBLISHED = "slot.published", "A slot was published, or created as published."
    SLOT_EDITED = "slot.edited", "A slot was changed."
    SLOT_CANCELLED = "slot.cancelled", "A slot was cancelled."
    SLOT_FULL = "slot.full", "The last free place of a slot was taken."
    CAMPAIGN_PUBLISHED = "campaign.published", "A campaign was published, or created as published."
    CAMPAIGN_OPENED = "campaign.opened", "The opening time of a published campaign has come."
    CAMPAIGN_CLOSED = "campaign.closed", "The closing time of a published campaign has come."
    DRAW_CLOSED = "draw.closed", "The wishes of a draw are closed, and its root is public."
    DRAW_PUBLISHED = (
        "draw.published",
        "The result of a draw is public. Its places are booked from now on.",
    )
    USER_CREATED = "user.created", "A user got an account."
    USER_ERASED = "user.erased", "A user was erased."


USER_EVENTS = frozenset({WebhookEvent.USER_CREATED, WebhookEvent.USER_ERASED})
# Those that no slot of the change stream leads to.
SITE_EVENTS = USER_EVENTS | {
    WebhookEvent.CAMPAIGN_PUBLISHED,
    WebhookEvent.CAMPAIGN_OPENED,
    WebhookEvent.CAMPAIGN_CLOSED,
    WebhookEvent.DRAW_CLOSED,
    WebhookEvent.DRAW_PUBLISHED,
}
NOTED_FIELDS = {"url": "server", "events": "events", "enabled": "is_enabled"}
# The kind of the message that tries a webhook out.
PING = "ping"


@value_object
class WebhookSecret:
    """A key of signatures: `whsec_` and 32 bytes in base64. Until `expires_at`, if it has one.

    `key_id` is that of the idempotency key of the rotation that made it, if that had one.
    """

    text: str = field(repr=False)
    expires_at: datetime | None = None
    key_id: str | None = None


@value_object
class Webhook:
    """An address that gets events: all of these kinds, or those of a campaign only.

    It gets what happened since `enabled_at`. All attempts have failed since `failing_since`.
    `request_hash` is that of the request that created it, if that had an idempotency key.
    """

    id: WebhookId
    url: str
    events: tuple[WebhookEvent, ...]
    campaign_id: CampaignId | None
    created_by: UserId
    created_at: datetime
    enabled_at: datetime
    secrets: tuple[WebhookSecret, ...]
    disabled_at: datetime | None = None
    disabled_reason: str | None = None
    failing_since: datetime | None = None
    request_hash: str | None = None

    @property
    def server(self) -> str:
        """The server of the URL. The rest of a URL may be secret."""
        return urlsplit(self.url).netloc

    @property
    def is_enabled(self) -> bool:
        """Whether it gets events."""
        return self.disabled_at is None

    def wants(self, event: str, campaign_id: CampaignId | None) -> bool:
        """Return whether it gets an event of this campaign."""
        return event in self.events and self.campaign_id in (None, campaign_id)

    def secrets_at(self, now: datetime) -> list[WebhookSecret]:
        """Return the secrets that sign a request now, the newest first."""
        return [each for each in self.secrets if each.expires_at is None or now < each.expires_at]

    def with_new_secret(self, secret: WebhookSecret, now: datetime) -> "Webhook":
        """Return the webhook with a new secret. Each other one ends a day after its replacement."""
        newest, *others = self.secrets_at(now)
        replaced = replace(newest, expires_at=now + ROTATION_PERIOD)
        return replace(self, secrets=(secret, replaced, *others))


@value_object
class WebhookDelivery:
    """An entry of the outbox, with the response to the latest attempt, if there was one."""

    entry: OutboxEntry
    attempted_at: datetime | None = None
    response_status: int | None = None
    duration_ms: int | None = None


@value_object
class WebhookSaved:
    """The webhook has the requested state."""

    webhook: Webhook


@value_object
class WebhookCreated:
    """The webhook has a new secret, which is shown once."""

    webhook: Webhook
    secret: str = field(repr=False)


@outcome
class WebhookDeleted:
    """The webhook was deleted. It gets no more events."""

    id: ShownWebhookId = shown("The id of the deleted webhook.", name="webhook_id")


@value_object
class WebhookQueued:
    """A delivery is sent next."""

    delivery: WebhookDelivery


@refusal(message="This webhook or delivery does not exist.")
class WebhookNotFound:
    """The webhook does not exist, or not any more, or the delivery does not."""


CreateWebhookOutcome = WebhookCreated | InvalidInput | KeyReused
UpdateWebhookOutcome = WebhookSaved | WebhookNotFound | InvalidInput
RotateWebhookSecretOutcome = WebhookCreated | WebhookNotFound | InvalidInput | KeyReused
DeleteWebhookOutcome = WebhookDeleted | WebhookNotFound
SendWebhookOutcome = WebhookQueued | WebhookNotFound


def note_webhook_change(
    before: Webhook | None, after: Webhook | None, action: NoteAction, by: UserId, now: datetime
) -> AuditNote:
    """Return the note of a webhook's change, creation or deletion."""
    edits = tuple(field_edits(NOTED_FIELDS, before, after))
    shown = after or before
    campaign_id, server = (shown.campaign_id, shown.server) if shown else (None, None)
    return AuditNote(now, by, action, edits, campaign_id=campaign_id, webhook=server)


def validate_webhook(webhook: Webhook, url: str | Problem | None) -> InvalidInput | None:
    """Return the problems of a webhook, if it has any; `url` is the parsed one that was sent."""
    problems = [FieldProblem("url", url)] if isinstance(url, Problem) else []
    if not webhook.events:
        problems.append(FieldProblem("events", ProblemCode.EVENTS_MISSING.problem()))
    elif webhook.campaign_id is not None and USER_EVENTS & set(webhook.events):
        problems.append(FieldProblem("events", ProblemCode.EVENTS_OF_USERS.problem()))
    return InvalidInput(tuple(problems)) if problems else None


def parse_url(text: str, *, allow_http: bool) -> str | Problem:
    """Return the URL of a webhook as it is called, or its problem.

    The scheme and the host are in lower case, and the host in ASCII by IDNA 2008.
    """
    url, schemes = strip_blanks(text), ("https", "http") if allow_http else ("https",)
    if problem := validate_line(url, MAX_URL_LENGTH):
        return problem
    try:
        parts = urlsplit(url)
        has_host, port = bool(parts.hostname), parts.port
    except ValueError:
        return ProblemCode.INVALID_URL.problem()
    if not has_host or parts.scheme not in schemes:
        return ProblemCode.NOT_HTTPS.problem()
    if parts.username is not None or parts.password is not None or parts.fragment:
        return ProblemCode.URL_WITH_SECRETS.problem()
    host = _to_host(re.sub(r":\d*$", "", parts.netloc))
    if port == 0 or host is None or _NOT_IN_URL.search(url):
        return ProblemCode.INVALID_URL.problem()
    server = host if port is None else f"{host}:{port}"
    parsed = urlunsplit((parts.scheme, server, parts.path, parts.query, ""))
    return validate_line(parsed, MAX_URL_LENGTH) or parsed


def _to_host(text: str) -> str | None:
    """Return a name in ASCII or an IP address in its usual notation; None if it is neither."""
    try:
        if text.startswith("["):
            IPv6Address(text.removeprefix("[").removesuffix("]"))
            return text.lower() if text.endswith("]") and "%" not in text else None
        IPv4Address(text)
    except ValueError:
        return _to_ascii_name(text)
    return text


def _to_ascii_name(text: str) -> str | None:
    if not HOST_NAME.fullmatch(text) or not unicodedata.is_normalized("NFKC", text):
        return None
    try:
        # Names in private networks may have underscores, which IDNA forbids.
        labels = [
            label if label.isascii() else idna.encode(label, uts46=True).decode()
            for label in text.lower().removesuffix(".").split(".")
        ]
    except UnicodeError:
        return None
    name = ".".join(labels)
    return name if len(name) <= MAX_HOST_LENGTH else None
