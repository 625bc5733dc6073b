"""Bans: they end every session at once, need a permission, and can be lifted."""

import asyncio
import secrets
from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.auth import accounts
from slotlock.auth.accounts import Banned, InvalidCredentials
from slotlock.auth.admin import account_admin, groups_and_bans
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.sessions import InvalidSession, SignedInSession, open_session, refresh_session
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.users.account_admin_rules import AdminRequired
from slotlock.domain.users.user import Caller, Role, User
from slotlock.infrastructure.mongo.users.account_admin_writer import BanWriter
from slotlock.services.container import utc_now
from tests.support.stores.empty_database import stored_database

PASSWORD = "correct horse battery"


async def create_user_with_role(auth: Auth, role: Role = Role.MEMBER) -> User:
    email = f"{secrets.token_hex(8)}@slotlock.test"
    created = await accounts.create_user(auth, "Ada", email, PASSWORD, role)
    assert isinstance(created, User)
    return created


@pytest.fixture
async def user(auth: Auth) -> User:
    return await create_user_with_role(auth)


def caller(user: User) -> Caller:
    return Caller(user.id, user.role, "session", utc_now())


@pytest.fixture
async def organizer(auth: Auth) -> Caller:
    return caller(await create_user_with_role(auth, Role.ORGANIZER))


@pytest.fixture
async def admin(auth: Auth) -> Caller:
    return caller(await create_user_with_role(auth, Role.ADMIN))


async def accepts(auth: Auth, session: SignedInSession) -> bool:
    """Return whether this process accepts the session's access token."""
    try:
        return await authenticate(auth, f"Bearer {session.access_token}") is not None
    except BadTokenError:
        return False


async def test_only_the_password_reveals_a_ban(auth: Auth, user: User, organizer: Caller) -> None:
    await groups_and_bans.ban(auth, organizer, user.id, "Loud")
    assert await accounts.login(auth, user.login_name, PASSWORD) == Banned()
    assert await accounts.login(auth, user.login_name, PASSWORD + "?") == InvalidCredentials()
    assert await accounts.register(auth, "Eve", user.login_name, PASSWORD) == accounts.EmailTaken(
        user.login_name
    )


async def test_an_unbanned_user_can_log_in_again(auth: Auth, user: User, organizer: Caller) -> None:
    old_session = await open_session(auth, user)
    await groups_and_bans.ban(auth, organizer, user.id, "Loud")
    assert await groups_and_bans.unban(auth, organizer, user.id) == user
    assert isinstance(await accounts.login(auth, user.login_name, PASSWORD), SignedInSession)
    assert not await accepts(auth, old_session)
    assert await groups_and_bans.unban(auth, organizer, user.id) == user


async def test_a_second_ban_changes_the_reason_but_not_the_time(
    auth: Auth, user: User, organizer: Caller
) -> None:
    first = await groups_and_bans.ban(auth, organizer, user.id, " Loud ")
    assert isinstance(first, User)
    assert first.ban_reason == "Loud"
    later = replace(auth, now=lambda: utc_now() + timedelta(seconds=5))
    assert await groups_and_bans.ban(later, organizer, user.id, None) == first
    assert await groups_and_bans.ban(later, organizer, user.id, "Late") == replace(
        first, ban_reason="Late"
    )


async def test_a_user_who_becomes_an_organizer_during_the_ban_is_not_banned_by_one(
    auth: Auth, user: User, organizer: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    ban = BanWriter.ban

    async def ban_after_promotion(self: BanWriter, loaded: User, *arguments: object) -> User | None:
        await account_admin.set_role(auth, None, user.id, Role.ORGANIZER)
        return await ban(self, loaded, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(BanWriter, "ban", ban_after_promotion)
    assert await groups_and_bans.ban(auth, organizer, user.id, None) == AdminRequired()
    assert isinstance(await accounts.login(auth, user.login_name, PASSWORD), SignedInSession)


async def test_a_ban_during_a_login_ends_it(auth: Auth, user: User, organizer: Caller) -> None:
    await groups_and_bans.ban(auth, organizer, user.id, None)
    session = await open_session(auth, user)  # from the account as it was before the ban
    assert not await accepts(auth, session)
    assert await refresh_session(auth, session.refresh_token) == InvalidSession()


async def test_concurrent_logins_and_a_ban_leave_no_session(
    auth: Auth, other_process: Auth, user: User, organizer: Caller
) -> None:
    for _ in range(5):
        *outcomes, banned = await asyncio.gather(
            *(
                accounts.login(auth_of_process, user.login_name, PASSWORD)
                for auth_of_process in [auth, other_process] * 4
            ),
            groups_and_bans.ban(auth, organizer, user.id, None),
        )
        assert isinstance(banned, User)
        sessions = [outcome for outcome in outcomes if isinstance(outcome, SignedInSession)]
        assert len(sessions) + outcomes.count(Banned()) == len(outcomes)
        for session in sessions:
            assert not await accepts(auth, session)
            assert not await accepts(other_process, session)
        await groups_and_bans.unban(auth, organizer, user.id)


async def test_a_restored_session_of_a_banned_user_cannot_be_refreshed(
    mongo_url: str, auth: Auth, user: User, organizer: Caller
) -> None:
    session = await open_session(auth, user)
    session_id = auth.tokens.verify("refresh", session.refresh_token, auth.now()).session_id
    sessions = stored_database(mongo_url)["sessions"]
    document = sessions.find_one({"_id": session_id})
    assert document is not None
    assert await auth.repositories.bans.ban(user, organizer.user_id, None, utc_now())
    sessions.insert_one(document)  # as a restored backup would
    assert await auth.repositories.sessions.find_role(session_id) is Role.MEMBER
    assert await refresh_session(auth, session.refresh_token) == InvalidSession()
    assert await auth.repositories.sessions.find_role(session_id) is None
