"""Whose account a sign-in at a provider opens, and what it changes there."""

import secrets
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from pymongo.asynchronous.collection import AsyncCollection

from slotlock.auth import accounts, invitations
from slotlock.auth.accounts import Banned, PasswordSignInOff, RegistrationClosed
from slotlock.auth.admin import account_admin
from slotlock.auth.admin.user_import import import_users
from slotlock.auth.authentication import session_still_valid
from slotlock.auth.container import Auth
from slotlock.auth.invitations import create_password_reset, set_password
from slotlock.auth.sessions import InvalidSession, SignedInSession, refresh_session
from slotlock.auth.sign_on.back_channel import end_provider_session
from slotlock.auth.sign_on.id_tokens import LOGOUT_EVENT
from slotlock.auth.sign_on.identities import (
    LastSignIn,
    SignInUnlinked,
    unlink_sign_in,
    unlink_sign_in_of,
)
from slotlock.auth.sign_on.sign_in_outcomes import LinkRequired, SignInLinked, SignInTaken
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mongo.outbox.outbox_repository import OutboxFilter
from slotlock.infrastructure.mongo.users import identities
from slotlock.infrastructure.mongo.users.identities import IdentityRepository
from tests.support.clients.user_files import CLAIM_ALL
from tests.support.sign_on.lying_provider import LyingProvider
from tests.support.sign_on.scene import SignOnScene
from tests.support.stores.cheap_hashes import NO_PASSWORD
from tests.support.stores.users import RecordedStreams, caller_of, insert_user, new_email

PASSWORD = "correct horse battery"


async def register(auth: Auth, email: str) -> SignedInSession:
    session = await accounts.register(auth, "Eve", email, PASSWORD)
    assert isinstance(session, SignedInSession)
    return session


def claim(provider: LyingProvider, email: str, **claims: object) -> str:
    """Let the provider say that the user has a verified address."""
    provider.claims |= {"email": email, "email_verified": True, **claims}
    return email


@pytest.mark.parametrize("verified", [False, None, "true", 1])
async def test_an_address_that_is_not_verified_takes_no_account_over(
    scene: SignOnScene, verified: object
) -> None:
    user = await insert_user(scene.auth)
    claim(scene.provider, user.login_name, email_verified=verified)
    assert await scene.sign_in() == LinkRequired(user.login_name)
    async with scene.configured(trusted_email=True) as trusting:
        assert (await trusting.user()).id == user.id


@pytest.mark.parametrize("role", list(Role))
async def test_an_address_is_no_proof_that_is_good_enough_for_staff(
    scene: SignOnScene, role: Role
) -> None:
    user = await insert_user(scene.auth, role)
    claim(scene.provider, user.login_name)
    outcome = await scene.sign_in()
    assert isinstance(outcome, SignedInSession if role is Role.MEMBER else LinkRequired)


async def test_staff_link_a_sign_in_with_their_password(scene: SignOnScene) -> None:
    password_hash = await scene.auth.password_hasher.hash(PASSWORD)
    user = await insert_user(scene.auth, Role.ADMIN, password_hash)
    claim(scene.provider, user.login_name)
    session = await accounts.login(scene.auth, user.login_name, PASSWORD)
    assert isinstance(session, SignedInSession)
    linked = await scene.link(await caller_of(scene.auth, session), PASSWORD)
    changed = replace(user, email_verified=True, signs_in_at_provider=True)
    assert linked == SignInLinked(changed)
    assert (await scene.user()).id == user.id


async def test_linking_a_sign_in_ends_no_session_and_no_password(scene: SignOnScene) -> None:
    session = await register(scene.auth, claim(scene.provider, new_email()))
    caller = await caller_of(scene.auth, session)
    linked = await scene.link(caller, PASSWORD)
    assert isinstance(linked, SignInLinked)
    assert linked.user.has_password
    assert linked.user.email_verified
    assert not linked.user.self_registered
    assert await session_still_valid(scene.auth, caller)


async def test_a_link_with_the_password_that_makes_an_admin_leaves_the_password(
    scene: SignOnScene,
) -> None:
    session = await register(scene.auth, claim(scene.provider, new_email(), groups=["head"]))
    caller = await caller_of(scene.auth, session)
    async with scene.configured(roles={"head": Role.ADMIN}) as mapped:
        linked = await mapped.link(caller, PASSWORD)
    assert isinstance(linked, SignInLinked)
    assert (linked.user.role, linked.user.has_password) == (Role.ADMIN, True)


