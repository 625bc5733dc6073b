"""Somebody signs in while their password, their role or a ban is written: nobody slips through."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from pymongo.asynchronous.client_session import AsyncClientSession

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

ORGANISER = UserId("a" * 24)
OLD, NEW = "the hash of the old password", "the hash of the new password"


@pytest.fixture
async def auth(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "sign_in_races")) as opened:
        await opened.sessions.create_indexes()
        yield opened


async def caller_of(auth: Auth, session: SignedInSession) -> Caller | None:
    """Who comes with the session's access token; None when it is refused."""
    try:
        return await authenticate(auth, f"Bearer {session.access_token}")
    except BadTokenError:
        return None


async def change_password(auth: Auth, user: User, own: Caller) -> None:
    changed = await auth.users.password_writer.update(user.id, own.session_id, OLD, NEW)
    assert changed is not None


async def ban(auth: Auth, user: User, own: Caller) -> None:
    assert await auth.users.bans.ban(user, ORGANISER, None, auth.now())


async def demote(auth: Auth, user: User, own: Caller) -> None:
    assert await auth.users.set_role(user.email, Role.MEMBER, None, auth.now())


Act = Callable[[Auth, User, Caller], Coroutine[Any, Any, None]]


class Paused:
    """The next sign-in, which waits with its last step until the test says go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached = reached = asyncio.Event()
        self.go = go = asyncio.Event()
        monkeypatch.setattr(sessions, "MAX_SESSIONS", 0)

        async def late(
            self: SessionRepository, user_id: UserId, session: AsyncClientSession
        ) -> None:
            reached.set()
            await go.wait()

        monkeypatch.setattr(SessionRepository, "_end_oldest", late)


def without_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    async def none(*_: Any) -> int:
        return 1

    for module in (sessions, account_updates):
        monkeypatch.setattr(module, "serialize_user_sessions", none)


def telling_of_turns(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set as soon as somebody tries to take a turn."""
    tried, take_turn = asyncio.Event(), sessions.serialize_user_sessions

    async def told(*arguments: Any) -> int:
        tried.set()
        return await take_turn(*arguments)

    for module in (sessions, account_updates):
        monkeypatch.setattr(module, "serialize_user_sessions", told)
    return tried


async def staged(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> tuple[User, Caller, asyncio.Task[SignedInSession], Paused]:
    """An organiser with a session, who is in the middle of opening a second one."""
    user = await insert_user(auth, Role.ORGANIZER, OLD)
    own = await caller_of(auth, await open_session(auth, user, OLD))
    assert own is not None
    paused = Paused(monkeypatch)
    signing_in = asyncio.create_task(open_session(auth, user, OLD))
    await paused.reached.wait()
    return user, own, signing_in, paused


def slipped_through(act: Act, caller: Caller | None) -> bool:
    """Whether a session is as if the act had not been."""
    return caller is not None and (act is not demote or caller.role is Role.ORGANIZER)


@pytest.mark.parametrize("act", [change_password, ban, demote])
async def test_a_sign_in_under_way_does_not_slip_through(
    auth: Auth, monkeypatch: pytest.MonkeyPatch, act: Act
) -> None:
    user, own, signing_in, paused = await staged(auth, monkeypatch)
    tried = telling_of_turns(monkeypatch)
    acting = asyncio.create_task(act(auth, user, own))
    await tried.wait()
    paused.go.set()
    session, _ = await asyncio.gather(signing_in, acting)
    caller = await caller_of(auth, session)
    assert not slipped_through(act, caller)
    if act is not demote:
        assert await refresh_session(auth, session.refresh_token) == InvalidSession()


@pytest.mark.parametrize("act", [change_password, ban, demote])
async def test_control_without_turns_a_sign_in_under_way_slips_through(
    auth: Auth, monkeypatch: pytest.MonkeyPatch, act: Act
) -> None:
    without_turns(monkeypatch)
    user, own, signing_in, paused = await staged(auth, monkeypatch)
    await act(auth, user, own)
    paused.go.set()
    assert slipped_through(act, await caller_of(auth, await signing_in))


@pytest.mark.parametrize("act", [change_password, ban, demote])
async def test_who_looked_before_and_signs_in_after_does_not_slip_through(
    auth: Auth, act: Act
) -> None:
    user = await insert_user(auth, Role.ORGANIZER, OLD)
    own = await caller_of(auth, await open_session(auth, user, OLD))
    assert own is not None
    await act(auth, user, own)
    session = await open_session(auth, user, OLD)
    assert not slipped_through(act, await caller_of(auth, session))


async def test_a_person_has_at_most_a_hundred_sessions_and_loses_the_oldest(
    auth: Auth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)
    user = await insert_user(auth)
    opened = [await open_session(auth, user) for _ in range(4)]
    at_once = await asyncio.gather(*(open_session(auth, user) for _ in range(6)))
    assert [await caller_of(auth, session) for session in opened] == [None] * 4
    callers = [await caller_of(auth, session) for session in at_once]
    assert sum(caller is not None for caller in callers) == 3
