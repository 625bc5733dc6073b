"""A receiver of webhooks on a real socket, and members whose bookings lead to its messages."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from aiohttp import web

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.notifications.outbox import Channel
from slotlock.domain.notifications.webhook_messages import ping_message
from slotlock.domain.notifications.webhooks import (
    Webhook,
    WebhookCreated,
    WebhookDelivery,
    WebhookEvent,
)
from slotlock.domain.users.user import Caller, Role
from slotlock.infrastructure.redis.locks.lock_leases import InProcessLockLease
from slotlock.infrastructure.tasks import cancel_and_wait
from slotlock.infrastructure.webhooks.webhook_client import open_webhook_client
from slotlock.services.notifications import webhook_admin
from slotlock.services.notifications.outbox_reader import OutboxReader
from slotlock.services.notifications.webhook_sender import WebhookSender
from tests.support.clients.client import Json
from tests.support.notifications.mail_scene import MailScene, open_mail_scene
from tests.support.polling import eventually, poll_until

Respond = Callable[[], web.Response]


@dataclass
class ReceivedMessage:
    """A request that a receiver got."""

    headers: dict[str, str]
    body: bytes

    @property
    def content(self) -> Json:
        """The parsed body."""
        parsed: Json = json.loads(self.body)
        return parsed


@dataclass
class Receiver:
    """A server that records each request, and responds as the test says."""

    url: str = ""
    messages: list[ReceivedMessage] = field(default_factory=list)
    respond: Respond = lambda: web.Response(status=204)
    # While it is cleared, no request gets its response.
    is_responsive: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.Response:
        """Record a request, and respond."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.messages.append(ReceivedMessage(headers, await request.read()))
        await self.is_responsive.wait()
        return self.respond()

    @property
    def types(self) -> list[str]:
        """The events of the messages."""
        return [message.content["type"] for message in self.messages]


@dataclass
class WebhookScene:
    """A site with members, an organizer and an admin, and a receiver."""

    site: MailScene
    receiver: Receiver
    sender: WebhookSender
    admin: Caller
    _seen_count: int = 0

    async def create(
        self,
        events: Sequence[WebhookEvent] = tuple(WebhookEvent),
        campaign_id: CampaignId | None = None,
        receiver: Receiver | None = None,
    ) -> tuple[Webhook, str]:
        """Create a webhook of a receiver a second later; return it with its secret."""
        self.site.clock.advance(timedelta(seconds=1))
        url = (receiver or self.receiver).url
        created = await webhook_admin.create(
            self.site.services, url, events, campaign_id, self.admin, allow_http=True
        )
        assert isinstance(created, WebhookCreated), created
        return created.webhook, created.secret

    async def stored(self, webhook: Webhook) -> Webhook:
        """Return a webhook as it is now."""
        found = await self.site.services.webhooks.find(webhook.id)
        assert found is not None
        return found

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Let a reader of its own fill the outbox, without mail."""
        reader = OutboxReader(self.site.services, Channel.WEBHOOK)

        async def read() -> None:
            await eventually(reader.is_needed, "there is a webhook")
            await reader.read_while_held(InProcessLockLease((), 1))

        task = asyncio.create_task(read())
        try:
            yield
        finally:
            await cancel_and_wait(task)

    async def until(self, *types: str) -> None:
        """Send what comes until the receiver has messages of these types that it had not before."""

        async def new_types() -> list[str]:
            await self.send()
            return self.receiver.types[self._seen_count :]

        await poll_until(new_types, set(types).issubset, f"the receiver has {types}")
        self._seen_count = len(self.receiver.messages)

    async def ping(self, webhook: Webhook) -> None:
        """Queue a message about nothing, and send it."""
        await webhook_admin.ping(self.site.services, webhook.id, self.admin)
        await self.send()

    async def queue(self, webhook: Webhook, count: int) -> None:
        """Queue so many messages about nothing, which are due at once."""
        now = self.site.clock.now
        messages = (ping_message(now, f"{webhook.id}:{number}") for number in range(count))
        await self.site.services.outbox.insert(
            [message.to_entry(webhook) for message in messages], now
        )

    async def count_attempted(self, webhook: Webhook) -> int:
        """Return for how many messages of a webhook a lease was taken."""
        query = {"data.webhook": webhook.id, "leasedBy": {"$exists": True}}
        return await self.site.database["outbox"].count_documents(query)

    async def deliveries(self, webhook: Webhook) -> Sequence[WebhookDelivery]:
        """Return the deliveries of a webhook, the newest first."""
        page = await webhook_admin.list_deliveries(self.site.services, webhook.id, 100, None)
        return page.items

    async def send(self, after: timedelta = timedelta()) -> None:
        """Send all that is due after this time."""
        self.site.clock.advance(after)
        while await self.sender.send_due():
            await self.sender.finish()


@asynccontextmanager
async def open_receiver() -> AsyncIterator[Receiver]:
    """Serve a receiver on a free port."""
    receiver, app = Receiver(), web.Application()
    app.router.add_post("/hook", receiver.handle)
    receiver.is_responsive.set()
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    try:
        await site.start()
        receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
        yield receiver
    finally:
        await runner.cleanup()


@asynccontextmanager
async def open_webhook_scene(servers: EmbeddedServers) -> AsyncIterator[WebhookScene]:
    """Open a scene on a database of its own."""
    async with AsyncExitStack() as stack:
        site = await stack.enter_async_context(open_mail_scene(servers))
        receiver = await stack.enter_async_context(open_receiver())
        client = await stack.enter_async_context(open_webhook_client(allow_private=True))
        sender = WebhookSender(site.services, client)
        admin = replace(site.organizer, role=Role.ADMIN)
        yield WebhookScene(site, receiver, sender, admin)
