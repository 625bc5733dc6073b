"""A link to a sign-in needs a proof of its user, and does not outlast the next proof."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.auth import accounts, invitations
from slotlock.auth.accounts import InvalidCredentials, PasswordChanged
from slotlock.auth.admin import account_admin, groups_and_bans
from slotlock.auth.admin.account_admin import UserSessionsEnded
from slotlock.auth.admin.user_import import sync_users
from slotlock.auth.authentication import session_still_valid
from slotlock.auth.container import Auth
from slotlock.auth.invitations import PasswordReset, create_password_reset
from slotlock.auth.sessions import SignedInSession
from slotlock.auth.sign_on import sign_in
from slotlock.auth.sign_on.identities import (
    UserSignInUnlinked,
    unlink_sign_in,
    unlink_sign_in_of,
)
from slotlock.auth.sign_on.sign_in import link_sign_in
from slotlock.auth.sign_on.sign_in_outcomes import (
    LinkRequired,
    ReauthenticationRequired,
    SignInLinked,
)
from slotlock.domain.audit.audit_log import AuditAction, AuditFilter, NoteAction
from slotlock.domain.user_files.choices import Choices
from slotlock.domain.user_files.plan import ImportPlan
from slotlock.domain.user_files.user_file import UserFile, parse_user_file
from slotlock.domain.users.identity import DISTRUSTED_LINK_AGE, Identity
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.users.identities import IdentityRepository
from slotlock.services.container import utc_now
from tests.support.sign_on.scene import SignOnScene
from tests.support.stores.users import caller_of, insert_user

PASSWORD, NEW_PASSWORD = "correct horse battery", "another horse battery"
LINKED, UNLINKED = NoteAction.SIGN_IN_LINKED, NoteAction.SIGN_IN_UNLINKED


async def sign_in_with_password(auth: Auth, role: Role = Role.ORGANIZER) -> tuple[User, Caller]:
    """Return a new user with a password, and their session."""
    user = await insert_user(auth, role, await auth.password_hasher.hash(PASSWORD))
    session = await accounts.login(auth, user.login_name, PASSWORD)
    assert isinstance(session, SignedInSession)
    return user, await caller_of(auth, session)


async def actions(
    repositories: Repositories, user_id: UserId
) -> list[tuple[AuditAction, UserId | None]]:
    """Return what the audit log says of the sign-ins of a user, the last first, and who did it."""
    chosen = AuditFilter(user_id=user_id, actions=frozenset({LINKED, UNLINKED}))
    page = await repositories.audit_log.page(chosen, 9, None, utc_now())
    return [(entry.action, entry.by) for entry in page.items]


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_a_stolen_session_links_nothing(
    scene: SignOnScene, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    async def no_refusal(*_: object) -> None:
        return None

    user, stolen = await sign_in_with_password(scene.auth)
    if not is_guarded:
        monkeypatch.setattr(sign_in, "_proof_refusal", no_refusal)
    refused = await scene.link(stolen)
    assert isinstance(refused, ReauthenticationRequired if is_guarded else SignInLinked)
    guessed = await scene.link(stolen, "wrong horse battery")
    assert isinstance(guessed, InvalidCredentials if is_guarded else SignInLinked)
    assert bool(await scene.identities(user.id)) is not is_guarded


async def test_a_wrong_password_uses_up_no_sign_in(
    scene: SignOnScene, repositories: Repositories
) -> None:
    user, caller = await sign_in_with_password(scene.auth)
    started = await scene.start()

    async def link(password: str | None) -> object:
        return await link_sign_in(
            scene.auth, caller, *started, scene.verifier, current_password=password
        )

    for password in (None, "wrong horse battery", "x" * 1000):
        assert not isinstance(await link(password), SignInLinked)
    assert isinstance(await link(PASSWORD), SignInLinked)
    assert await actions(repositories, user.id) == [(LINKED, user.id)]


async def test_a_sign_in_that_two_pages_link_at_once_is_one_way_to_sign_in(
    scene: SignOnScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored twice, it would not be the last one, and a user without a password could unlink it."""
    user, caller = await sign_in_with_password(scene.auth)
    find_user, both = IdentityRepository.find_user, asyncio.Barrier(2)

    async def find_together(self: IdentityRepository, identity: Identity) -> User | None:
        found = await find_user(self, identity)
        await both.wait()
        return found

    monkeypatch.setattr(IdentityRepository, "find_user", find_together)
    outcomes = await asyncio.gather(*(scene.link(caller, PASSWORD) for _ in range(2)))
    assert [isinstance(each, SignInLinked) for each in outcomes].count(True) == 1
    assert len(await scene.identities(user.id)) == 1


async def test_a_fresh_session_of_a_provider_does_not_replace_a_password(
    scene: SignOnScene,
) -> None:
    _, caller = await sign_in_with_password(scene.auth)
    assert isinstance(await scene.link(caller, PASSWORD), SignInLinked)
    stolen = await scene.caller()
    scene.provider.claims["sub"] = secrets.token_hex(8)
    assert isinstance(await scene.link(stolen), ReauthenticationRequired)


