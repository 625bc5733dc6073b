"""Sockets and event streams end with their session, whichever process ends it."""

import contextlib
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from redis import Redis
from websockets.exceptions import ConnectionClosed

from slotlock.auth.admin import account_admin
from slotlock.auth.container import Auth
from slotlock.auth.sessions import open_session
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from slotlock.infrastructure.redis.keys import SESSION_EVENTS_CHANNEL
from tests.support.apps.deployment import app_variant
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, Pair, app_environment, database_url
from tests.support.apps.restartable_servers import restartable_server
from tests.support.clients.client import (
    WATCH_AVAILABILITY,
    GraphQLTestClient,
    WebSocketTestClient,
    open_websocket,
)
from tests.support.polling import wait_until
from tests.support.stores.users import auth_for_database, insert_user

LOGOUT = "mutation { logout }"
EVENT_STREAM = {"Accept": "text/event-stream"}
WATCH_BOOKINGS = "subscription { myBookings { at } }"
FORBIDDEN = 4403


@pytest.fixture
async def slot_id(two_apps: Pair, http: httpx.AsyncClient, auth: Auth) -> str:
    session = await open_session(auth, await insert_user(auth, Role.ORGANIZER))
    slot = await GraphQLTestClient(http, two_apps[0].url, session.access_token).create_slot()
    return str(slot["id"])


def subscriber_count(redis: Redis) -> int:
    """Return how many processes are subscribed to ended sessions."""
    ((_, count),) = redis.pubsub_numsub(SESSION_EVENTS_CHANNEL)
    return int(count)


async def closing_code(opened: WebSocketTestClient) -> tuple[int, str]:
    """Return the code and the reason with which the server closes a socket."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            await opened.receive()
    code, reason = opened.connection.close_code, opened.connection.close_reason
    assert code is not None
    return code, reason or ""


async def closing_code_after_logout(
    http: httpx.AsyncClient, auth: Auth, logout_url: str, app: AppProcess
) -> int:
    """Open a socket in an app, sign out at a URL, and return the code of the close."""
    token = (await open_session(auth, await insert_user(auth))).access_token
    async with open_websocket(app, token) as opened:
        await opened.subscribe("1", WATCH_BOOKINGS)
        assert await GraphQLTestClient(http, logout_url, token).execute(LOGOUT) is True
        return (await closing_code(opened))[0]


@pytest.mark.parametrize("app_index", [0, 1])
async def test_a_socket_closes_with_4403_when_its_session_ends(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, app_index: int
) -> None:
    logout_url = two_apps[app_index].url
    assert await closing_code_after_logout(http, auth, logout_url, two_apps[0]) == FORBIDDEN


async def test_a_socket_of_another_session_of_the_same_user_stays_open(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth
) -> None:
    user = await insert_user(auth)
    ending_token, other_token = [(await open_session(auth, user)).access_token for _ in range(2)]
    async with (
        open_websocket(two_apps[0], ending_token) as ending,
        open_websocket(two_apps[0], other_token) as other,
    ):
        assert await GraphQLTestClient(http, two_apps[1].url, ending_token).execute(LOGOUT) is True
        assert (await closing_code(ending))[0] == FORBIDDEN
        await other.subscribe("1", "{ me { name } }")
        assert await other.next_result() == {"name": "Somebody"}


@pytest.mark.parametrize("app_index", [0, 1])
async def test_an_event_stream_completes_when_its_session_ends(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, slot_id: str, app_index: int
) -> None:
    token = (await open_session(auth, await insert_user(auth))).access_token
    body = {"query": WATCH_AVAILABILITY, "variables": {"slots": [slot_id]}}
    headers = EVENT_STREAM | {"Authorization": f"Bearer {token}"}
    url = two_apps[0].url + "/graphql"
    async with http.stream("POST", url, json=body, headers=headers) as response:
        lines = response.aiter_lines()
        assert await anext(lines) == "event: next"
        client = GraphQLTestClient(http, two_apps[app_index].url, token)
        assert await client.execute(LOGOUT) is True
        assert [line async for line in lines][-3:] == ["event: complete", "data:", ""]


async def test_a_user_with_a_new_role_reopens_the_socket(two_apps: Pair, auth: Auth) -> None:
    user = await insert_user(auth, Role.ORGANIZER)
    token = (await open_session(auth, user)).access_token
    async with open_websocket(two_apps[0], token) as opened:
        # As the command line does it, without a message over Redis.
        await account_admin.set_role(auth, None, user.id, Role.MEMBER)
        code, reason = await closing_code(opened)
    assert (code, "role" in reason) == (FORBIDDEN, True)
    async with open_websocket(two_apps[0], token) as opened:
        await opened.subscribe("1", "{ me { role } }")
        assert await opened.next_result() == {"role": "MEMBER"}


async def test_the_message_over_redis_alone_ends_a_socket_of_another_process_after_a_flush(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, log_dir: Path
) -> None:
    with Redis.from_url(two_apps[0].environment["SLOTLOCK_REDIS_URL"]) as redis:
        before = subscriber_count(redis)
        with app_variant(two_apps[0].environment, log_dir, without_guards="stream-rechecks") as app:
            # The app serves before it is subscribed, and without the guard misses what came before.
            wait_until(lambda: subscriber_count(redis) > before, "the app is subscribed")
            redis.flushall()
            code = await closing_code_after_logout(http, auth, two_apps[0].url, app)
            assert code == FORBIDDEN


async def test_sockets_end_with_their_sessions_while_redis_is_unavailable(
    servers: EmbeddedServers, http: httpx.AsyncClient, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        valkey = stack.enter_context(restartable_server(tmp_path / "valkey", "valkey"))
        settings = app_environment(servers, "streams_alone") | {"SLOTLOCK_REDIS_URL": valkey.url}
        apps = [stack.enter_context(forked_app(settings, tmp_path / name)) for name in "ab"]
        valkey.kill()
        async with auth_for_database(database_url(servers, "streams_alone")) as auth:
            for app in apps:
                code = await closing_code_after_logout(http, auth, apps[0].url, app)
                assert code == FORBIDDEN