async def kinds_of_mails(auth: Auth, user_id: UserId) -> list[str]:
    """Return the kinds of the mails that wait for a user."""
    waiting = await auth.repositories.outbox.page(OutboxFilter(user_id=user_id), 9, None)
    return [entry.kind for entry in waiting.items]


async def test_a_mail_says_that_a_sign_in_was_linked(scene: SignOnScene) -> None:
    mailing = replace(scene, auth=replace(scene.auth, sends_mail=True))
    linking = await register(mailing.auth, new_email())
    caller = await caller_of(mailing.auth, linking)
    assert isinstance(await mailing.link(caller, PASSWORD), SignInLinked)
    assert await kinds_of_mails(mailing.auth, caller.user_id) == ["sign_in_linked"]
    member, imported = await insert_user(mailing.auth), new_email()
    await import_users(mailing.auth, f"email\n{imported}".encode(), dry_run=False)
    registered = new_email()
    await register(mailing.auth, registered)  # it is claimed: nobody has shown whose it is
    for email, expected in (
        (member.login_name, ["sign_in_linked"]),
        (imported, []),
        (registered, []),
    ):
        claim(scene.provider, email, sub=secrets.token_hex(8))
        user = await mailing.user()
        await mailing.user()  # the second sign-in is no news
        assert await kinds_of_mails(mailing.auth, user.id) == expected


async def test_a_mail_says_that_a_sign_in_was_unlinked(scene: SignOnScene) -> None:
    mailing = replace(scene, auth=replace(scene.auth, sends_mail=True))
    admin = await insert_user(mailing.auth, Role.ADMIN)
    admin_caller = Caller(admin.id, Role.ADMIN, "session", admin.created_at)
    own = await caller_of(mailing.auth, await register(mailing.auth, new_email()))
    expected = list[str]()
    for unlink in (
        partial(unlink_sign_in, mailing.auth, own),
        partial(unlink_sign_in_of, mailing.auth, admin_caller, own.user_id),
    ):
        assert isinstance(await mailing.link(own, PASSWORD), SignInLinked)
        (identity,) = await mailing.identities(own.user_id)
        for _ in range(2):  # the second time, nothing is unlinked
            await unlink(identity.id)
        expected += ["sign_in_linked", "sign_in_unlinked"]
        assert sorted(await kinds_of_mails(mailing.auth, own.user_id)) == sorted(expected)


async def test_a_sign_in_belongs_to_one_account(scene: SignOnScene) -> None:
    await scene.user()
    other = await register(scene.auth, new_email())
    caller = await caller_of(scene.auth, other)
    assert await scene.link(caller, PASSWORD) == SignInTaken()
    assert await scene.identities(caller.user_id) == []


async def test_nobody_can_squat_the_address_of_another_user(scene: SignOnScene) -> None:
    auth, email = scene.auth, claim(scene.provider, new_email())
    squatter = await register(auth, email)
    user = await scene.user()
    assert user.id == squatter.user.id
    assert not user.has_password
    assert not user.self_registered
    assert user.email_verified
    assert isinstance(await refresh_session(auth, squatter.refresh_token), InvalidSession)
    assert not isinstance(await accounts.login(auth, email, PASSWORD), SignedInSession)


async def test_nobody_can_squat_an_address_from_a_provider(scene: SignOnScene) -> None:
    email = claim(scene.provider, new_email(), email_verified=False)
    squatter = await scene.user()
    assert squatter.self_registered
    squatting = dict(scene.provider.claims)
    claim(scene.provider, email, sub=secrets.token_hex(8))
    owner = await scene.user()
    assert owner.id == squatter.id
    scene.provider.claims = squatting
    assert await scene.sign_in() == LinkRequired(email)


async def test_an_imported_user_is_claimed_with_its_groups(scene: SignOnScene) -> None:
    email = claim(scene.provider, new_email(), groups=["class-5b"])
    await import_users(scene.auth, f"email,name,groups\n{email},Ada,choir".encode(), dry_run=False)
    async with scene.configured(groups={"class-5b": "5b"}) as mapped:
        user = await mapped.user()
    assert (user.name, user.groups) == ("Ada", ("5b", "choir"))
    assert (
        await scene.auth.repositories.invitations.find_invitable("choir", list(Role), 9, None) == []
    )


