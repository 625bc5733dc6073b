"""What users sign in with at providers: list it, and unlink it."""

from collections.abc import Sequence
from datetime import datetime

from slotlock.auth.accounts import limited_notices
from slotlock.auth.container import Auth
from slotlock.auth.tokens import hash_token
from slotlock.domain.booking.booking_refusals import UserNotFound
from slotlock.domain.notifications.mail_kinds import SIGN_IN_UNLINKED
from slotlock.domain.shared.declare import outcome, refusal, shown
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, User, UserId


@outcome
class SignInUnlinked:
    """The caller cannot sign in with the account at the provider any more."""

    user: User = shown("The caller.")


@outcome
class UserSignInUnlinked:
    """The user cannot sign in with the account at the provider any more."""

    user: User = shown("The user, who may have no other way to sign in.")


@refusal(message="This is the only way to sign in to your account. Please set a password first.")
class LastSignIn:
    """Without it, the caller could not sign in any more."""


UnlinkSignInOutcome = SignInUnlinked | LastSignIn
UnlinkUserSignInOutcome = UserSignInUnlinked | UserNotFound


@value_object
class IdentityInfo:
    """An identity as its user sees it."""

    id: str
    provider_id: str | None
    email: str | None
    linked_at: datetime | None


async def list_identities(
    auth: Auth, user_ids: Sequence[UserId]
) -> dict[UserId, list[IdentityInfo]]:
    """Return what users sign in with at providers."""
    providers = auth.sign_on.providers if auth.sign_on else []
    ids = {each.issuer: each.id for each in providers}
    found = await auth.repositories.identities.find_many(user_ids)
    return {
        user_id: [
            IdentityInfo(
                identity_id_of(linked.identity.key),
                ids.get(linked.identity.issuer),
                linked.email,
                linked.linked_at,
            )
            for linked in of_user
        ]
        for user_id, of_user in found.items()
    }


async def unlink_sign_in(auth: Auth, caller: Caller, identity_id: str) -> UnlinkSignInOutcome:
    """End that the caller signs in with an identity; one that they do not have changes nothing."""
    user = (await auth.repositories.users.find_many([caller.user_id]))[caller.user_id]
    may_be_last = user.has_password and auth.accepts_password(user)
    if not await _unlink(auth, caller, user, identity_id, may_be_last=may_be_last):
        return LastSignIn()
    return SignInUnlinked(user)


async def unlink_sign_in_of(
    auth: Auth, caller: Caller, user_id: UserId, identity_id: str
) -> UnlinkUserSignInOutcome:
    """End that another user signs in with an identity, even if it is their last one. For admins.

    An identity that the user does not have changes nothing.
    """
    user = (await auth.repositories.users.find_many([user_id])).get(user_id)
    if user is None or user.erased:
        return UserNotFound(user_id)
    await _unlink(auth, caller, user, identity_id, may_be_last=True)
    return UserSignInUnlinked(user)


async def _unlink(
    auth: Auth, caller: Caller, user: User, identity_id: str, *, may_be_last: bool
) -> bool:
    repository = auth.repositories.identities
    names = {each.issuer: each.name for each in auth.sign_on.providers} if auth.sign_on else {}
    for linked in await repository.find_all(user.id):
        identity = linked.identity
        if identity_id_of(identity.key) == identity_id:
            data = {"provider": names.get(identity.issuer, identity.issuer)}
            mails = await limited_notices(auth, SIGN_IN_UNLINKED, user, data=data)
            if not await repository.unlink(
                user.id, identity, caller, auth.now(), may_be_last=may_be_last, mails=mails
            ):
                return False
            auth.session_streams.session_changed(user.id)
    return True


def identity_id_of(key: str) -> str:
    """Return the id of an identity for clients, which does not show what it is at the provider."""
    return hash_token(key)[:32]
