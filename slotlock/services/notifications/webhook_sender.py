"""Sends the entries of the channel WEBHOOK, and disables webhooks that do not work.

Each receiver has a queue and places of its own. What waits for one that hangs stays in the outbox,
unleased and unread, and delays no other.
"""

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from slotlock.domain.notifications.mail_kinds import WEBHOOK_DISABLED, direct_mail
from slotlock.domain.notifications.outbox import (
    Channel,
    Delivery,
    OutboxEntry,
    OutboxState,
    to_note,
)
from slotlock.domain.notifications.webhooks import DISABLED_AFTER, PING, Webhook, WebhookId
from slotlock.infrastructure.tasks import cancel_and_wait
from slotlock.infrastructure.webhooks.signing import signed_headers
from slotlock.infrastructure.webhooks.webhook_client import WebhookClient, WebhookResponse
from slotlock.services.container import Services
from slotlock.services.notifications.outbox_sender import OutboxSender

GONE = 410
# The requests of a process to one receiver at once, from the first one on.
OWN_PLACES = 2
# Receivers share these places as well while they accept messages within this time.
SHARED_PLACES = 20
PROMPT_MS = 2000
# A receiver that fails again and again gets no more for this time, or for as long as it asks, at
# most a minute: thousands of messages may be due.
FAILURE_PAUSE, MAX_FAILURE_PAUSE = timedelta(seconds=5), timedelta(minutes=1)


class WebhookSender(OutboxSender):
    """Sends messages to webhooks."""

    def __init__(self, services: Services, client: WebhookClient) -> None:
        super().__init__(services, Channel.WEBHOOK, self.deliver)
        self._client = client
        # The webhooks whose latest response was prompt and a success.
        self._prompt: set[str] = set()
        # The webhooks that fail, and until when they get no more.
        self._paused: dict[str, datetime] = {}
        # The attempts whose webhooks have no room for more.
        self._awaited: list[asyncio.Task[None]] = []

    async def _find(self, until: datetime) -> Sequence[OutboxEntry]:
        """Return entries that are due until then, of the webhooks that have room."""
        rooms = Rooms(self._sending.values(), self._prompt)
        full, now = rooms.full_webhooks, self._services.now()
        self._awaited = [task for task, entry in self._sending.items() if webhook_of(entry) in full]
        self._paused = {id_: end for id_, end in self._paused.items() if now < end}
        limit = OWN_PLACES + SHARED_PLACES
        return await self._services.outbox.find_due_by_webhook(until, full | {*self._paused}, limit)

    async def _begin(self, due: Sequence[OutboxEntry]) -> int:
        chosen = Rooms(self._sending.values(), self._prompt).choose(due)
        return await self._lease_and_send(chosen) if chosen else 0

    async def _wait(self, inserted: asyncio.Event, timeout_s: float) -> None:
        waiter = asyncio.create_task(inserted.wait())
        try:
            await asyncio.wait(
                [waiter, *self._awaited], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            await cancel_and_wait(waiter)

    async def deliver(self, entries: Sequence[OutboxEntry]) -> Delivery:
        """Send an entry to its webhook. Raises: PyMongoError."""
        entry = entries[0]
        webhook = await self._services.webhooks.find(WebhookId(webhook_of(entry)))
        if webhook is None:
            return Delivery(OutboxState.SUPPRESSED, "the webhook was deleted")
        if webhook.disabled_at is not None and entry.kind != PING:
            return Delivery(OutboxState.SUPPRESSED, "the webhook is disabled")
        response = await self._post(webhook, entry)
        if response.is_success and response.duration_ms <= PROMPT_MS:
            self._prompt.add(webhook.id)
        else:
            self._prompt.discard(webhook.id)
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
            await self._disable(webhook, response.text)
            return Delivery(OutboxState.FAILED, response.text)
        if webhook.failing_since is not None:  # it may refuse a single message
            asked = response.retry_after or timedelta()
            self._paused[webhook.id] = now + min(max(FAILURE_PAUSE, asked), MAX_FAILURE_PAUSE)
        failing_since = await webhooks.record_failure(webhook.id, now)
        if now - failing_since >= DISABLED_AFTER:
            await self._disable(webhook, response.text)
        return Delivery(OutboxState.QUEUED, response.text, retry_after=response.retry_after)

    async def _disable(self, webhook: Webhook, reason: str) -> None:
        """Disable a webhook, and say so to the user who created it, first: both can be repeated."""
        if webhook.disabled_at is not None:
            return
        now, reason = self._services.now(), to_note(reason)
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


class Rooms:
    """How many more requests each webhook may get while these entries are being sent."""

    def __init__(self, sending: Iterable[OutboxEntry], prompt: Collection[str]) -> None:
        self._prompt = prompt
        self._counts = Counter(webhook_of(entry) for entry in sending)
        used = sum(max(count - OWN_PLACES, 0) for count in self._counts.values())
        self._shared = SHARED_PLACES - used

    @property
    def full_webhooks(self) -> set[str]:
        """The webhooks that get no more for now."""
        return {webhook_id for webhook_id in self._counts if not self._has_room(webhook_id)}

    def _has_room(self, webhook_id: str) -> bool:
        if self._counts[webhook_id] < OWN_PLACES:
            return True
        return webhook_id in self._prompt and self._shared > 0

    def choose(self, due: Sequence[OutboxEntry]) -> list[OutboxEntry]:
        """Return those of the entries for which there is room, and take it.

        Webhooks take their own places first, and then the shared ones in turn.
        """
        queues = defaultdict[str, deque[OutboxEntry]](deque)
        for entry in due:
            queues[webhook_of(entry)].append(entry)
        chosen = list[OutboxEntry]()
        while queues:
            for webhook_id in [*queues]:
                if not queues[webhook_id] or not self._has_room(webhook_id):
                    del queues[webhook_id]
                    continue
                self._shared -= self._counts[webhook_id] >= OWN_PLACES
                self._counts[webhook_id] += 1
                chosen.append(queues[webhook_id].popleft())
        return chosen


def webhook_of(entry: OutboxEntry) -> str:
    """Return the id of the webhook of an entry."""
    return entry.data["webhook"]