async def test_another_password_ends_the_sign_in_of_a_squatter(scene: SignOnScene) -> None:
    email = claim(scene.provider, new_email(), email_verified=False)
    caller = await scene.caller()
    squatter = await scene.user()
    reset = await create_password_reset(scene.auth, squatter)
    assert reset is not None
    assert isinstance(await set_password(scene.auth, reset.token, PASSWORD), SignedInSession)
    assert not await session_still_valid(scene.auth, caller)
    assert await scene.sign_in() == LinkRequired(email)


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_a_sign_in_that_is_linked_during_a_claim_is_no_way_in(
    scene: SignOnScene, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    """Without the check of the session, it is one: the control of this test."""
    email, original = new_email(), IdentityRepository.link
    session = await register(scene.auth, email)
    caller = await caller_of(scene.auth, session)
    claim(scene.provider, email, email_verified=False)

    async def link(
        self: IdentityRepository, *given: Any, session_id: str | None = None, **options: Any
    ) -> User | None:
        file = f"email\n{email}".encode()
        await import_users(scene.auth, file, dry_run=False, choices=CLAIM_ALL)
        return await original(
            self, *given, session_id=session_id if is_guarded else None, **options
        )

    monkeypatch.setattr(IdentityRepository, "link", link)
    await scene.link(caller, PASSWORD)
    linked = await scene.auth.repositories.identities.find_all(session.user.id)
    assert bool(linked) is not is_guarded


async def test_an_import_with_a_claim_ends_the_sign_in_of_a_squatter(scene: SignOnScene) -> None:
    email = claim(scene.provider, new_email(), email_verified=False)
    caller = await scene.caller()
    await import_users(scene.auth, f"email\n{email}".encode(), dry_run=False, choices=CLAIM_ALL)
    assert not await session_still_valid(scene.auth, caller)
    assert await scene.sign_in() == LinkRequired(email)


async def test_a_banned_user_is_refused(scene: SignOnScene) -> None:
    user = await scene.user()
    await scene.auth.repositories.bans.ban(user, user.id, None, scene.auth.now())
    assert await scene.sign_in() == Banned()


async def test_unknown_users_get_no_account_if_the_provider_creates_none(
    scene: SignOnScene,
) -> None:
    async with scene.configured(create_accounts=False) as closed:
        assert await closed.sign_in() == RegistrationClosed()
        user = await insert_user(scene.auth)
        claim(scene.provider, user.login_name)
        assert (await closed.user()).id == user.id


@pytest.mark.parametrize("taken", [False, True])
async def test_a_user_without_an_address_gets_a_user_name(scene: SignOnScene, taken: bool) -> None:
    name = f"ada.{secrets.token_hex(4)}"
    if taken:
        users = scene.auth.repositories.users
        await users.insert("Other", name, Role.MEMBER, NO_PASSWORD, scene.auth.now())
    scene.provider.claims |= {"preferred_username": name}
    user = await scene.user()
    assert user.email is None
    assert (user.login_name == name) is not taken
    assert (await scene.user()).id == user.id


async def test_claims_that_the_token_lacks_come_from_the_provider_apart(
    scene: SignOnScene,
) -> None:
    email = new_email()
    more = {"email": email, "email_verified": True}
    scene.provider.user_info = {"sub": scene.provider.claims["sub"], **more}
    user = await scene.user()
    assert (user.email, user.email_verified) == (email, True)


async def test_groups_that_the_provider_leaves_out_stay(
    scene: SignOnScene, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene.configured(groups={"a": "5a", "b": "5b"}) as mapped:
        scene.provider.claims |= {"groups": ["a", "b", 7]}
        assert (await mapped.user()).groups == ("5a", "5b")
        scene.provider.claims |= {"groups": None, "_claim_names": {"groups": "src1"}}
        assert (await mapped.user()).groups == ("5a", "5b")
        assert caplog.text.count("left out the claim groups") == 1
        scene.provider.claims |= {"_claim_names": None}
        assert (await mapped.user()).groups == ()


async def test_a_role_follows_a_claim_only_if_the_settings_name_its_value(
    scene: SignOnScene,
) -> None:
    scene.provider.claims |= {"groups": ["admin", "teachers"], "role": "admin", "roles": ["admin"]}
    assert (await scene.user()).role is Role.MEMBER
    async with scene.configured(roles={"teachers": Role.ORGANIZER}) as mapped:
        assert (await mapped.user()).role is Role.ORGANIZER
        scene.provider.claims |= {"groups": []}
        assert (await mapped.user()).role is Role.MEMBER


async def test_a_role_that_the_settings_do_not_name_stays(scene: SignOnScene) -> None:
    claim(scene.provider, new_email())
    user = await scene.user()
    await account_admin.set_role(scene.auth, None, user.id, Role.ORGANIZER)
    async with scene.configured(roles={"head": Role.ADMIN}) as mapped:
        assert (await mapped.user()).role is Role.ORGANIZER


async def test_a_role_that_a_user_with_guardians_does_not_get_is_in_the_log(
    scene: SignOnScene, caplog: pytest.LogCaptureFixture
) -> None:
    claim(scene.provider, new_email(), groups=["teachers"])
    auth, child, guardian = scene.auth, await scene.user(), await insert_user(scene.auth)
    admin = Caller(guardian.id, Role.ADMIN, "session", guardian.created_at)
    async with scene.configured(roles={"teachers": Role.ORGANIZER}) as mapped:
        for guardians, role in (((guardian.id,), Role.MEMBER), ((), Role.ORGANIZER)):
            await account_admin.update_user(auth, admin, child.id, None, None, guardians=guardians)
            caplog.clear()
            assert (await mapped.user()).role is role
            said = f"the role of {child.id} stays member: the user has guardians"
            assert (said in caplog.messages) is bool(guardians)


async def test_who_knows_the_password_of_an_account_does_not_get_the_role_that_a_claim_gives(
    scene: SignOnScene,
) -> None:
    auth = scene.auth
    user = await insert_user(auth, Role.MEMBER, await auth.password_hasher.hash(PASSWORD))
    known = await accounts.login(auth, user.login_name, PASSWORD)
    assert isinstance(known, SignedInSession)
    claim(scene.provider, user.login_name)
    scene.provider.claims |= {"groups": ["teachers"]}
    async with scene.configured(roles={"teachers": Role.ADMIN}) as mapped:
        promoted = await mapped.user()
    assert (promoted.id, promoted.role) == (user.id, Role.ADMIN)
    assert not promoted.has_password
    assert not isinstance(await accounts.login(auth, user.login_name, PASSWORD), SignedInSession)
    assert isinstance(await refresh_session(auth, known.refresh_token), InvalidSession)


async def test_the_last_way_to_sign_in_cannot_be_unlinked(scene: SignOnScene) -> None:
    auth, caller = scene.auth, await scene.caller()
    other_session = await scene.caller()
    (first,) = await scene.identities(caller.user_id)
    assert (first.provider_id, first.email) == ("school", None)
    assert await unlink_sign_in(auth, caller, first.id) == LastSignIn()
    scene.provider.claims["sub"] = secrets.token_hex(8)
    assert isinstance(await scene.link(caller), SignInLinked)
    assert isinstance(await unlink_sign_in(auth, caller, first.id), SignInUnlinked)
    assert isinstance(await unlink_sign_in(auth, caller, first.id), SignInUnlinked)
    assert await session_still_valid(auth, caller)
    assert not await session_still_valid(auth, other_session)
    assert len(await scene.identities(caller.user_id)) == 1


async def test_a_password_that_must_not_be_used_is_no_other_way_to_sign_in(
    scene: SignOnScene,
) -> None:
    auth = scene.auth
    user = await insert_user(auth, Role.MEMBER, await auth.password_hasher.hash(PASSWORD))
    claim(scene.provider, user.login_name)
    caller = await scene.caller()
    (own,) = await scene.identities(user.id)
    closed = replace(auth, password_sign_in=False)
    assert await unlink_sign_in(closed, caller, own.id) == LastSignIn()
    assert isinstance(await unlink_sign_in(auth, caller, own.id), SignInUnlinked)


@pytest.mark.parametrize("role", list(Role))
async def test_members_have_no_password_if_the_settings_say_so(
    scene: SignOnScene, role: Role
) -> None:
    auth = replace(scene.auth, password_sign_in=False)
    user = await insert_user(auth, role, await auth.password_hasher.hash(PASSWORD))
    is_member = role is Role.MEMBER
    outcome = await accounts.login(auth, user.login_name, PASSWORD)
    assert isinstance(outcome, PasswordSignInOff if is_member else SignedInSession)
    reset = await invitations.create_password_reset(auth, user)
    assert reset is not None
    outcome_of_reset = await invitations.set_password(auth, reset.token, "another horse battery")
    assert isinstance(outcome_of_reset, PasswordSignInOff if is_member else SignedInSession)
    registered = await accounts.register(auth, "Eve", new_email(), PASSWORD)
    assert isinstance(registered, RegistrationClosed)


async def logout_token(scene: SignOnScene, **claims: object) -> bool:
    """Let the provider send a logout token. Return whether it was accepted."""
    assert scene.auth.sign_on is not None
    connection = scene.auth.sign_on.find("school")
    assert connection is not None
    honest: dict[str, object] = {"jti": secrets.token_hex(8), "events": {LOGOUT_EVENT: {}}}
    all_claims = scene.provider.honest_claims(**honest | claims)
    token = scene.provider.sign({k: v for k, v in all_claims.items() if v is not None})
    accepted = await end_provider_session(scene.auth, connection, token)
    if accepted:
        assert not await end_provider_session(scene.auth, connection, token)
    return accepted


@pytest.mark.parametrize("names", [("sub",), ("sid",), ("sub", "sid")])
async def test_a_sign_out_at_the_provider_ends_its_sessions_here(
    scene: SignOnScene, names: tuple[str, ...]
) -> None:
    scene.provider.claims["sid"] = secrets.token_hex(8)
    claims = dict(scene.provider.claims)
    caller, streams = await scene.caller(), RecordedStreams()
    scene.provider.claims["sid"] = secrets.token_hex(8)
    same_user = await scene.caller()
    recorded = replace(scene, auth=replace(scene.auth, session_streams=streams))
    assert await logout_token(recorded, **{name: claims[name] for name in names})
    assert streams.checked == [caller.user_id]
    assert not await session_still_valid(scene.auth, caller)
    assert await session_still_valid(scene.auth, same_user) is ("sid" in names)


@pytest.mark.parametrize(
    "claims",
    [
        {"events": {}},
        {"events": {LOGOUT_EVENT: None}},
        {"events": [LOGOUT_EVENT]},
        {"events": None},
        {"nonce": "n"},
        {"jti": None},
        {"sub": None},
        {"exp": None},
        {"aud": "another client"},
        {"iss": "https://elsewhere.example"},
        {"iat": 0},
    ],
    ids=str,
)
async def test_a_wrong_logout_token_ends_nothing(
    scene: SignOnScene, claims: dict[str, object]
) -> None:
    caller = await scene.caller()
    assert not await logout_token(scene, **{"sub": scene.provider.claims["sub"], **claims})
    assert await session_still_valid(scene.auth, caller)


@pytest.mark.parametrize("is_guarded", [True, False], ids=["guarded", "control"])
async def test_a_logout_token_can_be_sent_again_if_the_server_ended_no_session(
    scene: SignOnScene, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    """If it counts as used before its sessions end, it cannot: the control of this test."""
    caller = await scene.caller()
    sent = {"sub": scene.provider.claims["sub"], "jti": secrets.token_hex(8)}
    with monkeypatch.context() as patch:

        async def die(*_: object, **__: object) -> None:
            raise ConnectionAbortedError

        patch.setattr(AsyncCollection, "delete_many", die)
        if not is_guarded:
            patch.setattr(identities, "in_transaction", without_transaction)
        with pytest.raises(ConnectionAbortedError):
            await logout_token(scene, **sent)
    assert await session_still_valid(scene.auth, caller)
    assert await logout_token(scene, **sent) is is_guarded
    assert await session_still_valid(scene.auth, caller) is not is_guarded


async def without_transaction(_: object, write: Any) -> object:
    """Write each step by itself."""
    return await write(None)


async def test_a_session_with_a_password_survives_the_sign_out_at_the_provider(
    scene: SignOnScene,
) -> None:
    session = await register(scene.auth, new_email())
    caller = await caller_of(scene.auth, session)
    assert isinstance(await scene.link(caller, PASSWORD), SignInLinked)
    assert await logout_token(scene, sub=scene.provider.claims["sub"])
    assert await session_still_valid(scene.auth, caller)
