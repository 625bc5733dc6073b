"""What users sign in with at providers: list it, and unlink it."""

from datetime import datetime

from slotlock.auth.container import Auth
from slotlock.auth.tokens import hash_token
from slotlock.domain.shared.declare import outcome, refusal, shown
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, User


@outcome
class SignInUnlinked:
    """The caller cannot sign in with the account at the provider any more."""

    user: User = shown("The caller.")


@refusal(message="This is the only way to sign in to your account. Please set a password first.")
class LastSignIn:
    """Without it, the caller could not sign in any more."""


UnlinkSignInOutcome = SignInUnlinked | LastSignIn


@value_object
class IdentityInfo:
    """An identity as its user sees it."""

    id: str
    provider_id: str | None
    email: str | None
    linked_at: datetime | None


async def list_identities(auth: Auth, caller: Caller) -> list[IdentityInfo]:
    """Return what the caller signs in with at providers."""
    providers = auth.sign_on.providers if auth.sign_on else []
    ids = {each.issuer: each.id for each in providers}
    return [
        IdentityInfo(
            identity_id_of(linked.identity.key),
            ids.get(linked.identity.issuer),
            linked.email,
            linked.linked_at,
        )
        for linked in await auth.repositories.identities.find_all(caller.user_id)
    ]


async def unlink_sign_in(auth: Auth, caller: Caller, identity_id: str) -> UnlinkSignInOutcome:
    """End that the caller signs in with an identity; one that they do not have changes nothing."""
    repository = auth.repositories.identities
    user = (await auth.repositories.users.find_many([caller.user_id]))[caller.user_id]
    for linked in await repository.find_all(caller.user_id):
        if identity_id_of(linked.identity.key) == identity_id:
            has_other_way = user.has_password and auth.accepts_password(user)
            if not await repository.unlink(
                caller.user_id, linked.identity, caller.session_id, has_other_way=has_other_way
            ):
                return LastSignIn()
            auth.session_streams.session_changed(caller.user_id)
    return SignInUnlinked(user)


def identity_id_of(key: str) -> str:
    """Return the id of an identity for clients, which does not show what it is at the provider."""
    return hash_token(key)[:32]
