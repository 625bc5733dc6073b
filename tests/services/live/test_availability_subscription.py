"""Live availability: the present state of a slot first, then only newer ones."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from slotlock.auth.tokens import TokenClaims, new_token_id
from slotlock.services.container import utc_now
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import (
    create_campaign,
    publish_campaign,
    unpublish_campaign,
)
from tests.support.clients.client import (
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    Json,
    WebSocketTestClient,
    http_client,
    open_websocket,
)
from tests.support.stores.users import UserTokens, auth_for_database

SET_CAPACITY = "mutation($id: ID!) { updateSlot(input: {slotId: $id, capacity: 7}) { __typename } }"
CANCEL_SLOT = "mutation($id: ID!) { cancelSlot(slotId: $id) { __typename } }"


async def states_until_full(watcher: WebSocketTestClient) -> list[Json]:
    """Return the states up to the first one without free places."""
    states = [await watcher.next_result()]
    while states[-1]["remaining"]:
        states.append(await watcher.next_result())
    return states


async def test_a_subscription_reports_the_present_state_and_each_booking_at_another_process(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    watched_app, booking_app = two_apps
    async with http_client() as http, open_websocket(watched_app) as watcher:
        organizer = GraphQLTestClient(http, watched_app.url, user_tokens.organizer)
        slot = await organizer.create_slot(capacity=3)
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])
        state = await watcher.next_result()
        assert (state["slotId"], state["version"], state["remaining"]) == (slot["id"], 1, 3)
        for booked, token in enumerate(user_tokens.members[:3], start=1):
            await GraphQLTestClient(http, booking_app.url, token).book(slot["id"])
            state = await watcher.next_result()
            assert (state["version"], state["remaining"]) == (1 + booked, 3 - booked)
        assert state["isBooked"]


async def test_versions_only_increase_while_40_users_book_at_both_processes(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with http_client() as http, open_websocket(two_apps[0]) as watcher:
        organizer = GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer)
        slot = await organizer.create_slot(capacity=40)
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])

        async def book_until_unlocked(number: int, token: str) -> None:
            client = GraphQLTestClient(http, two_apps[number % 2].url, token)
            while (await client.book(slot["id"]))["__typename"] == "Locked":
                await asyncio.sleep(0)

        bookings = [
            book_until_unlocked(number, token)
            for number, token in enumerate(user_tokens.members[:40])
        ]
        watching = asyncio.create_task(states_until_full(watcher))
        await asyncio.gather(*bookings)
        states = await watching
    versions = [state["version"] for state in states]
    assert versions == sorted(set(versions))
    # One write may add the bookings of several callers.
    remaining = [state["remaining"] for state in states]
    assert remaining == sorted(set(remaining), reverse=True)
    assert all(state["remaining"] <= 41 - state["version"] for state in states)
    assert remaining[-1] == 0


async def test_a_subscription_reports_edits_and_the_cancellation_of_a_slot(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with http_client() as http, open_websocket(two_apps[0]) as watcher:
        organizer = GraphQLTestClient(http, two_apps[1].url, user_tokens.organizer)
        slot = await organizer.create_slot(capacity=1)
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])
        await watcher.next_result()
        await organizer.execute(SET_CAPACITY, id=slot["id"])
        assert (await watcher.next_result())["remaining"] == 7
        await organizer.execute(CANCEL_SLOT, id=slot["id"])
        assert (await watcher.next_result())["status"] == "CANCELLED"


async def test_a_subscription_to_several_slots_reports_the_present_state_of_each_once(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with http_client() as http, open_websocket(two_apps[0]) as watcher:
        organizer = GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer)
        capacities = {(await organizer.create_slot(capacity=n))["id"]: n for n in (1, 2, 3)}
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[*capacities, *capacities])
        states = [await watcher.next_result() for _ in capacities]
    assert {state["slotId"]: state["capacity"] for state in states} == capacities


@contextmanager
def app_without_publishing(apps: Pair, log_dir: Path) -> Iterator[AppProcess]:
    """Start an app that publishes no availability."""
    with app_variant(apps[0].environment, log_dir / "silent", without_guards="publishing") as app:
        yield app


async def test_a_state_whose_message_was_lost_is_reported_after_a_resync(
    two_apps: Pair, user_tokens: UserTokens, log_dir: Path
) -> None:
    with app_without_publishing(two_apps, log_dir) as silent:
        async with http_client() as http, open_websocket(two_apps[0]) as watcher:
            organizer = GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer)
            slot = await organizer.create_slot(capacity=1)
            await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])
            await watcher.next_result()
            await GraphQLTestClient(http, silent.url, user_tokens.members[0]).book(slot["id"])
            state = await watcher.next_result()
            assert (state["version"], state["remaining"]) == (2, 0)
            metrics = await http.get(two_apps[0].url + "/metrics")
            assert "slotlock_availability_resynced_total 0.0" not in metrics.text


async def test_unknown_slots_and_drafts_cannot_be_watched(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with http_client() as http, open_websocket(two_apps[0]) as watcher:
        organizer = GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer)
        draft = await organizer.create_slot(draft=True)
        for slot_ids in ([draft["id"]], ["slot_" + "0" * 24], ["nonsense"], [], ["x"] * 101):
            await watcher.subscribe("1", WATCH_AVAILABILITY, slots=slot_ids)
            message = await watcher.receive()
            assert message["type"] == "error"
            assert message["payload"][0]["extensions"]["code"] == "BAD_USER_INPUT"


@pytest.mark.parametrize("extra", ["", "slot { remaining }"])
async def test_watchers_of_a_slot_that_becomes_hidden_learn_that_and_get_no_later_state(
    two_apps: Pair, user_tokens: UserTokens, extra: str
) -> None:
    watched_app, other_app = two_apps
    query = WATCH_AVAILABILITY.replace("version", f"isHidden version {extra}")
    async with (
        http_client() as http,
        open_websocket(watched_app) as watcher,
        open_websocket(watched_app, user_tokens.organizer) as organizer_watcher,
    ):
        organizer = BookingClient(http, other_app.url, user_tokens.organizer)
        ada = BookingClient(http, other_app.url, user_tokens.members[0])
        campaign_id = await create_campaign(organizer)
        hidden, other = [
            await organizer.add_slot(capacity=5, **options)
            for options in ({"campaignId": campaign_id}, {})
        ]
        await watcher.subscribe("both", query, slots=[hidden, other])
        await organizer_watcher.subscribe("both", query, slots=[hidden, other])
        for socket in (watcher, organizer_watcher):
            assert {(await socket.next_result())["isHidden"] for _ in range(2)} == {False}
        await unpublish_campaign(organizer, campaign_id)
        for socket in (watcher, organizer_watcher):
            last = await socket.next_result()
            assert (last["slotId"], last["isHidden"]) == (hidden, True)
        await organizer.book_slot(hidden, userId=await ada.fetch_user_id())
        seen = await organizer_watcher.next_result()
        assert (seen["slotId"], seen["isHidden"], seen["remaining"]) == (hidden, True, 4)
        await ada.book_slot(other)
        assert (await watcher.next_result())["slotId"] == other
        await publish_campaign(organizer, campaign_id)
        shown = await watcher.next_result()
        assert (shown["slotId"], shown["isHidden"], shown["remaining"]) == (hidden, False, 4)
        await watcher.subscribe("one", query, slots=[hidden])
        assert (await watcher.next_result())["isHidden"] is False
        await unpublish_campaign(organizer, campaign_id)
        messages = [await watcher.receive() for _ in range(3)]
        assert sorted((each["id"], each["type"]) for each in messages) == [
            ("both", "next"),
            ("one", "complete"),
            ("one", "next"),
        ]


async def short_lived_token(two_apps: Pair, user_tokens: UserTokens) -> str:
    """Return an access token that expires after 4 s."""
    async with auth_for_database(two_apps[0].environment["SLOTLOCK_MONGO_URL"]) as auth:
        claims = auth.tokens.verify("access", user_tokens.members[0], auth.now())
        now = utc_now()
        expires_at = now + timedelta(seconds=4)
        short = TokenClaims(claims.user_id, claims.session_id, new_token_id(), expires_at)
        return auth.tokens.sign("access", short, now)


async def test_a_socket_is_closed_when_its_token_expires(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with http_client() as http:
        organizer = GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer)
        slot = await organizer.create_slot()
    token = await short_lived_token(two_apps, user_tokens)
    async with open_websocket(two_apps[0], token) as watcher:
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])
        await watcher.next_result()
        with pytest.raises(ConnectionClosed) as closed:
            await watcher.receive()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4403


WATCH_CAMPAIGN = WATCH_AVAILABILITY.replace(
    "$slots: [ID!]!) {\n  slotAvailability(slotIds: $slots)",
    "$campaign: ID!) {\n  campaignAvailability(campaignId: $campaign)",
)
PUBLISH_SLOT = "mutation($id: ID!) { publishSlot(slotId: $id) { __typename } }"


async def test_a_campaign_is_watched_with_the_slots_that_are_created_and_published_later(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with (
        http_client() as http,
        open_websocket(two_apps[0]) as watcher,
        open_websocket(two_apps[0]) as second,
    ):
        organizer = GraphQLTestClient(http, two_apps[1].url, user_tokens.organizer)
        campaign = await create_campaign(organizer)
        slots = [(await organizer.create_slot(campaignId=campaign))["id"] for _ in range(2)]
        draft = (await organizer.create_slot(campaignId=campaign, draft=True))["id"]
        await watcher.subscribe("1", WATCH_CAMPAIGN, campaign=campaign)
        assert [(await watcher.next_result())["slotId"] for _ in slots] == slots
        await GraphQLTestClient(http, two_apps[1].url, user_tokens.members[0]).book(slots[1])
        state = await watcher.next_result()
        assert (state["slotId"], state["remaining"]) == (slots[1], 0)
        new = (await organizer.create_slot(campaignId=campaign, capacity=5))["id"]
        state = await watcher.next_result()
        assert (state["slotId"], state["remaining"]) == (new, 5)
        await organizer.execute(PUBLISH_SLOT, id=draft)
        state = await watcher.next_result()
        assert (state["slotId"], state["status"]) == (draft, "PUBLISHED")
        await second.subscribe("1", WATCH_CAMPAIGN, campaign=campaign)
        found = {state["slotId"]: state for state in [await second.next_result() for _ in range(4)]}
        assert found.keys() == {*slots, new, draft}
        assert found[slots[1]]["remaining"] == 0


async def test_a_hidden_campaign_is_watched_by_organizers_with_its_drafts(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with (
        http_client() as http,
        open_websocket(two_apps[0], user_tokens.organizer) as watcher,
        open_websocket(two_apps[0], user_tokens.members[0]) as member,
    ):
        organizer = GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer)
        campaign = await create_campaign(organizer, published=False)
        draft = await organizer.create_slot(campaignId=campaign, draft=True)
        await watcher.subscribe("1", WATCH_CAMPAIGN, campaign=campaign)
        assert (await watcher.next_result())["slotId"] == draft["id"]
        for hidden in (campaign, "nonsense"):
            await member.subscribe("1", WATCH_CAMPAIGN, campaign=hidden)
            message = await member.receive()
            assert message["payload"][0]["extensions"]["code"] == "BAD_USER_INPUT"
