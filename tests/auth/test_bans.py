"""Who is banned is out at once, wherever they are signed in, and comes back when unbanned."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from pymongo import MongoClient

from slotlock.auth import accounts, user_admin
from slotlock.auth.accounts import Banned, InvalidCredentials
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.sessions import InvalidSession, SignedInSession, open_session, refresh_session
from slotlock.auth.tokens import BadTokenError
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.refusals import UserNotFound
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.bans import AdminRequired, CannotBanSelf
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mongo.users.account_updates import BanWriter
from slotlock.services.container import utc_now
from tests.support.apps.processes import database_url
from tests.support.clients.client import Json
from tests.support.stores.users import auth_for_database

PASSWORD = "correct horse battery"
NOBODY = UserId("f" * 24)


@pytest.fixture
async def auth(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "banning")) as opened:
        await opened.users.create_indexes()
        yield opened


@pytest.fixture
async def other_process(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "banning")) as opened:
        yield opened


async def somebody(auth: Auth, role: Role = Role.MEMBER) -> User:
    email = f"{secrets.token_hex(8)}@slotlock.test"
    created = await accounts.create_user(auth, "Ada", email, PASSWORD, role)
    assert isinstance(created, User)
    return created


@pytest.fixture
async def user(auth: Auth) -> User:
    return await somebody(auth)


def caller(user: User) -> Caller:
    return Caller(user.id, user.role, "session", utc_now())


@pytest.fixture
async def organizer(auth: Auth) -> Caller:
    return caller(await somebody(auth, Role.ORGANIZER))


@pytest.fixture
async def admin(auth: Auth) -> Caller:
    return caller(await somebody(auth, Role.ADMIN))


async def knows(auth: Auth, session: SignedInSession) -> bool:
    """Whether this process takes the session's access token."""
    try:
        return await authenticate(auth, f"Bearer {session.access_token}") is not None
    except BadTokenError:
        return False


async def test_who_is_banned_is_signed_out_at_once_here_and_elsewhere(
    auth: Auth, other_process: Auth, user: User, organizer: Caller
) -> None:
    sessions = [await open_session(auth, user) for _ in range(2)]
    for session in sessions:
        assert await knows(auth, session)
        assert await knows(other_process, session)
    banned = await user_admin.ban(auth, organizer, user.id, None)
    assert isinstance(banned, User)
    assert banned.banned
    for session in sessions:
        assert not await knows(auth, session)
        assert not await knows(other_process, session)
        assert await refresh_session(other_process, session.refresh_token) == InvalidSession()


async def test_a_ban_is_told_to_who_knows_the_password_and_to_nobody_else(
    auth: Auth, user: User, organizer: Caller
) -> None:
    await user_admin.ban(auth, organizer, user.id, "Loud")
    assert await accounts.login(auth, user.email, PASSWORD) == Banned()
    assert await accounts.login(auth, user.email, PASSWORD + "?") == InvalidCredentials()
    assert await accounts.register(auth, "Eve", user.email, PASSWORD) == accounts.EmailTaken(
        user.email
    )


async def test_who_is_unbanned_signs_in_again(auth: Auth, user: User, organizer: Caller) -> None:
    old = await open_session(auth, user)
    await user_admin.ban(auth, organizer, user.id, "Loud")
    assert await user_admin.unban(auth, organizer, user.id) == user
    assert isinstance(await accounts.login(auth, user.email, PASSWORD), SignedInSession)
    assert not await knows(auth, old)
    assert await user_admin.unban(auth, organizer, user.id) == user


async def test_who_is_banned_again_stays_so_since_the_first_time(
    auth: Auth, user: User, organizer: Caller
) -> None:
    first = await user_admin.ban(auth, organizer, user.id, " Loud ")
    assert isinstance(first, User)
    assert first.ban_reason == "Loud"
    later = replace(auth, now=lambda: utc_now() + timedelta(seconds=5))
    assert await user_admin.ban(later, organizer, user.id, None) == first
    assert await user_admin.ban(later, organizer, user.id, "Late") == replace(
        first, ban_reason="Late"
    )


async def banned_by(auth: Auth, by: Caller, user_id: UserId) -> object:
    return await user_admin.ban(auth, by, user_id, "why")


@pytest.mark.parametrize("act", [banned_by, user_admin.unban])
async def test_nobody_is_banned_or_unbanned_by_who_may_not(
    auth: Auth, organizer: Caller, admin: Caller, act: Callable[..., Awaitable[object]]
) -> None:
    assert await act(auth, organizer, organizer.user_id) == CannotBanSelf()
    assert await act(auth, organizer, admin.user_id) == AdminRequired()
    assert await act(auth, organizer, NOBODY) == UserNotFound(NOBODY)
    assert isinstance(await act(auth, admin, organizer.user_id), User)


async def test_a_reason_that_cannot_be_taken_bans_nobody(
    auth: Auth, user: User, organizer: Caller
) -> None:
    for reason in ("x" * 201, "two\nlines"):
        assert isinstance(await user_admin.ban(auth, organizer, user.id, reason), InvalidInput)
    assert isinstance(await accounts.login(auth, user.email, PASSWORD), SignedInSession)


async def test_who_became_an_organiser_meanwhile_is_not_banned_by_one(
    auth: Auth, user: User, organizer: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    ban = BanWriter.ban

    async def late(self: BanWriter, seen: User, *rest: object) -> User | None:
        await accounts.set_role(auth, user.email, Role.ORGANIZER)
        return await ban(self, seen, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(BanWriter, "ban", late)
    assert await user_admin.ban(auth, organizer, user.id, None) == AdminRequired()
    assert isinstance(await accounts.login(auth, user.email, PASSWORD), SignedInSession)


async def test_a_ban_that_comes_while_somebody_signs_in_ends_that_session_too(
    auth: Auth, user: User, organizer: Caller
) -> None:
    await user_admin.ban(auth, organizer, user.id, None)
    session = await open_session(auth, user)  # as who read the account before the ban
    assert not await knows(auth, session)
    assert await refresh_session(auth, session.refresh_token) == InvalidSession()


async def test_of_sign_ins_and_a_ban_at_once_no_session_is_left(
    auth: Auth, other_process: Auth, user: User, organizer: Caller
) -> None:
    for _ in range(5):
        *outcomes, banned = await asyncio.gather(
            *(accounts.login(room, user.email, PASSWORD) for room in [auth, other_process] * 4),
            user_admin.ban(auth, organizer, user.id, None),
        )
        assert isinstance(banned, User)
        sessions = [outcome for outcome in outcomes if isinstance(outcome, SignedInSession)]
        assert len(sessions) + outcomes.count(Banned()) == len(outcomes)
        for session in sessions:
            assert not await knows(auth, session)
            assert not await knows(other_process, session)
        await user_admin.unban(auth, organizer, user.id)


async def test_a_session_that_outlived_its_ban_is_not_refreshed(
    servers: EmbeddedServers, auth: Auth, user: User, organizer: Caller
) -> None:
    session = await open_session(auth, user)
    session_id = auth.tokens.verify("refresh", session.refresh_token).session_id
    with MongoClient[Json](database_url(servers, "banning")) as client:
        sessions = client.get_default_database()["sessions"]
        document = sessions.find_one({"_id": session_id})
        assert document is not None
        assert await auth.users.bans.ban(user, organizer.user_id, None, utc_now())
        sessions.insert_one(document)  # as an old backup would bring it back
    assert await auth.sessions.find_role(session_id) is Role.MEMBER
    assert await refresh_session(auth, session.refresh_token) == InvalidSession()
    assert await auth.sessions.find_role(session_id) is None
