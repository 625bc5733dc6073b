"""What the claims of a provider say about a user."""

import logging
from collections.abc import Mapping
from typing import Any

from slotlock.auth.providers.provider import Provider
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.email_addresses import normalize_email, normalize_username
from slotlock.domain.users.identity import Identity
from slotlock.domain.users.user import MAX_USER_NAME_LENGTH, Role, validate_user_name

log = logging.getLogger("slotlock.auth")


@value_object
class UserClaims:
    """A user as the provider describes them. `values` is None if it does not say the groups."""

    identity: Identity
    name: str
    email: str | None
    email_verified: bool
    username: str | None
    values: frozenset[str] | None
    provider_session: str | None


def read_claims(
    provider: Provider, id_token: Mapping[str, Any], user_info: Mapping[str, Any]
) -> UserClaims:
    """Return the user of verified claims; those of the ID token come first.

    What says that an address is verified speaks of the address beside it, and of no other one.
    """
    claims = {**user_info, **{name: each for name, each in id_token.items() if each is not None}}
    identity = Identity(provider.issuer, str(id_token["sub"]))
    of_email = id_token if _text(id_token, "email") else user_info
    email = normalize_email(_text(of_email, "email"))
    username = normalize_username(_text(claims, "preferred_username"))
    session_id = id_token.get("sid")
    return UserClaims(
        identity,
        _name(claims) or (email or username or identity.subject).partition("@")[0],
        email,
        # Some providers send the text "true", and some send it for each address.
        email is not None and (of_email.get("email_verified") is True or provider.trusted_email),
        username,
        _values(provider, claims),
        f"{provider.issuer} {session_id}" if isinstance(session_id, str) else None,
    )


def role_of(provider: Provider, values: frozenset[str], current: Role) -> Role:
    """Return the role of a user for whom a provider claims these values.

    Only the roles that the settings name change: one of them ends when no value names it.
    """
    claimed = {provider.roles[value] for value in values if value in provider.roles}
    for role in (Role.ADMIN, Role.ORGANIZER):
        if role in claimed:
            return role
    return Role.MEMBER if current in provider.roles.values() else current


def _name(claims: Mapping[str, Any]) -> str:
    parts = f"{_text(claims, 'given_name')} {_text(claims, 'family_name')}"
    for text in (_text(claims, "name"), parts):
        name = normalize_line(text)[:MAX_USER_NAME_LENGTH]
        if validate_user_name(name) is None:
            return name
    return ""


def _values(provider: Provider, claims: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the values of the claim with the groups; None if the provider left them out."""
    name = provider.groups_claim
    values = claims.get(name)
    left_out = claims.get("_claim_names")
    if claims.get("hasgroups") or (isinstance(left_out, dict) and name in left_out):
        # Entra does so for a user of more than 200 groups.
        log.warning(
            "%s left out the claim %s of a user, who keeps the groups: send fewer groups",
            provider.id,
            name,
        )
        return None
    if isinstance(values, str):
        return frozenset([values])
    values = values if isinstance(values, list) else []
    return frozenset(value for value in values if isinstance(value, str))


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""