@pytest.mark.parametrize("minutes", [9, 11])
async def test_a_user_without_a_password_links_in_a_fresh_session_only(
    scene: SignOnScene, minutes: int
) -> None:
    caller = await scene.caller()
    scene.provider.claims["sub"] = secrets.token_hex(8)
    later = scene.auth.now() + timedelta(minutes=minutes)
    pending = await scene.start()
    auth = replace(scene.auth, now=lambda: later)
    scene.provider.claims["iat"] = int(later.timestamp())
    scene.provider.claims["exp"] = int(later.timestamp()) + 60
    outcome = await link_sign_in(auth, caller, *pending, scene.verifier)
    assert isinstance(outcome, SignInLinked if minutes < 10 else ReauthenticationRequired)


async def test_the_password_of_a_member_who_must_not_use_it_proves_nothing(
    scene: SignOnScene,
) -> None:
    _, caller = await sign_in_with_password(scene.auth, Role.MEMBER)
    closed = replace(scene, auth=replace(scene.auth, password_sign_in=False))
    assert isinstance(await closed.link(caller, PASSWORD), ReauthenticationRequired)


Recovery = Callable[[Auth, User, Caller, bool], Awaitable[object]]


async def change_password(auth: Auth, _: User, caller: Caller, retain: bool) -> object:
    return await accounts.change_password(
        auth, caller, PASSWORD, NEW_PASSWORD, retain_sign_ins=retain
    )


async def reset_password(auth: Auth, user: User, _: Caller, retain: bool) -> object:
    reset = await create_password_reset(auth, user)
    assert reset is not None
    return await invitations.reset_password(auth, reset.token, NEW_PASSWORD, retain_sign_ins=retain)


async def end_sessions(auth: Auth, user: User, _: Caller, retain: bool) -> object:
    admin = await insert_user(auth, Role.ADMIN)
    caller = Caller(admin.id, Role.ADMIN, "session", admin.created_at)
    return await account_admin.end_sessions(auth, caller, user.id, retain_sign_ins=retain)


RECOVERIES: list[Recovery] = [change_password, reset_password, end_sessions]


@pytest.mark.parametrize("retain", [False, True], ids=["", "retain"])
@pytest.mark.parametrize("recovery", RECOVERIES, ids=lambda each: each.__name__)
async def test_a_recovery_ends_the_links_of_a_thief_unless_the_user_retains_them(
    scene: SignOnScene, repositories: Repositories, recovery: Recovery, retain: bool
) -> None:
    user, caller = await sign_in_with_password(scene.auth)
    assert isinstance(await scene.link(caller, PASSWORD), SignInLinked)
    thief = await scene.caller()
    outcome = await recovery(scene.auth, user, caller, retain)
    assert isinstance(outcome, PasswordChanged | PasswordReset | UserSessionsEnded)
    assert outcome.ended_sign_ins == (0 if retain else 1)
    assert not await session_still_valid(scene.auth, thief)
    assert len(await scene.identities(user.id)) == (1 if retain else 0)
    logged = [action for action, _ in await actions(repositories, user.id)]
    assert logged == ([LINKED] if retain else [UNLINKED, LINKED])


@pytest.mark.parametrize("recovery", RECOVERIES, ids=lambda each: each.__name__)
async def test_a_recovery_leaves_old_links_and_the_sign_in_that_made_the_account(
    scene: SignOnScene, recovery: Recovery
) -> None:
    user, caller = await sign_in_with_password(scene.auth)
    assert isinstance(await scene.link(caller, PASSWORD), SignInLinked)
    later = scene.auth.now() + DISTRUSTED_LINK_AGE + timedelta(minutes=1)
    old = replace(scene.auth, now=lambda: later)
    await recovery(old, user, caller, False)
    assert len(await scene.identities(user.id)) == 1
    scene.provider.claims["sub"] = secrets.token_hex(8)
    created = await scene.user()
    await end_sessions(scene.auth, created, caller, False)
    assert len(await scene.identities(created.id)) == 1


async def test_a_reset_ends_the_sessions_of_a_link_also_without_an_old_password(
    scene: SignOnScene,
) -> None:
    owner = await scene.caller()
    user = (await scene.auth.repositories.users.find_many([owner.user_id]))[owner.user_id]
    scene.provider.claims["sub"] = secrets.token_hex(8)
    assert isinstance(await scene.link(owner), SignInLinked)
    thief = await scene.caller()
    outcome = await reset_password(scene.auth, user, owner, False)
    assert isinstance(outcome, PasswordReset)
    assert (outcome.ended_sessions, outcome.ended_sign_ins) == (2, 1)
    assert not await session_still_valid(scene.auth, thief)


async def test_a_new_password_of_an_operator_ends_links(scene: SignOnScene) -> None:
    user, caller = await sign_in_with_password(scene.auth)
    assert isinstance(await scene.link(caller, PASSWORD), SignInLinked)
    assert await account_admin.replace_password(scene.auth, user.id, NEW_PASSWORD) is None
    assert await scene.identities(user.id) == []


