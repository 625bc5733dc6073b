"""Use cases of webhooks: create, change and find them, and send their messages again.

Admins manage all webhooks. Organizers manage those of campaigns.
"""

import secrets
from collections.abc import Sequence
from dataclasses import replace

from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.booking.booking_refusals import KeyReused
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.notifications.outbox import Channel
from slotlock.domain.notifications.webhook_messages import ping_message
from slotlock.domain.notifications.webhooks import (
    MAX_SECRETS,
    MAX_WEBHOOKS,
    CreateWebhookOutcome,
    DeleteWebhookOutcome,
    RotateWebhookSecretOutcome,
    SendWebhookOutcome,
    UpdateWebhookOutcome,
    Webhook,
    WebhookCreated,
    WebhookDeleted,
    WebhookDelivery,
    WebhookEvent,
    WebhookId,
    WebhookNotFound,
    WebhookQueued,
    WebhookSaved,
    WebhookSecret,
    note_webhook_change,
    parse_url,
    validate_webhook,
)
from slotlock.domain.shared.pagination import Page, Position
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.user import Caller, Role
from slotlock.infrastructure.mongo.client import CommitUnknownError
from slotlock.infrastructure.mongo.ids import new_webhook_id
from slotlock.infrastructure.mongo.outbox.outbox_repository import READ_ERRORS
from slotlock.infrastructure.webhooks.signing import to_secret
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey

SECRET_BYTES = 32
ID_DIGITS = 24


async def create(
    services: Services,
    url: str,
    events: Sequence[WebhookEvent],
    campaign_id: CampaignId | None,
    caller: Caller,
    *,
    allow_http: bool,
    key_text: str | None = None,
) -> CreateWebhookOutcome:
    """Create a webhook, which gets what happens from now on.

    The id of one with a key follows from it, so that a repeated request finds the webhook.

    Raises:
        CommitUnknownError: two requests of a key met, and their webhook was deleted already.
    """
    key = IdempotencyKey.for_creation(
        caller.user_id, key_text, "createWebhook", url, [*events], campaign_id
    )
    if created := await _find_created(services, key):
        return created
    called_url = parse_url(url, allow_http=allow_http)
    now, secret = services.now(), _new_secret()
    webhook = Webhook(
        _id_of(key) if key else new_webhook_id(),
        called_url,
        _in_order(events),
        campaign_id,
        caller.user_id,
        now,
        now,
        (WebhookSecret(secret),),
        request_hash=key.request_hash if key else None,
    )
    if invalid := validate_webhook(webhook, called_url):
        return invalid
    if invalid := await _campaign_problem(services, campaign_id, caller):
        return invalid
    if len(await services.webhooks.find_all()) >= MAX_WEBHOOKS:
        problem = ProblemCode.TOO_MANY_WEBHOOKS.problem(maximum=MAX_WEBHOOKS)
        return InvalidInput((FieldProblem("url", problem),))
    await services.slot_changes.begin(Channel.WEBHOOK, now)
    note = note_webhook_change(None, webhook, NoteAction.WEBHOOK_CREATED, caller.user_id, now)
    if await services.webhooks.insert(webhook, note):
        return WebhookCreated(webhook, secret)
    if created := await _find_created(services, key):
        return created
    raise CommitUnknownError("the webhook of another request with the key was deleted")


async def update(
    services: Services,
    webhook_id: WebhookId | None,
    url: str | None,
    events: Sequence[WebhookEvent] | None,
    enabled: bool | None,
    caller: Caller,
    *,
    allow_http: bool,
) -> UpdateWebhookOutcome:
    """Change a webhook; None leaves a field as it is.

    One that is enabled again gets what happens from now on.
    """
    now = services.now()
    new_url = None if url is None else parse_url(url, allow_http=allow_http)
    while (before := await find(services, webhook_id, caller)) is not None:
        new_events = before.events if events is None else _in_order(events)
        after = replace(before, url=new_url or before.url, events=new_events)
        if invalid := validate_webhook(after, new_url):
            return invalid
        if enabled is False and before.is_enabled:
            after = replace(after, disabled_at=now, disabled_reason=None)
        if enabled and not before.is_enabled:
            after = replace(
                after, enabled_at=now, disabled_at=None, disabled_reason=None, failing_since=None
            )
            await services.slot_changes.begin(Channel.WEBHOOK, now)
        note = note_webhook_change(before, after, NoteAction.WEBHOOK_EDITED, caller.user_id, now)
        if after == before or await services.webhooks.update(before, after, note):
            return WebhookSaved(after)
    return WebhookNotFound()


