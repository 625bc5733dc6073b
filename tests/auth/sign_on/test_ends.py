"""What ends with a sign-in at a provider, and what stays."""

from dataclasses import replace

import pytest

from slotlock.auth import accounts
from slotlock.auth.admin import account_admin
from slotlock.auth.authentication import session_still_valid
from slotlock.auth.container import Auth
from slotlock.auth.sessions import InvalidSession, SignedInSession, refresh_session
from slotlock.auth.sign_on.identities import SignInUnlinked, list_identities, unlink_sign_in
from slotlock.domain.users.user import Role, User
from tests.support.sign_on.scene import SignOnScene
from tests.support.stores.users import RecordedStreams, caller_of, insert_user, new_email

PASSWORD = "correct horse battery"


async def password_session(auth: Auth, user: User) -> SignedInSession:
    """Sign in with the password."""
    session = await accounts.login(auth, user.login_name, PASSWORD)
    assert isinstance(session, SignedInSession)
    return session


@pytest.fixture
async def user(scene: SignOnScene) -> User:
    """Return a member with a password who has also signed in at the provider."""
    member = await insert_user(
        scene.auth, Role.MEMBER, await scene.auth.password_hasher.hash(PASSWORD)
    )
    scene.provider.claims |= {"email": member.login_name, "email_verified": True}
    return await scene.user()


@pytest.mark.parametrize("role", [Role.MEMBER, Role.ORGANIZER])
async def test_a_claim_that_makes_an_admin_ends_the_password(
    scene: SignOnScene, user: User, role: Role
) -> None:
    auth = scene.auth
    if role is not Role.MEMBER:
        await account_admin.set_role(auth, None, user.id, role)
    known = await password_session(auth, user)
    scene.provider.claims |= {"groups": ["head"]}
    async with scene.configured(roles={"head": Role.ADMIN}) as mapped:
        promoted = await mapped.user()
    assert (promoted.id, promoted.role) == (user.id, Role.ADMIN)
    assert not promoted.has_password
    assert not isinstance(await accounts.login(auth, user.login_name, PASSWORD), SignedInSession)
    assert isinstance(await refresh_session(auth, known.refresh_token), InvalidSession)


async def test_unlinking_ends_the_sessions_of_the_sign_in_and_none_of_the_password(
    scene: SignOnScene, user: User
) -> None:
    auth = scene.auth
    of_provider = await scene.caller()
    own, other = [await caller_of(auth, await password_session(auth, user)) for _ in range(2)]
    (linked,) = (await list_identities(auth, [own.user_id]))[own.user_id]
    assert isinstance(await unlink_sign_in(auth, own, linked.id), SignInUnlinked)
    valid = [await session_still_valid(auth, each) for each in (of_provider, own, other)]
    assert valid == [False, True, True]


async def test_a_first_sign_in_that_claims_an_account_ends_its_streams(scene: SignOnScene) -> None:
    email, streams = new_email(), RecordedStreams()
    squatter = await accounts.register(scene.auth, "Eve", email, PASSWORD)
    assert isinstance(squatter, SignedInSession)
    scene.provider.claims |= {"email": email, "email_verified": True}
    claiming = replace(scene, auth=replace(scene.auth, session_streams=streams))
    assert (await claiming.user()).id == squatter.user.id
    assert streams.checked == [squatter.user.id]
