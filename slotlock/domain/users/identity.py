"""Who a user is at a provider of sign-ins (OpenID Connect)."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from slotlock.domain.shared.value_object import value_object

# A new proof of who the user is ends the links of this time: a thief may have made them.
DISTRUSTED_LINK_AGE = timedelta(days=30)
# At most 255 ASCII characters (OpenID Connect Core, 2).
_SUBJECT = re.compile(r"[!-~]{1,255}", re.ASCII)
# What a spreadsheet makes of a subject with many digits.
_ROUNDED = re.compile(r"\d+([.,]\d+)?E\+\d+", re.ASCII)


@value_object
class Identity:
    """A user of a provider. Only the two together name one (OpenID Connect Core, 2)."""

    issuer: str
    subject: str

    @property
    def key(self) -> str:
        """Both as one text: an issuer is a URL, and has no blank."""
        return f"{self.issuer} {self.subject}"

    @classmethod
    def of_key(cls, key: str) -> "Identity":
        """Return the identity of a key."""
        issuer, _, subject = key.partition(" ")
        return cls(issuer, subject)


@value_object
class LinkedIdentity:
    """An identity with which a user signs in, and the address that the provider gave last.

    `linked_at` is None until the first sign-in, if an import named the identity.
    """

    identity: Identity
    email: str | None
    linked_at: datetime | None

    def bars_others_of(self, issuer: str, *, is_claimed: bool) -> bool:
        """Return whether no other subject of an issuer gets the account by its address.

        An account that is claimed loses its identities, but not one that an import named.
        """
        return self.identity.issuer == issuer and (self.linked_at is None or not is_claimed)


def parse_subject(text: str, issuers: Mapping[str, str]) -> Identity | None:
    """Return the identity that `<provider id>:<subject>` names; None if it is invalid.

    `issuers` has the issuer of each provider by its id. Without a colon, the text is a subject of
    the only provider.
    """
    provider_id, colon, subject = text.partition(":")
    if not colon and len(issuers) == 1:
        (provider_id,), subject = issuers, text
    issuer = issuers.get(provider_id)
    if issuer is None or not _SUBJECT.fullmatch(subject) or _ROUNDED.fullmatch(subject):
        return None
    return Identity(issuer, subject)


def managed_groups(
    groups: Iterable[str], mapping: Mapping[str, str], values: Iterable[str]
) -> tuple[str, ...]:
    """Return the groups of a user for whom a provider claims these values.

    Only the groups that the mapping names change.
    """
    claimed = {mapping[value] for value in values if value in mapping}
    return tuple(sorted(claimed | set(groups).difference(mapping.values())))
