"""Sockets and event streams end when their session does, wherever that is ended."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from redis import Redis
from websockets.exceptions import ConnectionClosed

from slotlock.auth.container import Auth
from slotlock.auth.sessions import open_session
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from slotlock.infrastructure.redis.keys import SESSION_EVENTS_CHANNEL
from tests.support.apps.deployment import app_variant
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment, database_url
from tests.support.apps.restartable_servers import restartable_server
from tests.support.clients.client import (
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    WebSocketTestClient,
    open_websocket,
)
from tests.support.polling import wait_until
from tests.support.stores.users import auth_for_database, insert_user

Pair = tuple[AppProcess, AppProcess]

LOGOUT = "mutation { logout }"
EVENTS = {"Accept": "text/event-stream"}


@pytest.fixture
async def auth(two_apps: Pair) -> AsyncIterator[Auth]:
    async with auth_for_database(two_apps[0].environment["SLOTLOCK_MONGO_URL"]) as opened:
        yield opened


@pytest.fixture
async def slot_id(two_apps: Pair, http: httpx.AsyncClient, auth: Auth) -> str:
    session = await open_session(auth, await insert_user(auth, Role.ORGANIZER))
    slot = await GraphQLTestClient(http, two_apps[0].url, session.access_token).create_slot()
    return str(slot["id"])


def listeners(redis: Redis) -> int:
    """How many processes hear who is signed out."""
    ((_, number),) = redis.pubsub_numsub(SESSION_EVENTS_CHANNEL)
    return int(number)


async def end_of(opened: WebSocketTestClient) -> tuple[int, str]:
    """What a socket is closed with, whatever comes before."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            await opened.receive()
    code, reason = opened.connection.close_code, opened.connection.close_reason
    assert code is not None
    return code, reason or ""


async def closed_after_logout(
    http: httpx.AsyncClient, auth: Auth, here: str, at: AppProcess
) -> int:
    """What a socket is closed with when its person signs out at an address."""
    token = (await open_session(auth, await insert_user(auth))).access_token
    async with open_websocket(at, token) as opened:
        await opened.subscribe("1", "subscription { myBookings { at } }")
        assert await GraphQLTestClient(http, here, token).execute(LOGOUT) is True
        return (await end_of(opened))[0]


@pytest.mark.parametrize("where", [0, 1])
async def test_a_socket_closes_with_4403_when_its_session_ends(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, where: int
) -> None:
    assert await closed_after_logout(http, auth, two_apps[where].url, two_apps[0]) == 4403


async def test_a_socket_of_another_session_of_the_same_person_stays(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth
) -> None:
    user = await insert_user(auth)
    ends, stays = [(await open_session(auth, user)).access_token for _ in range(2)]
    async with (
        open_websocket(two_apps[0], ends) as ending,
        open_websocket(two_apps[0], stays) as staying,
    ):
        assert await GraphQLTestClient(http, two_apps[1].url, ends).execute(LOGOUT) is True
        assert (await end_of(ending))[0] == 4403
        await staying.subscribe("1", "{ me { name } }")
        assert await staying.next_result() == {"name": "Somebody"}


@pytest.mark.parametrize("where", [0, 1])
async def test_an_event_stream_completes_when_its_session_ends(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, slot_id: str, where: int
) -> None:
    token = (await open_session(auth, await insert_user(auth))).access_token
    sent = {"query": WATCH_AVAILABILITY, "variables": {"slots": [slot_id]}}
    url, headers = two_apps[0].url + "/graphql", EVENTS | {"Authorization": f"Bearer {token}"}
    async with http.stream("POST", url, json=sent, headers=headers) as response:
        lines = response.aiter_lines()
        assert await anext(lines) == "event: next"
        assert await GraphQLTestClient(http, two_apps[where].url, token).execute(LOGOUT) is True
        assert [line async for line in lines][-3:] == ["event: complete", "data:", ""]


async def test_who_got_another_role_opens_their_socket_anew(two_apps: Pair, auth: Auth) -> None:
    user = await insert_user(auth, Role.ORGANIZER)
    token = (await open_session(auth, user)).access_token
    async with open_websocket(two_apps[0], token) as opened:
        # As the command line does it, which tells nobody.
        await auth.users.set_role(user.email, Role.MEMBER, None, auth.now())
        code, reason = await end_of(opened)
    assert (code, "role" in reason) == (4403, True)
    async with open_websocket(two_apps[0], token) as opened:
        await opened.subscribe("1", "{ me { role } }")
        assert await opened.next_result() == {"role": "MEMBER"}


async def test_the_announcement_alone_ends_a_socket_elsewhere_also_after_a_flush(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, log_dir: Path
) -> None:
    with Redis.from_url(two_apps[0].environment["SLOTLOCK_REDIS_URL"]) as redis:
        before = listeners(redis)
        with app_variant(two_apps[0].environment, log_dir, without_guards="stream-rechecks") as app:
            # It serves before it listens, and heals nothing that it missed.
            wait_until(lambda: listeners(redis) > before, "the app hears who is signed out")
            redis.flushall()
            assert await closed_after_logout(http, auth, two_apps[0].url, app) == 4403


async def test_sockets_end_with_their_sessions_while_redis_is_away(
    servers: EmbeddedServers, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        valkey = stack.enter_context(restartable_server(tmp_path / "valkey", "valkey"))
        settings = app_environment(servers, "streams_alone") | {"SLOTLOCK_REDIS_URL": valkey.url}
        apps = [stack.enter_context(forked_app(settings, tmp_path / name)) for name in "ab"]
        valkey.kill()
        async with auth_for_database(database_url(servers, "streams_alone")) as auth:
            for app in apps:
                assert await closed_after_logout(http, auth, apps[0].url, app) == 4403
