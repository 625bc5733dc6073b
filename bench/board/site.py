"""A server with the board, campaigns in it, and a browser whose users are signed in."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, async_playwright

from bench.accounts import Account, create_accounts
from bench.comparison.targets import slotlock_target
from bench.comparison.targets.apps import Command, TargetApp, running
from slotlock.devserver.embedded import EmbeddedServers, embedded_servers
from slotlock.domain.users.user import Role
from slotlock.simulation.client.documents import UPDATE_CAMPAIGN
from slotlock.simulation.client.http import GraphQLClient, open_http
from slotlock.simulation.model.attempts import SimulatedSlot
from slotlock.simulation.model.plan import BookingMode, SimulationConfig
from slotlock.simulation.setup import create_campaign, require_type

# The benchmark may run as root, and in a container whose /dev/shm is small.
OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
CONNECTIONS = 600
# For a busy machine whose CPU is divided once more.
TIMEOUT_MS = 120_000


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign, its slots and its opening."""

    id: str
    slots: list[SimulatedSlot]
    opens_at: datetime

    @property
    def address(self) -> str:
        """The address of its view, after that of the board."""
        return f"#/campaign/{self.id}"


@dataclass(slots=True)
class Site:
    """A server with an organizer, and a browser."""

    app: TargetApp
    client: GraphQLClient
    browser: Browser
    servers: EmbeddedServers
    organizer: Account

    async def accounts(self, count: int) -> list[Account]:
        """Return new members with sessions."""
        return await create_accounts(_mongo_url(self.servers), slotlock_target.SECRET, count)

    async def campaign(self, slots: int, places: int, opens_in_s: float) -> Campaign:
        """Create a campaign with so many slots, which opens at this time from now."""
        config = SimulationConfig(self.app.url, 0, slots, places, 1, BookingMode.WAIT, seed=1)
        token = self.organizer.token
        campaign_id, made = await create_campaign(self.client, config, token)
        opens_at = datetime.now(UTC) + timedelta(seconds=opens_in_s)
        change = {"campaignId": campaign_id, "opensAt": opens_at.isoformat(), "maxBookings": 1}
        require_type(await self.client.query(UPDATE_CAMPAIGN, token, input=change), "Campaign")
        return Campaign(campaign_id, made, opens_at)

    async def context(self, account: Account | None) -> BrowserContext:
        """Return a browser without files of another, in which the account is signed in."""
        stored: list[Any] = [{"name": "slotlock.language", "value": "en"}]
        if account:
            stored.append({"name": "slotlock.refreshToken", "value": account.refresh_token})
        context = await self.browser.new_context(
            base_url=self.app.url,
            storage_state={
                "cookies": [],
                "origins": [{"origin": self.app.url, "localStorage": stored}],
            },
        )
        context.set_default_timeout(TIMEOUT_MS)
        return context


@asynccontextmanager
async def running_site(chromium: str) -> AsyncIterator[Site]:
    """Run a server on new databases, and a browser."""
    with (
        tempfile.TemporaryDirectory(prefix="slotlock-bench-") as folder,
        embedded_servers(Path(folder, "data")) as servers,
        running("board", _command(servers), Path(folder)) as app,
    ):
        (organizer,) = await create_accounts(
            _mongo_url(servers), slotlock_target.SECRET, 1, role=Role.ORGANIZER
        )
        async with async_playwright() as playwright, open_http(CONNECTIONS) as http:
            browser = await playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
            yield Site(app, GraphQLClient(app.url, http), browser, servers, organizer)
            await browser.close()


def _command(servers: EmbeddedServers) -> Command:
    return slotlock_target.command(servers, 1, slotlock_target.RATE_LIMITS_OFF)


def _mongo_url(servers: EmbeddedServers) -> str:
    return slotlock_target.settings(servers)["SLOTLOCK_MONGO_URL"]
