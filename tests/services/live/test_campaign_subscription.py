"""Live campaigns: those that one sees first, then every change, also by time alone."""

from datetime import UTC, datetime, timedelta

from tests.support.apps.processes import Pair
from tests.support.clients.campaigns import (
    PUBLISH_CAMPAIGN,
    UNPUBLISH_CAMPAIGN,
    create_campaign,
    update_campaign,
)
from tests.support.clients.client import (
    GraphQLTestClient,
    Json,
    WebSocketTestClient,
    http_client,
    open_websocket,
)
from tests.support.stores.users import UserTokens

WATCH_CAMPAIGNS = """subscription {
  campaignChanges { campaignId campaign { name published state } }
}"""
WATCH_TEXTS = "subscription { campaignChanges { campaignId campaign { description mailNote } } }"


async def next_of(watcher: WebSocketTestClient, campaign_id: str) -> Json | None:
    """Return the next state of a campaign. Those of other tests are passed over."""
    while True:
        change = await watcher.next_result()
        if change["campaignId"] == campaign_id:
            campaign: Json | None = change["campaign"]
            return campaign


async def test_campaigns_are_watched_from_their_publication_until_they_are_hidden(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with (
        http_client() as http,
        open_websocket(two_apps[0], user_tokens.members[0]) as member,
        open_websocket(two_apps[0], user_tokens.organizer) as colleague,
    ):
        organizer = GraphQLTestClient(http, two_apps[1].url, user_tokens.organizer)
        before = await create_campaign(organizer, name="Before")
        await member.subscribe("1", WATCH_CAMPAIGNS)
        assert (await next_of(member, before) or {})["name"] == "Before"
        await colleague.subscribe("1", WATCH_CAMPAIGNS)
        hidden = await create_campaign(organizer, name="Hidden", published=False)
        assert (await next_of(colleague, hidden) or {})["published"] is False
        await organizer.execute(PUBLISH_CAMPAIGN, id=hidden)
        # The member learns of the campaign only now.
        for watcher in (member, colleague):
            assert (await next_of(watcher, hidden) or {})["published"] is True
        await update_campaign(organizer, hidden, name="Renamed")
        for watcher in (member, colleague):
            assert (await next_of(watcher, hidden) or {})["name"] == "Renamed"
        await organizer.execute(UNPUBLISH_CAMPAIGN, id=hidden)
        assert await next_of(member, hidden) is None
        assert (await next_of(colleague, hidden) or {})["published"] is False


async def test_a_campaign_that_opens_is_reported_at_that_time(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with http_client() as http, open_websocket(two_apps[0]) as watcher:
        organizer = GraphQLTestClient(http, two_apps[1].url, user_tokens.organizer)
        # Later than a busy machine needs to begin the subscription.
        opens_at = datetime.now(UTC) + timedelta(seconds=4)
        campaign = await create_campaign(organizer, opensAt=opens_at.isoformat(), description="D")
        await watcher.subscribe("1", WATCH_CAMPAIGNS)
        states = [await next_of(watcher, campaign) for _ in range(2)]
        assert [state and state["state"] for state in states] == ["UPCOMING", "OPEN"]
        assert datetime.now(UTC) >= opens_at
        await watcher.subscribe("2", WATCH_TEXTS)
        assert await next_of(watcher, campaign) == {"description": "D", "mailNote": None}
