"""Sends the entries of the channel WEBHOOK, and disables webhooks that do not work."""

from collections import Counter
from collections.abc import Sequence

from slotlock.domain.notifications.mail_kinds import WEBHOOK_DISABLED, direct_mail
from slotlock.domain.notifications.outbox import Delivery, OutboxEntry, OutboxState
from slotlock.domain.notifications.webhooks import DISABLED_AFTER, PING, Webhook, WebhookId
from slotlock.infrastructure.webhooks.signing import signed_headers
from slotlock.infrastructure.webhooks.webhook_client import WebhookClient, WebhookResponse
from slotlock.services.container import Services

GONE = 410
# A receiver that does not respond leaves room for the others.
MAX_ATTEMPTS_AT_ONCE_WHILE_FAILING = 2


class WebhookSender:
    """Sends messages to webhooks."""

    def __init__(self, services: Services, client: WebhookClient) -> None:
        self._services = services
        self._client = client
        self._in_flight = Counter[WebhookId]()

    async def deliver(self, entries: Sequence[OutboxEntry]) -> Delivery:
        """Send an entry to its webhook. Raises: PyMongoError."""
        entry = entries[0]
        webhook = await self._services.webhooks.find(WebhookId(entry.data["webhook"]))
        if webhook is None:
            return Delivery(OutboxState.SUPPRESSED, "the webhook was deleted")
        if webhook.disabled_at is not None and entry.kind != PING:
            return Delivery(OutboxState.SUPPRESSED, "the webhook is disabled")
        is_busy = self._in_flight[webhook.id] >= MAX_ATTEMPTS_AT_ONCE_WHILE_FAILING
        if webhook.failing_since is not None and is_busy:
            note = "other messages wait for the response of this receiver"
            return Delivery(OutboxState.QUEUED, note, is_outage=True)
        self._in_flight[webhook.id] += 1
        try:
            response = await self._post(webhook, entry)
        finally:
            self._in_flight[webhook.id] -= 1
        await self._services.webhooks.record_response(
            entry.id, self._services.now(), response.status, response.duration_ms
        )
        return await self._conclude(webhook, response)

    async def _post(self, webhook: Webhook, entry: OutboxEntry) -> WebhookResponse:
        now, body = self._services.now(), entry.data["body"].encode()
        # The signed text has a full stop between its parts.
        message_id = entry.id.replace(".", "_")
        secrets = [secret.text for secret in webhook.secrets_at(now)]
        headers = signed_headers(message_id, int(now.timestamp()), body, secrets)
        return await self._client.post(webhook.url, body, headers)

    async def _conclude(self, webhook: Webhook, response: WebhookResponse) -> Delivery:
        webhooks, now = self._services.webhooks, self._services.now()
        if response.is_success:
            if webhook.failing_since is not None:
                await webhooks.record_success(webhook.id)
            return Delivery(OutboxState.SENT, response.text)
        if response.status == GONE:
            await self._disable(webhook, "The receiver responded with 410 Gone.")
            return Delivery(OutboxState.FAILED, response.text)
        failing_since = await webhooks.record_failure(webhook.id, now)
        if now - failing_since >= DISABLED_AFTER:
            days = DISABLED_AFTER.days
            await self._disable(webhook, f"No attempt of {days} days worked: {response.text}")
        return Delivery(OutboxState.QUEUED, response.text, retry_after=response.retry_after)

    async def _disable(self, webhook: Webhook, reason: str) -> None:
        """Disable a webhook, and say so to the user who created it, first: both can be repeated."""
        if webhook.disabled_at is not None:
            return
        now = self._services.now()
        version = str(round(webhook.enabled_at.timestamp() * 1000))
        mail = direct_mail(
            WEBHOOK_DISABLED,
            webhook.id,
            version,
            now,
            user_id=webhook.created_by,
            data={"url": webhook.url, "reason": reason},
        )
        await self._services.outbox.insert([mail], now)
        await self._services.webhooks.disable(webhook.id, reason, now)
