"""A session is one family of tokens: it rotates, it ends, and it knows its person's role."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from slotlock.auth import accounts
from slotlock.auth.accounts import InvalidCredentials, TooManyAttempts
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.sessions import (
    InvalidSession,
    SignedInSession,
    end_session,
    open_session,
    refresh_session,
)
from slotlock.auth.tokens import BadTokenError
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import Role, User
from tests.support.apps.processes import database_url
from tests.support.stores.users import auth_for_database

PASSWORD = "correct horse battery"


@pytest.fixture
async def auth(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "sessions")) as opened:
        yield opened


@pytest.fixture
async def other_process(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "sessions")) as opened:
        yield opened


@pytest.fixture
async def user(auth: Auth) -> User:
    email = f"{secrets.token_hex(8)}@slotlock.test"
    created = await accounts.create_user(auth, "Ada", email, PASSWORD, Role.MEMBER)
    assert isinstance(created, User)
    return created


async def role_of(auth: Auth, session: SignedInSession) -> Role:
    caller = await authenticate(auth, f"Bearer {session.access_token}")
    assert caller is not None
    assert caller.user_id == session.user.id
    return caller.role


async def has_ended(auth: Auth, session: SignedInSession) -> bool:
    try:
        await role_of(auth, session)
    except BadTokenError:
        return True
    return False


async def test_a_new_role_reaches_open_sessions(
    auth: Auth, other_process: Auth, user: User
) -> None:
    sessions = [await open_session(auth, user) for _ in range(2)]
    assert [await role_of(auth, session) for session in sessions] == [Role.MEMBER] * 2
    changed = await accounts.set_role(other_process, user.email.upper(), Role.ORGANIZER)
    assert changed == replace(user, role=Role.ORGANIZER)
    for session in sessions:
        assert await role_of(auth, session) is Role.ORGANIZER
        refreshed = await refresh_session(auth, session.refresh_token)
        assert isinstance(refreshed, SignedInSession)
        assert await role_of(auth, refreshed) is Role.ORGANIZER


async def test_a_role_that_is_taken_away_while_somebody_signs_in_is_gone(
    auth: Auth, user: User
) -> None:
    before = await accounts.set_role(auth, user.email, Role.ADMIN)
    assert before is not None
    await accounts.set_role(auth, user.email, Role.MEMBER)
    session = await open_session(auth, before)
    assert session.user.role is Role.MEMBER
    assert await role_of(auth, session) is Role.MEMBER


async def test_nobody_gets_a_role_by_an_unknown_address(auth: Auth) -> None:
    assert await accounts.set_role(auth, "nobody@slotlock.test", Role.ADMIN) is None
    assert await accounts.set_role(auth, "no address", Role.ADMIN) is None


async def test_of_twenty_refreshes_at_once_at_most_one_succeeds_and_the_family_ends(
    auth: Auth, other_process: Auth, user: User
) -> None:
    session, untouched = await open_session(auth, user), await open_session(auth, user)
    outcomes = await asyncio.gather(
        *(refresh_session(room, session.refresh_token) for room in [auth, other_process] * 10)
    )
    won = [outcome for outcome in outcomes if isinstance(outcome, SignedInSession)]
    assert len(won) <= 1
    assert outcomes.count(InvalidSession()) == 20 - len(won)
    for ended in (session, *won):
        assert await has_ended(auth, ended)
        assert await refresh_session(auth, ended.refresh_token) == InvalidSession()
    assert not await has_ended(auth, untouched)


async def test_an_ended_session_is_over_at_once_where_it_ended_and_elsewhere(
    auth: Auth, other_process: Auth, user: User
) -> None:
    session = await open_session(auth, user)
    for room in (auth, other_process):
        assert await role_of(room, session) is Role.MEMBER
    caller = await authenticate(auth, f"Bearer {session.access_token}")
    assert caller is not None
    await end_session(auth, user.id, caller.session_id)
    assert await has_ended(auth, session)
    assert await has_ended(other_process, session)


async def test_many_sign_in_at_once_each_to_a_session_of_their_own(auth: Auth, user: User) -> None:
    outcomes = await asyncio.gather(
        *(accounts.login(auth, user.email, PASSWORD) for _ in range(10)),
        *(accounts.login(auth, user.email, PASSWORD + "?") for _ in range(10)),
    )
    sessions = [outcome for outcome in outcomes[:10] if isinstance(outcome, SignedInSession)]
    assert len({session.refresh_token for session in sessions}) == 10
    assert list(outcomes[10:]) == [InvalidCredentials()] * 10


async def test_a_line_that_is_too_long_is_told_to_come_back(
    auth: Auth, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slotlock.auth.passwords.MAX_QUEUED_HASHES", 0)
    refused = TooManyAttempts(accounts.BUSY_RETRY_AFTER_MS)
    assert await accounts.login(auth, user.email, PASSWORD) == refused
    assert await accounts.login(auth, "nobody@slotlock.test", PASSWORD) == refused
    assert await accounts.register(auth, "Eve", "eve@slotlock.test", PASSWORD) == refused


async def test_of_many_who_register_one_address_at_once_one_gets_it(auth: Auth) -> None:
    await auth.users.create_indexes()
    email = f"{secrets.token_hex(8)}@slotlock.test"
    outcomes = await asyncio.gather(
        *(accounts.register(auth, "Ada", email, PASSWORD) for _ in range(8))
    )
    assert sum(isinstance(outcome, SignedInSession) for outcome in outcomes) == 1
    assert outcomes.count(accounts.EmailTaken(email)) == 7


async def test_a_password_too_long_to_be_anyones_costs_no_hash(
    auth: Auth, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slotlock.auth.passwords._CONTEXT", None)
    for long in ("x" * 129, "\U0001f511" * 129, "x" * 60_000):
        assert await accounts.login(auth, user.email, long) == InvalidCredentials(
            counts_as_guess=False
        )
        refused = await accounts.register(auth, "Eve", "eve@slotlock.test", long)
        assert isinstance(refused, InvalidInput)
