"""Changes of accounts and sessions that arrive after every timeout.

The route to MongoDB holds the write of a change until the change has its answer. The answer is an
error that says that the outcome is unknown, and never a refusal.
"""

import secrets

import pytest
from pymongo.errors import PyMongoError

from slotlock.auth import (
    accounts,
    calendar_tokens,
    invitations,
    sessions,
)
from slotlock.auth.admin import account_admin, groups_and_bans, user_import
from slotlock.auth.sessions import SignedInSession
from slotlock.domain.users.user import Caller, Role, User
from slotlock.infrastructure.mongo.client import may_have_written
from slotlock.infrastructure.mongo.users.credentials import InvitationRepository, PasswordWriter
from slotlock.infrastructure.mongo.users.user_repository import UserRepository
from tests.support.clients.user_files import user_csv
from tests.support.domain.builders import NOW
from tests.support.stores.late_store import (
    ADA,
    PASSWORD,
    LateStore,
    Prepare,
    answer_before_write,
    assert_conflict_happens,
    assert_late_write_is_unknown,
    on,
    short_timeouts,
    store,
    with_conflict,
)
from tests.support.stores.users import insert_user, new_email

__all__ = ["short_timeouts", "store"]

ORGANIZER = Caller(ADA.user_id, Role.ADMIN, "session", NOW)


async def address(_: LateStore) -> str:
    """Return an address without an account."""
    return new_email()


async def new_group(_: LateStore) -> str:
    """Return a group that nobody has."""
    return secrets.token_hex(8)


async def import_user(store: LateStore, group: str) -> object:
    """Import a user of a group."""
    body = user_csv(f"{group}.test", {"eve": "Eve"}, group)
    return await user_import.import_users(store.auth, body, dry_run=False)


async def import_group(store: LateStore) -> str:
    """Import a user, and return the group that only this user has."""
    group = secrets.token_hex(8)
    await import_user(store, group)
    return group


async def invite(store: LateStore, group: str) -> list[invitations.PasswordInvitation]:
    """Invite the users of a group."""
    return [each async for each in invitations.invite(store.auth, group, tuple(Role))]


async def invitation_token(store: LateStore) -> str:
    """Return the token with which an imported user sets a first password."""
    (invited,) = await invite(store, await import_group(store))
    return invited.token


async def signed_in(store: LateStore) -> tuple[SignedInSession, Caller]:
    """Return one of two sessions of a new user, and the caller of its requests."""
    user = await store.new_user()
    await sessions.open_session(store.auth, user)
    session = await sessions.open_session(store.auth, user)
    claims = store.auth.tokens.verify("access", session.access_token, NOW)
    return session, Caller(user.id, Role.MEMBER, claims.session_id, claims.expires_at)


async def listed_session(store: LateStore) -> tuple[Caller, str]:
    """Return a user, and the key of a session of this user in the list."""
    _, caller = await signed_in(store)
    return caller, (await sessions.list_sessions(store.auth, caller))[0].key


async def banned_user(store: LateStore) -> User:
    """Return a user who is banned."""
    user = await store.new_user()
    await groups_and_bans.ban(store.auth, ORGANIZER, user.id, None)
    return user


async def user_with_admin(store: LateStore) -> User:
    """Return a user who has a session, and let an administrator exist."""
    await insert_user(store.auth, Role.ADMIN)
    user = await store.new_user()
    await sessions.open_session(store.auth, user)
    return user


async def feed_owner(store: LateStore) -> Caller:
    """Return a user with a calendar feed."""
    user = await store.new_user()
    caller = Caller(user.id, user.role, "session", NOW)
    await calendar_tokens.create(store.auth, caller)
    return caller


