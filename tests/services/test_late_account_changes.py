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
    user_admin,
    user_import,
)
from slotlock.auth.administration import account_admin
from slotlock.auth.sessions import SignedInSession
from slotlock.domain.users.user import Caller, Role, User
from slotlock.infrastructure.mongo.client import may_have_written
from slotlock.infrastructure.mongo.users.account_updates import PasswordWriter
from slotlock.infrastructure.mongo.users.invitations import InvitationRepository
from slotlock.infrastructure.mongo.users.repository import UserRepository
from tests.support.clients.user_files import user_csv
from tests.support.domain.builders import NOW
from tests.support.stores.late_store import (
    ADA,
    PASSWORD,
    Act,
    LateStore,
    Prepare,
    answer_before_write,
    assert_late_write_is_unknown,
    short_timeouts,
    store,
    with_conflict,
)
from tests.support.stores.users import insert_user, new_email

__all__ = ["short_timeouts", "store"]

ORGANIZER = Caller(ADA.user_id, Role.ADMIN, "session", NOW)


def caller_of(user: User) -> Caller:
    """Return a user as the caller of a request."""
    return Caller(user.id, user.role, "session", NOW)


async def new_session(store: LateStore, user: User) -> tuple[SignedInSession, Caller]:
    """Return a new session of a user, and the caller of its requests."""
    session = await sessions.open_session(store.auth, user)
    claims = store.auth.tokens.verify("access", session.access_token, NOW)
    return session, Caller(user.id, Role.MEMBER, claims.session_id, claims.expires_at)


async def prepare_registration(store: LateStore) -> Act:
    """Return what creates an account."""
    email = new_email()
    return lambda: accounts.register(store.auth, "Eve", email, PASSWORD)


async def prepare_login(store: LateStore) -> Act:
    """Return what opens a session."""
    user = await store.new_user()
    return lambda: accounts.login(store.auth, user.email, PASSWORD)


async def import_group(store: LateStore) -> str:
    """Import a user, and return the group that only this user has."""
    group = secrets.token_hex(8)
    body = user_csv(f"{group}.test", {"eve": "Eve"}, group)
    await user_import.import_users(store.auth, body, dry_run=False)
    return group


async def invite(store: LateStore, group: str) -> list[invitations.PasswordInvitation]:
    """Invite the users of a group."""
    return [each async for each in invitations.invite(store.auth, group, tuple(Role))]


async def prepare_invitations(store: LateStore) -> Act:
    """Return what invites the users of a group."""
    group = await import_group(store)
    return lambda: invite(store, group)


async def prepare_first_password(store: LateStore) -> Act:
    """Return what sets the first password of an imported user."""
    (invited,) = await invite(store, await import_group(store))
    return lambda: invitations.set_password(store.auth, invited.token, PASSWORD)


async def prepare_password(store: LateStore) -> Act:
    """Return what changes a password."""
    _, caller = await new_session(store, await store.new_user())
    new = secrets.token_hex(8)
    return lambda: accounts.change_password(store.auth, caller, PASSWORD, new)


async def prepare_refresh(store: LateStore) -> Act:
    """Return what exchanges a refresh token."""
    session, _ = await new_session(store, await store.new_user())
    return lambda: sessions.refresh_session(store.auth, session.refresh_token)


async def prepare_logout(store: LateStore) -> Act:
    """Return what ends the session of its caller."""
    _, caller = await new_session(store, await store.new_user())
    return lambda: sessions.logout(store.auth, caller)


async def prepare_end_of_session(store: LateStore) -> Act:
    """Return what ends a session from a list."""
    _, caller = await new_session(store, await store.new_user())
    (listed,) = await sessions.list_sessions(store.auth, caller)
    return lambda: sessions.end_session_by_key(store.auth, caller, listed.key)


async def prepare_end_of_other_sessions(store: LateStore) -> Act:
    """Return what ends all other sessions of its caller."""
    user = await store.new_user()
    await new_session(store, user)
    _, caller = await new_session(store, user)
    return lambda: sessions.end_other_sessions(store.auth, caller)


async def prepare_import(store: LateStore) -> Act:
    """Return what imports a user."""
    body = user_csv(f"{secrets.token_hex(8)}.test", {"eve": "Eve"})
    return lambda: user_import.import_users(store.auth, body, dry_run=False)


async def prepare_ban(store: LateStore) -> Act:
    """Return what bans a user."""
    user = await store.new_user()
    return lambda: user_admin.ban(store.auth, ORGANIZER, user.id, None)


