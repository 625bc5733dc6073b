"""A provider of sign-ins (OpenID Connect) as its settings describe it."""

from collections.abc import Mapping
from dataclasses import field

from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Role


@value_object
class Provider:
    """A provider of sign-ins, as its settings describe it.

    `groups` and `roles` map values of the claim `groups_claim`. The groups that they name follow
    the claim at each sign-in. `trusted_email` says that the provider verifies each address.
    """

    id: str
    name: str
    issuer: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    algorithms: tuple[str, ...] = ("RS256",)
    trusted_email: bool = False
    create_accounts: bool = True
    redirect_uris: tuple[str, ...] = ()
    groups_claim: str = "groups"
    groups: Mapping[str, str] = field(default_factory=dict)
    roles: Mapping[str, Role] = field(default_factory=dict)

    @property
    def maps_values(self) -> bool:
        """Whether groups or roles follow a claim."""
        return bool(self.groups or self.roles)
