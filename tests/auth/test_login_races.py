"""Logins concurrent with a new password, role or ban: no session ignores the change."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.auth.administration import account_admin
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.sessions import InvalidSession, SignedInSession, open_session, refresh_session
from slotlock.auth.tokens import BadTokenError
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mongo.users import account_updates, sessions
from slotlock.infrastructure.mongo.users.sessions import SessionRepository
from tests.support.apps.processes import database_url
from tests.support.stores.users import auth_for_database, insert_user

ORGANIZER_ID = UserId("a" * 24)
OLD_HASH, NEW_HASH = "the hash of the old password", "the hash of the new password"


@pytest.fixture
async def auth(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "sign_in_races")) as opened:
        yield opened


async def caller_of(auth: Auth, session: SignedInSession) -> Caller | None:
    """Return the caller of the session's access token; None if it is rejected."""
    try:
        return await authenticate(auth, f"Bearer {session.access_token}")
    except BadTokenError:
        return None


async def change_password(auth: Auth, user: User, own_caller: Caller) -> None:
    ended = await auth.password_writer.update(user.id, own_caller.session_id, OLD_HASH, NEW_HASH)
    assert ended is not None


async def ban(auth: Auth, user: User, own_caller: Caller) -> None:
    assert await auth.bans.ban(user, ORGANIZER_ID, None, auth.now())


async def demote(auth: Auth, user: User, own_caller: Caller) -> None:
    assert await account_admin.set_role(auth, None, user.id, Role.MEMBER)


Change = Callable[[Auth, User, Caller], Coroutine[Any, Any, None]]


class PausedLogin:
    """Pauses the next login before its last step until `resume` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = reached = asyncio.Event()
        self.resume = resume = asyncio.Event()
        monkeypatch.setattr(sessions, "MAX_SESSIONS", 0)

        async def paused_end_oldest(
            self: SessionRepository, user_id: UserId, session: AsyncClientSession
        ) -> None:
            reached.set()
            await resume.wait()

        monkeypatch.setattr(SessionRepository, "_end_oldest", paused_end_oldest)


def disable_serialization(monkeypatch: pytest.MonkeyPatch) -> None:
    async def do_nothing(*_: Any) -> int:
        return 1

    for module in (sessions, account_updates):
        monkeypatch.setattr(module, "serialize_user_sessions", do_nothing)


def watch_serialization(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event that is set when a change waits for the user's serialization."""
    reached, serialize = asyncio.Event(), sessions.serialize_user_sessions

    async def recording_serialize(*arguments: Any) -> int:
        reached.set()
        return await serialize(*arguments)

    for module in (sessions, account_updates):
        monkeypatch.setattr(module, "serialize_user_sessions", recording_serialize)
    return reached


async def pause_second_login(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> tuple[User, Caller, asyncio.Task[SignedInSession], PausedLogin]:
    """Return an organizer with a session, and a paused login that opens a second one."""
    user = await insert_user(auth, Role.ORGANIZER, OLD_HASH)
    own_caller = await caller_of(auth, await open_session(auth, user, OLD_HASH))
    assert own_caller is not None
    paused = PausedLogin(monkeypatch)
    login = asyncio.create_task(open_session(auth, user, OLD_HASH))
    await paused.reached.wait()
    return user, own_caller, login, paused


def ignores_change(change: Change, caller: Caller | None) -> bool:
    """Return whether the session is as if the change had not happened."""
    return caller is not None and (change is not demote or caller.role is Role.ORGANIZER)


@pytest.mark.parametrize("change", [change_password, ban, demote])
async def test_a_login_in_progress_sees_a_concurrent_change(
    auth: Auth, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    user, own_caller, login, paused = await pause_second_login(auth, monkeypatch)
    reached = watch_serialization(monkeypatch)
    changing = asyncio.create_task(change(auth, user, own_caller))
    await reached.wait()
    paused.resume.set()
    session, _ = await asyncio.gather(login, changing)
    caller = await caller_of(auth, session)
    assert not ignores_change(change, caller)
    if change is not demote:
        assert await refresh_session(auth, session.refresh_token) == InvalidSession()


@pytest.mark.parametrize("change", [change_password, ban, demote])
async def test_control_without_serialization_a_login_in_progress_ignores_the_change(
    auth: Auth, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    disable_serialization(monkeypatch)
    user, own_caller, login, paused = await pause_second_login(auth, monkeypatch)
    await change(auth, user, own_caller)
    paused.resume.set()
    assert ignores_change(change, await caller_of(auth, await login))


@pytest.mark.parametrize("change", [change_password, ban, demote])
async def test_a_login_with_an_account_loaded_before_the_change_sees_it(
    auth: Auth, change: Change
) -> None:
    user = await insert_user(auth, Role.ORGANIZER, OLD_HASH)
    own_caller = await caller_of(auth, await open_session(auth, user, OLD_HASH))
    assert own_caller is not None
    await change(auth, user, own_caller)
    session = await open_session(auth, user, OLD_HASH)
    assert not ignores_change(change, await caller_of(auth, session))


async def test_the_oldest_sessions_end_above_the_maximum_number(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)
    user = await insert_user(auth)
    opened = [await open_session(auth, user) for _ in range(4)]
    concurrent = await asyncio.gather(*(open_session(auth, user) for _ in range(6)))
    assert [await caller_of(auth, session) for session in opened] == [None] * 4
    callers = [await caller_of(auth, session) for session in concurrent]
    assert sum(caller is not None for caller in callers) == 3
