"""Live availability: the present state first, then only newer ones, whoever books where."""

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
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import (
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    Json,
    WebSocketTestClient,
    http_client,
    open_websocket,
)
from tests.support.stores.users import UserTokens, auth_for_database

Pair = tuple[AppProcess, AppProcess]


async def states_until_full(watcher: WebSocketTestClient) -> list[Json]:
    """The states a watcher is told, up to the one without places."""
    told = [await watcher.next_result()]
    while told[-1]["remaining"]:
        told.append(await watcher.next_result())
    return told


async def test_a_watcher_is_told_the_present_and_then_every_newer_state_across_processes(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    here, there = two_apps
    async with http_client() as http, open_websocket(here) as watcher:
        slot = await GraphQLTestClient(http, here.url, user_tokens.organizer).create_slot(
            capacity=3
        )
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])
        first = await watcher.next_result()
        assert (first["slotId"], first["version"], first["remaining"]) == (slot["id"], 1, 3)
        for booked, token in enumerate(user_tokens.members[:3], start=1):
            await GraphQLTestClient(http, there.url, token).book(slot["id"])
            state = await watcher.next_result()
            assert (state["version"], state["remaining"]) == (1 + booked, 3 - booked)
        assert state["isBooked"]


async def test_versions_only_grow_while_many_book_at_both_processes(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with http_client() as http, open_websocket(two_apps[0]) as watcher:
        slot = await GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer).create_slot(
            capacity=40
        )
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])

        async def insist(number: int, token: str) -> None:
            person = GraphQLTestClient(http, two_apps[number % 2].url, token)
            while (await person.book(slot["id"]))["__typename"] == "Locked":
                await asyncio.sleep(0)

        people = [insist(number, token) for number, token in enumerate(user_tokens.members[:40])]
        watching = asyncio.create_task(states_until_full(watcher))
        await asyncio.gather(*people)
        told = await watching
    versions = [state["version"] for state in told]
    assert versions == sorted(set(versions))
    assert all(state["remaining"] == 41 - state["version"] for state in told)


async def test_edits_and_calling_off_reach_watchers_too(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with http_client() as http, open_websocket(two_apps[0]) as watcher:
        organiser = GraphQLTestClient(http, two_apps[1].url, user_tokens.organizer)
        slot = await organiser.create_slot(capacity=1)
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])
        await watcher.next_result()
        edit = "mutation($id: ID!) { updateSlot(input: {slotId: $id, capacity: 7}) { __typename } }"
        await organiser.execute(edit, id=slot["id"])
        assert (await watcher.next_result())["remaining"] == 7
        off = "mutation($id: ID!) { cancelSlot(slotId: $id) { __typename } }"
        await organiser.execute(off, id=slot["id"])
        assert (await watcher.next_result())["status"] == "CANCELLED"


async def test_several_slots_on_one_subscription_each_start_with_their_present(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with http_client() as http, open_websocket(two_apps[0]) as watcher:
        organiser = GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer)
        ids = {(await organiser.create_slot(capacity=n))["id"]: n for n in (1, 2, 3)}
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[*ids, *ids])
        told = [await watcher.next_result() for _ in ids]
    assert {state["slotId"]: state["capacity"] for state in told} == ids


@contextmanager
def deaf(apps: Pair, log_dir: Path) -> Iterator[AppProcess]:
    """A process whose bookings nobody hears announced."""
    with app_variant(apps[0].environment, log_dir / "silent", without_guards="publishing") as app:
        yield app


async def test_a_lost_announcement_is_healed(
    two_apps: Pair, user_tokens: UserTokens, log_dir: Path
) -> None:
    with deaf(two_apps, log_dir) as silent:
        async with http_client() as http, open_websocket(two_apps[0]) as watcher:
            slot = await GraphQLTestClient(
                http, two_apps[0].url, user_tokens.organizer
            ).create_slot(capacity=1)
            await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])
            await watcher.next_result()
            await GraphQLTestClient(http, silent.url, user_tokens.members[0]).book(slot["id"])
            state = await watcher.next_result()
            assert (state["version"], state["remaining"]) == (2, 0)
            healed = await http.get(two_apps[0].url + "/metrics")
            assert "slotlock_availability_resynced_total 0.0" not in healed.text


async def test_a_slot_that_is_not_there_or_not_yet_published_cannot_be_watched(
    two_apps: Pair, user_tokens: UserTokens
) -> None:
    async with http_client() as http, open_websocket(two_apps[0]) as watcher:
        organiser = GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer)
        draft = await organiser.create_slot(draft=True)
        for wanted in ([draft["id"]], ["slot_" + "0" * 24], ["nonsense"], [], ["x"] * 101):
            await watcher.subscribe("1", WATCH_AVAILABILITY, slots=wanted)
            message = await watcher.receive()
            assert message["type"] == "error"
            assert message["payload"][0]["extensions"]["code"] == "BAD_USER_INPUT"


@pytest.fixture
async def short_lived(two_apps: Pair, user_tokens: UserTokens) -> str:
    """An access token that ends in a moment."""
    async with auth_for_database(two_apps[0].environment["SLOTLOCK_MONGO_URL"]) as auth:
        token = auth.tokens.verify("access", user_tokens.members[0])
        now = utc_now()
        ends = now + timedelta(seconds=1.5)
        short = TokenClaims(token.user_id, token.session_id, new_token_id(), ends)
        return auth.tokens.sign("access", short, now)


async def test_a_socket_ends_when_its_token_does(
    two_apps: Pair, user_tokens: UserTokens, short_lived: str
) -> None:
    async with http_client() as http, open_websocket(two_apps[0], short_lived) as watcher:
        slot = await GraphQLTestClient(http, two_apps[0].url, user_tokens.organizer).create_slot()
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot["id"]])
        await watcher.next_result()
        with pytest.raises(ConnectionClosed) as closed:
            await watcher.receive()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4403