async def prepare_unban(store: LateStore) -> Act:
    """Return what lifts a ban."""
    user = await store.new_user()
    await user_admin.ban(store.auth, ORGANIZER, user.id, None)
    return lambda: user_admin.unban(store.auth, ORGANIZER, user.id)


async def prepare_groups(store: LateStore) -> Act:
    """Return what sets a user's groups."""
    user = await store.new_user()
    return lambda: user_admin.set_groups(store.auth, ORGANIZER, user.id, ["Late"])


async def prepare_creation(store: LateStore) -> Act:
    """Return what creates an invited user."""
    email = new_email()
    return lambda: account_admin.create_invited_user(
        store.auth, ORGANIZER, "Eve", email, [], Role.MEMBER
    )


async def prepare_edit(store: LateStore) -> Act:
    """Return what renames a user."""
    user = await store.new_user()
    return lambda: account_admin.update_user(store.auth, ORGANIZER, user.id, "Late", None)


async def prepare_role(store: LateStore) -> Act:
    """Return what makes a user an organizer."""
    await insert_user(store.auth, Role.ADMIN)
    user = await store.new_user()
    return lambda: account_admin.set_role(store.auth, ORGANIZER, user.id, Role.ORGANIZER)


async def prepare_end_of_sessions_of_another(store: LateStore) -> Act:
    """Return what ends the sessions of another user."""
    user = await store.new_user()
    await new_session(store, user)
    return lambda: account_admin.end_sessions(store.auth, ORGANIZER, user.id)


async def prepare_erasure(store: LateStore) -> Act:
    """Return what erases an account."""
    user = await store.new_user()
    return lambda: account_admin.erase_account(store.auth, ORGANIZER, user.id)


async def prepare_calendar_feed(store: LateStore) -> Act:
    """Return what replaces a calendar feed."""
    caller = caller_of(await store.new_user())
    await calendar_tokens.create(store.auth, caller)
    return lambda: calendar_tokens.create(store.auth, caller)


async def prepare_end_of_calendar_feed(store: LateStore) -> Act:
    """Return what revokes a calendar feed."""
    caller = caller_of(await store.new_user())
    await calendar_tokens.create(store.auth, caller)
    return lambda: calendar_tokens.revoke(store.auth, caller)


@pytest.mark.parametrize(
    "prepare",
    [
        prepare_registration,
        prepare_login,
        prepare_invitations,
        prepare_first_password,
        prepare_password,
        prepare_refresh,
        prepare_logout,
        prepare_end_of_session,
        prepare_end_of_other_sessions,
        prepare_import,
        prepare_ban,
        prepare_unban,
        prepare_groups,
        prepare_creation,
        prepare_edit,
        prepare_role,
        prepare_end_of_sessions_of_another,
        prepare_erasure,
        prepare_calendar_feed,
        prepare_end_of_calendar_feed,
    ],
)
async def test_a_change_whose_write_is_late_has_an_unknown_outcome(
    store: LateStore, prepare: Prepare
) -> None:
    await assert_late_write_is_unknown(store, prepare)


@pytest.mark.parametrize(
    ("prepare", "repository", "name", "refusal"),
    [
        (prepare_password, PasswordWriter, "update", accounts.InvalidCredentials),
        (prepare_registration, UserRepository, "insert", accounts.EmailTaken),
        (prepare_first_password, InvitationRepository, "redeem", invitations.InvalidInvitation),
    ],
)
async def test_control_a_late_write_that_counts_as_a_conflict_is_refused_and_happens(
    store: LateStore,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Prepare,
    repository: type,
    name: str,
    refusal: type,
) -> None:
    act = await prepare(store)
    monkeypatch.setattr(repository, name, with_conflict(getattr(repository, name), None))
    before = await store.find_all()
    assert isinstance(await answer_before_write(store, act), refusal)
    await store.deliver_held()
    assert await store.find_all() != before


async def test_a_calendar_feed_whose_write_is_late_does_not_replace_a_newer_one(
    store: LateStore,
) -> None:
    caller = caller_of(await store.new_user())
    outcome = await answer_before_write(store, lambda: calendar_tokens.create(store.auth, caller))
    assert isinstance(outcome, PyMongoError)
    assert may_have_written(outcome)
    late, store.route.held = store.route.held, []
    store.route.is_held = lambda _: False
    newer = await calendar_tokens.create(store.auth, caller)
    store.route.held = late
    await store.deliver_held()
    assert await calendar_tokens.user_of(store.auth, newer.token) is not None
