"""Once the end of a session was answered, no process takes its tokens, whatever Redis knows."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis import Redis

from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.sessions import end_session, open_session, refresh_session
from slotlock.auth.tokens import BadTokenError
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Caller, Role
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess, database_url
from tests.support.clients.client import GraphQLTestClient
from tests.support.stores.users import auth_for_database, insert_user

Pair = tuple[AppProcess, AppProcess]

ME = "{ me { id role } }"
LOGOUT = "mutation { logout }"
BAN = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"
REFRESH = "mutation ($token: String!) { refreshSession(refreshToken: $token) { __typename } }"
ROUNDS = 5


@pytest.fixture
async def auth(two_apps: Pair) -> AsyncIterator[Auth]:
    async with auth_for_database(two_apps[0].environment["SLOTLOCK_MONGO_URL"]) as opened:
        yield opened


async def signed_out(client: GraphQLTestClient, auth: Auth, refresh_token: str) -> None:
    assert await client.execute(LOGOUT) is True


async def banned(client: GraphQLTestClient, auth: Auth, refresh_token: str) -> None:
    organiser = await open_session(auth, await insert_user(auth, Role.ORGANIZER))
    chief = GraphQLTestClient(client.http, client.url, organiser.access_token)
    user_id = (await client.execute(ME))["id"]
    assert (await chief.execute(BAN, user=user_id))["__typename"] == "User"


async def refresh_token_used_again(
    client: GraphQLTestClient, auth: Auth, refresh_token: str
) -> None:
    assert (await client.execute(REFRESH, token=refresh_token))["__typename"] == "Session"
    assert (await client.execute(REFRESH, token=refresh_token))["__typename"] == "InvalidSession"


End = Callable[[GraphQLTestClient, Auth, str], Awaitable[None]]
ENDS: list[End] = [signed_out, banned, refresh_token_used_again]


async def taken_elsewhere(
    http: httpx.AsyncClient, auth: Auth, here: AppProcess, there: AppProcess, end: End
) -> int:
    """How often a process takes a token whose session another one answered to have ended."""
    taken = 0
    with Redis.from_url(here.environment["SLOTLOCK_REDIS_URL"]) as redis:
        for _ in range(ROUNDS):
            session = await open_session(auth, await insert_user(auth))
            first, second = (
                GraphQLTestClient(http, app.url, session.access_token) for app in (here, there)
            )
            assert await first.execute(ME) == await second.execute(ME)
            await end(first, auth, session.refresh_token)
            redis.flushall()
            taken += "errors" not in await second.send(ME)
            assert await first.error_code(ME) == "UNAUTHENTICATED"
    return taken


@pytest.mark.parametrize("end", ENDS)
async def test_a_token_is_refused_everywhere_from_the_moment_its_end_was_answered(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, end: End
) -> None:
    assert await taken_elsewhere(http, auth, *two_apps, end) == 0


async def test_control_a_process_that_trusts_for_a_time_takes_tokens_of_ended_sessions(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, log_dir: Path
) -> None:
    with app_variant(
        two_apps[0].environment, log_dir, without_guards="session-lookups"
    ) as trusting:
        assert await taken_elsewhere(http, auth, two_apps[0], trusting, signed_out) == ROUNDS


async def test_a_new_role_counts_everywhere_from_the_moment_it_was_given(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth
) -> None:
    user = await insert_user(auth, Role.ADMIN)
    session = await open_session(auth, user)
    clients = [GraphQLTestClient(http, app.url, session.access_token) for app in two_apps]
    for role in (Role.MEMBER, Role.ORGANIZER, Role.MEMBER):
        await auth.users.set_role(user.email, role, None, auth.now())
        for client in clients:
            assert (await client.execute(ME))["role"] == role.name


class Reading:
    """Reads of sessions, of which the first waits with its answer until the test says go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done, self.go = asyncio.Event(), asyncio.Event()
        read = SessionRepository._find_roles

        async def late(sessions: SessionRepository, session_ids: Sequence[str]) -> dict[str, Role]:
            found = await read(sessions, session_ids)
            if not self.done.is_set():
                self.done.set()
                await self.go.wait()
            return found

        monkeypatch.setattr(SessionRepository, "_find_roles", late)


def sharing() -> Any:
    """A look that whoever comes while it is under way shares."""
    look, under_way = SessionRepository.find_role, dict[str, asyncio.Task[Role | None]]()

    async def role_in(self: SessionRepository, session_id: str) -> Role | None:
        task = under_way.get(session_id)
        if task is None or task.done():
            task = under_way[session_id] = asyncio.create_task(look(self, session_id))
        return await task

    return role_in


async def around_the_end(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> tuple[Caller | BaseException | None, Caller | BaseException | None]:
    """What comes of one who asks before a session ends, while the read for them is under way, and
    of one who asks after it ended, when that read is under way still."""
    session = await open_session(auth, await insert_user(auth))
    authorization = f"Bearer {session.access_token}"
    caller = await authenticate(auth, authorization)
    assert caller is not None
    reading = Reading(monkeypatch)
    before = asyncio.create_task(authenticate(auth, authorization))
    await reading.done.wait()
    await end_session(auth, caller.user_id, caller.session_id)
    after = asyncio.create_task(authenticate(auth, authorization))
    await asyncio.sleep(0)  # it is in line now
    reading.go.set()
    return await asyncio.gather(before, after, return_exceptions=True)


async def test_a_read_that_began_before_a_session_ended_serves_nobody_who_came_after(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = await around_the_end(auth, monkeypatch)
    assert isinstance(before, Caller)
    assert isinstance(after, BadTokenError)


async def test_control_who_shares_a_read_under_way_is_served_after_the_end(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionRepository, "find_role", sharing())
    before, after = await around_the_end(auth, monkeypatch)
    assert before == after
    assert isinstance(after, Caller)


async def test_a_refresh_token_used_again_ends_the_family_in_every_process(
    servers: EmbeddedServers,
) -> None:
    url = database_url(servers, "at_once")
    async with auth_for_database(url) as here, auth_for_database(url) as there:
        session = await open_session(here, await insert_user(here))
        authorization = f"Bearer {session.access_token}"
        assert await authenticate(there, authorization) is not None
        outcomes = await asyncio.gather(
            *(refresh_session(room, session.refresh_token) for room in (here, there) * 4)
        )
        assert sum(hasattr(outcome, "access_token") for outcome in outcomes) == 1
        for room in (here, there):
            with pytest.raises(BadTokenError, match="ended"):
                await authenticate(room, authorization)
