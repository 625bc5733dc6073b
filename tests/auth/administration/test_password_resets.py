"""Tokens of operators that replace a password, and passwords that operators set."""

import secrets
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from slotlock.auth import accounts, invitations, user_admin
from slotlock.auth.accounts import InvalidCredentials
from slotlock.auth.administration import account_admin
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.invitations import InvalidInvitation, create_password_reset
from slotlock.auth.sessions import SignedInSession
from slotlock.auth.tokens import BadTokenError
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.services.container import utc_now
from tests.support.apps.processes import database_url
from tests.support.stores.users import auth_for_database

OLD, NEW = "correct horse battery", "another horse battery"


@pytest.fixture
async def auth(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "resetting")) as opened:
        yield opened


async def register(auth: Auth) -> SignedInSession:
    """Return the first session of a new user."""
    session = await accounts.register(auth, "Ada", f"{secrets.token_hex(8)}@slotlock.test", OLD)
    assert isinstance(session, SignedInSession)
    return session


async def has_session(auth: Auth, session: SignedInSession) -> bool:
    """Return whether the session is open."""
    try:
        return await authenticate(auth, f"Bearer {session.access_token}") is not None
    except BadTokenError:
        return False


async def test_a_reset_token_replaces_the_password_once_and_ends_all_sessions(auth: Auth) -> None:
    session = await register(auth)
    reset = await create_password_reset(auth, session.user)
    assert reset is not None
    assert timedelta(0) < reset.expires_at - auth.now() <= invitations.RESET_TTL
    assert isinstance(await accounts.login(auth, reset.email, OLD), SignedInSession)
    assert await has_session(auth, session)
    new = await invitations.set_password(auth, reset.token, NEW)
    assert isinstance(new, SignedInSession)
    assert (await has_session(auth, session), await has_session(auth, new)) == (False, True)
    assert await invitations.set_password(auth, reset.token, OLD) == InvalidInvitation()
    assert await accounts.login(auth, reset.email, OLD) == InvalidCredentials()


async def test_a_banned_user_gets_no_reset_token(auth: Auth) -> None:
    user = (await register(auth)).user
    admin = Caller(UserId("a" * 24), Role.ADMIN, "session", utc_now())
    await user_admin.ban(auth, admin, user.id, None)
    assert await create_password_reset(auth, user) is None


async def test_a_password_set_by_an_operator_ends_all_sessions(auth: Auth) -> None:
    session = await register(auth)
    assert await account_admin.replace_password(auth, session.user.id, NEW) is None
    assert not await has_session(auth, session)
    assert isinstance(await accounts.login(auth, session.user.email, NEW), SignedInSession)
    assert await accounts.login(auth, session.user.email, OLD) == InvalidCredentials()