Ban = Callable[[Auth, User, Caller], Awaitable[object]]


async def ban_by_admin(auth: Auth, user: User, admin: Caller) -> object:
    return await groups_and_bans.ban(auth, admin, user.id, None)


async def ban_by_sync(auth: Auth, user: User, _: Caller) -> object:
    """Ban a user whom a file of all users does not name any more."""
    for rows in ([user.login_name, "stays@slotlock.test"], ["stays@slotlock.test"]):
        file = parse_user_file("\n".join(["email,name", *(f"{row},Ada" for row in rows)]).encode())
        assert isinstance(file, UserFile)
        choices, limit = Choices(), 100
        outcome = await sync_users(
            auth, file, dry_run=False, choices=choices, bans_gone=True, gone_limit=limit
        )
        assert isinstance(outcome, ImportPlan)
    return outcome


@pytest.mark.parametrize("ban", [ban_by_admin, ban_by_sync], ids=lambda each: each.__name__)
async def test_a_ban_ends_links_and_blocks_the_sign_in(
    scene: SignOnScene, repositories: Repositories, ban: Ban
) -> None:
    admin, admin_caller = await sign_in_with_password(scene.auth, Role.ADMIN)
    user, caller = await sign_in_with_password(scene.auth, Role.MEMBER)
    assert isinstance(await scene.link(caller, PASSWORD), SignInLinked)
    thief = await scene.caller()
    await ban(scene.auth, user, admin_caller)
    assert not await session_still_valid(scene.auth, thief)
    scene.provider.claims |= {"email": user.login_name, "email_verified": True}
    assert isinstance(await scene.sign_in(), accounts.Banned)
    assert isinstance(await groups_and_bans.unban(scene.auth, admin_caller, user.id), User)
    by = None if ban is ban_by_sync else admin.id
    assert await actions(repositories, user.id) == [(UNLINKED, by), (LINKED, user.id)]
    assert await scene.identities(user.id) == []


async def test_an_admin_unlinks_even_the_last_sign_in_of_a_user(
    scene: SignOnScene, repositories: Repositories
) -> None:
    admin, admin_caller = await sign_in_with_password(scene.auth, Role.ADMIN)
    caller = await scene.caller()
    (identity,) = await scene.identities(caller.user_id)
    for _ in range(2):
        unlinked = await unlink_sign_in_of(scene.auth, admin_caller, caller.user_id, identity.id)
        assert isinstance(unlinked, UserSignInUnlinked)
    assert not await session_still_valid(scene.auth, caller)
    assert await actions(repositories, caller.user_id) == [(UNLINKED, admin.id)]


async def test_a_user_who_unlinks_leaves_a_note(
    scene: SignOnScene, repositories: Repositories
) -> None:
    user, caller = await sign_in_with_password(scene.auth)
    assert isinstance(await scene.link(caller, PASSWORD), SignInLinked)
    (identity,) = await scene.identities(user.id)
    await unlink_sign_in(scene.auth, caller, identity.id)
    assert await actions(repositories, user.id) == [(UNLINKED, user.id), (LINKED, user.id)]


async def test_an_erasure_leaves_no_subject_in_the_log(
    scene: SignOnScene, repositories: Repositories
) -> None:
    user, caller = await sign_in_with_password(scene.auth)
    assert isinstance(await scene.link(caller, PASSWORD), SignInLinked)
    chosen = AuditFilter(user_id=user.id, actions=frozenset({LINKED}))

    async def subjects() -> list[str | None]:
        page = await repositories.audit_log.page(chosen, 9, None, utc_now())
        return [edit.after for entry in page.items for edit in entry.edits]

    subject = f"{scene.provider.issuer} {scene.provider.claims['sub']}"
    assert await subjects() == [subject]
    await repositories.erasures.erase_account(user.id, None, utc_now())
    await repositories.erasures.erase_details(user.id)
    assert await subjects() == [None]


async def test_the_next_user_of_an_address_does_not_get_the_account_of_the_last_one(
    scene: SignOnScene,
    repositories: Repositories,
) -> None:
    user = await insert_user(scene.auth)
    scene.provider.claims |= {"email": user.login_name, "email_verified": True}
    assert (await scene.user()).id == user.id
    assert await actions(repositories, user.id) == [(LINKED, user.id)]
    scene.provider.claims["sub"] = secrets.token_hex(8)
    assert await scene.sign_in() == LinkRequired(user.login_name)
    assert len(await scene.identities(user.id)) == 1


async def test_an_address_of_an_account_that_a_sign_in_made_is_one_users(
    scene: SignOnScene,
) -> None:
    email = f"{secrets.token_hex(8)}@slotlock.test"
    scene.provider.claims |= {"email": email, "email_verified": True}
    await scene.user()
    scene.provider.claims["sub"] = secrets.token_hex(8)
    assert await scene.sign_in() == LinkRequired(email)