async def rotate_secret(
    services: Services, webhook_id: WebhookId | None, caller: Caller, key_text: str | None = None
) -> RotateWebhookSecretOutcome:
    """Give a webhook a new secret. Each other one signs its requests for a day after its end, too.

    A repeated request with a key returns the secret that the first one made.
    """
    key = IdempotencyKey.for_creation(
        caller.user_id, key_text, "rotateWebhookSecret", webhook_id or ""
    )
    now, key_id = services.now(), key.record_id if key else None
    secret = WebhookSecret(_new_secret(), key_id=key_id)
    while (before := await find(services, webhook_id, caller)) is not None:
        if rotated := await _find_rotated(services, before.id, key):
            return rotated
        if len(before.secrets_at(now)) >= MAX_SECRETS:
            problem = ProblemCode.TOO_MANY_SECRETS.problem(maximum=MAX_SECRETS)
            return InvalidInput((FieldProblem("webhookId", problem),))
        after = before.with_new_secret(secret, now)
        note = note_webhook_change(before, after, NoteAction.WEBHOOK_ROTATED, caller.user_id, now)
        if await services.webhooks.update(before, after, note):
            return WebhookCreated(after, secret.text)
    return WebhookNotFound()


async def delete(
    services: Services, webhook_id: WebhookId | None, caller: Caller
) -> DeleteWebhookOutcome:
    """Delete a webhook. What waits for it is not sent."""
    before, now = await find(services, webhook_id, caller), services.now()
    if before is None:
        return WebhookNotFound()
    note = note_webhook_change(before, None, NoteAction.WEBHOOK_DELETED, caller.user_id, now)
    is_deleted = await services.webhooks.delete(before.id, note)
    return WebhookDeleted(before.id) if is_deleted else WebhookNotFound()


async def ping(
    services: Services, webhook_id: WebhookId | None, caller: Caller
) -> SendWebhookOutcome:
    """Send a message about nothing, also to a webhook that is disabled."""
    webhook, now = await find(services, webhook_id, caller), services.now()
    if webhook is None:
        return WebhookNotFound()
    entry = ping_message(now, secrets.token_hex(8)).to_entry(webhook)
    await services.outbox.insert([entry], now)
    return WebhookQueued(WebhookDelivery(entry))


async def redeliver(services: Services, entry_id: str | None, caller: Caller) -> SendWebhookOutcome:
    """Send a message again, with the same id, whatever became of it."""
    entry = await services.outbox.find(entry_id) if entry_id else None
    webhook_id = WebhookId(entry.data.get("webhook", "")) if entry else None
    if entry is None or await find(services, webhook_id, caller) is None:
        return WebhookNotFound()
    queued = await services.webhooks.queue_again(entry.id, services.now())
    return WebhookQueued(queued) if queued else WebhookNotFound()


async def find(services: Services, webhook_id: WebhookId | None, caller: Caller) -> Webhook | None:
    """Return a webhook if the id names one that the caller manages, and that can be read."""
    try:
        webhook = await services.webhooks.find(webhook_id) if webhook_id else None
    except READ_ERRORS:  # `slotlock doctor` names it
        return None
    return webhook if webhook and _is_managed_by(webhook, caller) else None


async def list_all(services: Services, caller: Caller) -> list[Webhook]:
    """Return the webhooks that the caller manages, the oldest first."""
    found = await services.webhooks.find_all()
    return [webhook for webhook in found if _is_managed_by(webhook, caller)]


async def list_deliveries(
    services: Services, webhook_id: WebhookId, first: int, after: Position | None
) -> Page[WebhookDelivery]:
    """Return the next deliveries of a webhook, the newest first. They are stored for 30 days."""
    return await services.webhooks.page_deliveries(webhook_id, first, after)


def _is_managed_by(webhook: Webhook, caller: Caller) -> bool:
    return caller.role is Role.ADMIN or (caller.is_organizer and webhook.campaign_id is not None)


async def _campaign_problem(
    services: Services, campaign_id: CampaignId | None, caller: Caller
) -> InvalidInput | None:
    if campaign_id is None and caller.role is not Role.ADMIN:
        code = ProblemCode.CAMPAIGN_MISSING
    elif campaign_id is not None and await services.campaigns.find(campaign_id) is None:
        code = ProblemCode.UNKNOWN_CAMPAIGN
    else:
        return None
    return InvalidInput((FieldProblem("campaignId", code.problem()),))


def _id_of(key: IdempotencyKey) -> WebhookId:
    return WebhookId(key.record_id[:ID_DIGITS])


async def _find_created(
    services: Services, key: IdempotencyKey | None
) -> WebhookCreated | KeyReused | None:
    """Return what an earlier request with the key created, with the secret of its signatures."""
    webhook = await services.webhooks.find(_id_of(key)) if key else None
    if key is None or webhook is None:
        return None
    if webhook.request_hash != key.request_hash:
        return KeyReused(key.key)
    return WebhookCreated(webhook, webhook.secrets[0].text)


async def _find_rotated(
    services: Services, webhook_id: WebhookId, key: IdempotencyKey | None
) -> WebhookCreated | KeyReused | None:
    """Return the secret that an earlier request with the key made."""
    for webhook in await services.webhooks.find_all() if key else ():
        for secret in webhook.secrets:
            if key and secret.key_id == key.record_id:
                is_same = webhook.id == webhook_id
                return WebhookCreated(webhook, secret.text) if is_same else KeyReused(key.key)
    return None


def _in_order(events: Sequence[WebhookEvent]) -> tuple[WebhookEvent, ...]:
    return tuple(event for event in WebhookEvent if event in events)


def _new_secret() -> str:
    return to_secret(secrets.token_bytes(SECRET_BYTES))
