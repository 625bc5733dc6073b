"""Once the end of a session is acknowledged, no process accepts its tokens, even without Redis."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis import Redis

from slotlock.auth.admin import account_admin
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.sessions import end_session, open_session, refresh_session
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.users.user import Caller, Role
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from tests.support.apps.deployment import app_variant
from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.client import GraphQLTestClient
from tests.support.stores.users import insert_user

ME = "{ me { id role } }"
LOGOUT = "mutation { logout }"
BAN = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"
REFRESH = """mutation ($token: String!) {
  refreshSession(refreshToken: $token) { __typename ... on Session { refreshToken } }
}"""
ROUNDS = 5


@pytest.fixture
def mongo_url(two_apps: Pair) -> str:
    return two_apps[0].environment["SLOTLOCK_MONGO_URL"]


async def log_out(client: GraphQLTestClient, auth: Auth, refresh_token: str) -> None:
    assert await client.execute(LOGOUT) is True


async def ban(client: GraphQLTestClient, auth: Auth, refresh_token: str) -> None:
    session = await open_session(auth, await insert_user(auth, Role.ORGANIZER))
    organizer = GraphQLTestClient(client.http, client.url, session.access_token)
    user_id = (await client.execute(ME))["id"]
    assert (await organizer.execute(BAN, user=user_id))["__typename"] == "User"


async def reuse_refresh_token(client: GraphQLTestClient, auth: Auth, refresh_token: str) -> None:
    successor = (await client.execute(REFRESH, token=refresh_token))["refreshToken"]
    assert (await client.execute(REFRESH, token=successor))["__typename"] == "Session"
    assert (await client.execute(REFRESH, token=refresh_token))["__typename"] == "InvalidSession"


EndSession = Callable[[GraphQLTestClient, Auth, str], Awaitable[None]]
WAYS_TO_END: list[EndSession] = [log_out, ban, reuse_refresh_token]


async def count_accepted_elsewhere(
    http: httpx.AsyncClient,
    auth: Auth,
    first_app: AppProcess,
    second_app: AppProcess,
    end: EndSession,
) -> int:
    """Return how often one process accepts a token whose session ended in another one."""
    accepted = 0
    with Redis.from_url(first_app.environment["SLOTLOCK_REDIS_URL"]) as redis:
        for _ in range(ROUNDS):
            session = await open_session(auth, await insert_user(auth))
            first, second = (
                GraphQLTestClient(http, app.url, session.access_token)
                for app in (first_app, second_app)
            )
            assert await first.execute(ME) == await second.execute(ME)
            await end(first, auth, session.refresh_token)
            redis.flushall()
            accepted += "errors" not in await second.send(ME)
            assert await first.error_code(ME) == "UNAUTHENTICATED"
    return accepted


@pytest.mark.parametrize("end", WAYS_TO_END)
async def test_every_process_rejects_a_token_once_the_end_of_its_session_is_acknowledged(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, end: EndSession
) -> None:
    assert await count_accepted_elsewhere(http, auth, *two_apps, end) == 0


async def test_control_a_process_that_caches_sessions_accepts_tokens_of_ended_ones(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth, log_dir: Path
) -> None:
    with app_variant(
        two_apps[0].environment, log_dir, without_guards="session-lookups"
    ) as caching_app:
        assert (
            await count_accepted_elsewhere(http, auth, two_apps[0], caching_app, log_out) == ROUNDS
        )


async def test_a_new_role_applies_in_every_process_at_once(
    two_apps: Pair, http: httpx.AsyncClient, auth: Auth
) -> None:
    user = await insert_user(auth)
    session = await open_session(auth, user)
    clients = [GraphQLTestClient(http, app.url, session.access_token) for app in two_apps]
    for role in (Role.ORGANIZER, Role.MEMBER, Role.ADMIN):
        await account_admin.set_role(auth, None, user.id, role)
        for client in clients:
            assert (await client.execute(ME))["role"] == role.name


class PausedRead:
    """Pauses the first read of sessions before it returns, until `resume` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done, self.resume = asyncio.Event(), asyncio.Event()
        read = SessionRepository._find_roles

        async def paused_find_roles(
            sessions: SessionRepository, session_ids: Sequence[str]
        ) -> dict[str, Role]:
            found = await read(sessions, session_ids)
            if not self.done.is_set():
                self.done.set()
                await self.resume.wait()
            return found

        monkeypatch.setattr(SessionRepository, "_find_roles", paused_find_roles)


def share_pending_reads() -> Any:
    """Return a lookup that joins a read that is already pending."""
    find_role, pending = SessionRepository.find_role, dict[str, asyncio.Future[Role | None]]()

    async def find_role_shared(self: SessionRepository, session_id: str) -> Role | None:
        task = pending.get(session_id)
        if task is None or task.done():
            task = pending[session_id] = asyncio.ensure_future(find_role(self, session_id))
        return await task

    return find_role_shared


async def authenticate_around_the_end(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> tuple[Caller | BaseException | None, Caller | BaseException | None]:
    """Authenticate before and after a session ends, while the first request's read is pending.

    Returns the result of the earlier and of the later request.
    """
    session = await open_session(auth, await insert_user(auth))
    authorization = f"Bearer {session.access_token}"
    caller = await authenticate(auth, authorization)
    assert caller is not None
    paused_read = PausedRead(monkeypatch)
    before = asyncio.create_task(authenticate(auth, authorization))
    await paused_read.done.wait()
    await end_session(auth, caller.user_id, caller.session_id)
    after = asyncio.create_task(authenticate(auth, authorization))
    await asyncio.sleep(0)  # the later request now waits for its read
    paused_read.resume.set()
    return await asyncio.gather(before, after, return_exceptions=True)


async def test_a_read_that_began_before_the_end_serves_no_later_request(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = await authenticate_around_the_end(auth, monkeypatch)
    assert isinstance(before, Caller)
    assert isinstance(after, BadTokenError)


async def test_control_sharing_pending_reads_serves_a_request_after_the_end(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SessionRepository, "find_role", share_pending_reads())
    before, after = await authenticate_around_the_end(auth, monkeypatch)
    assert before == after
    assert isinstance(after, Caller)


async def test_a_reused_refresh_token_ends_the_session_in_every_process(
    auth: Auth, other_process: Auth
) -> None:
    session = await open_session(auth, await insert_user(auth))
    authorization = f"Bearer {session.access_token}"
    assert await authenticate(other_process, authorization) is not None
    no_grace = [replace(process, refresh_grace=timedelta()) for process in (auth, other_process)]
    outcomes = await asyncio.gather(
        *(refresh_session(process, session.refresh_token) for process in no_grace * 4)
    )
    assert sum(hasattr(outcome, "access_token") for outcome in outcomes) == 1
    for process in (auth, other_process):
        with pytest.raises(BadTokenError, match="ended"):
            await authenticate(process, authorization)
