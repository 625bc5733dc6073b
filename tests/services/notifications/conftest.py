"""A site that sends mail and calls webhooks."""

from collections.abc import AsyncIterator

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.notifications.mail_scene import MailScene, open_mail_scene
from tests.support.notifications.webhook_scene import WebhookScene, open_webhook_scene


@pytest.fixture
async def scene(servers: EmbeddedServers) -> AsyncIterator[MailScene]:
    """Yield services with two members, an organizer and a mail server."""
    async with open_mail_scene(servers) as opened:
        yield opened


@pytest.fixture
async def hooks(servers: EmbeddedServers) -> AsyncIterator[WebhookScene]:
    """Yield a site with a receiver of webhooks."""
    async with open_webhook_scene(servers) as opened:
        yield opened