CHANGES: dict[str, Prepare] = {
    "registration": on(
        address, lambda store, email: accounts.register(store.auth, "Eve", email, PASSWORD)
    ),
    "login": on(
        LateStore.new_user,
        lambda store, user: accounts.login(store.auth, user.login_name, PASSWORD),
    ),
    "invitations": on(import_group, invite),
    "first password": on(
        invitation_token,
        lambda store, token: invitations.set_password(store.auth, token, PASSWORD),
    ),
    "password": on(
        signed_in,
        lambda store, user: accounts.change_password(
            store.auth, user[1], PASSWORD, secrets.token_hex(8)
        ),
    ),
    "refresh": on(
        signed_in, lambda store, user: sessions.refresh_session(store.auth, user[0].refresh_token)
    ),
    "logout": on(signed_in, lambda store, user: sessions.logout(store.auth, user[1])),
    "end of a session": on(
        listed_session, lambda store, listed: sessions.end_session_by_key(store.auth, *listed)
    ),
    "end of other sessions": on(
        signed_in, lambda store, user: sessions.end_other_sessions(store.auth, user[1])
    ),
    "import": on(new_group, import_user),
    "ban": on(
        LateStore.new_user,
        lambda store, user: groups_and_bans.ban(store.auth, ORGANIZER, user.id, None),
    ),
    "lifted ban": on(
        banned_user, lambda store, user: groups_and_bans.unban(store.auth, ORGANIZER, user.id)
    ),
    "groups": on(
        LateStore.new_user,
        lambda store, user: groups_and_bans.set_groups(store.auth, ORGANIZER, user.id, ["Late"]),
    ),
    "creation": on(
        address,
        lambda store, email: account_admin.create_invited_user(
            store.auth, ORGANIZER, "Eve", email, [], Role.MEMBER
        ),
    ),
    "new name": on(
        LateStore.new_user,
        lambda store, user: account_admin.update_user(store.auth, ORGANIZER, user.id, "Late", None),
    ),
    "role": on(
        user_with_admin,
        lambda store, user: account_admin.set_role(store.auth, ORGANIZER, user.id, Role.ORGANIZER),
    ),
    "end of the sessions of another": on(
        user_with_admin,
        lambda store, user: account_admin.end_sessions(store.auth, ORGANIZER, user.id),
    ),
    "erasure": on(
        LateStore.new_user,
        lambda store, user: account_admin.erase_account(store.auth, ORGANIZER, user.id),
    ),
    "calendar feed": on(
        feed_owner, lambda store, caller: calendar_tokens.create(store.auth, caller)
    ),
    "end of a calendar feed": on(
        feed_owner, lambda store, caller: calendar_tokens.revoke(store.auth, caller)
    ),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_whose_write_is_late_has_an_unknown_outcome(
    store: LateStore, name: str
) -> None:
    await assert_late_write_is_unknown(store, CHANGES[name])


@pytest.mark.parametrize(
    ("name", "repository", "method", "refusal"),
    [
        ("password", PasswordWriter, "update", accounts.InvalidCredentials),
        ("registration", UserRepository, "insert", accounts.EmailTaken),
        ("first password", InvitationRepository, "redeem", invitations.InvalidInvitation),
    ],
)
async def test_control_a_late_write_that_counts_as_a_conflict_is_refused_and_happens(
    store: LateStore,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    repository: type,
    method: str,
    refusal: type,
) -> None:
    act = await CHANGES[name](store)
    monkeypatch.setattr(repository, method, with_conflict(getattr(repository, method), None))
    await assert_conflict_happens(store, act, refusal)


async def test_a_calendar_feed_whose_write_is_late_does_not_replace_a_newer_one(
    store: LateStore,
) -> None:
    user, newer = await store.new_user(), list[calendar_tokens.CalendarToken]()
    caller = Caller(user.id, user.role, "session", NOW)
    outcome = await answer_before_write(store, lambda: calendar_tokens.create(store.auth, caller))
    assert isinstance(outcome, PyMongoError)
    assert may_have_written(outcome)

    async def create_newer() -> None:
        newer.append(await calendar_tokens.create(store.auth, caller))

    await store.deliver_held_after(create_newer)
    assert await calendar_tokens.user_of(store.auth, newer[0].token) is not None
