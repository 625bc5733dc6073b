"""Users as clients see them."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.users import user
from slotlock.domain.users.user import Caller, UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core.enums import Role
from slotlock.graphql.core.ids import user_global_id
from slotlock.graphql.core.node import Node, selected_names
from slotlock.graphql.core.scalars import EmailAddress

# What the reference to a user tells without reading the user.
REFERENCE_FIELDS = frozenset({"id", "__typename"})


@strawberry.type(description="A user account.")
class User(Node):
    name: str = field(description="The name that the user entered or was imported with.")
    email: EmailAddress | None = field(
        description="The e-mail address. Only the user and organizers see it; null for others."
    )
    role: Role | None = field(
        description="The rights of the user. Only the user and organizers see them; null for "
        "others."
    )
    groups: list[str] | None = field(
        description="The groups of the user, such as a class, in alphabetical order. Only the user "
        "and organizers see them; null for others."
    )
    has_password: bool | None = field(
        description="Whether the user has set a password. Only the user and organizers see it; "
        "null for others."
    )
    erased: bool = field(
        description="Whether the account was erased. `name` is a placeholder then, and past "
        "bookings refer to the user without a name."
    )
    banned: bool | None = field(
        description="Whether the user is banned: they cannot sign in or be booked for. Only "
        "organizers see it; null for others."
    )
    banned_at: datetime | None = field(
        description="When the user was banned. Only organizers see it; null for others."
    )
    ban_reason: str | None = field(
        description="Why the user was banned, if a reason was given. Only organizers see it; null "
        "for others."
    )

    @classmethod
    def from_domain(cls, user: user.User, viewer: Caller | None) -> Self:
        """Show a user to a viewer."""
        return cls._build(
            user,
            is_self=viewer is not None and viewer.user_id == user.id,
            is_organizer=viewer is not None and viewer.is_organizer,
        )

    @classmethod
    def for_reference(cls, user_id: UserId) -> Self:
        """Show a user of whom only the id is selected. The other attributes are missing."""
        reference = cls.__new__(cls)
        reference.id = user_global_id(user_id)
        return reference

    @classmethod
    def for_self(cls, user: user.User) -> Self:
        """Show a user to themselves."""
        return cls._build(user, is_self=True, is_organizer=user.role.is_organizer)

    @classmethod
    def _build(cls, user: user.User, *, is_self: bool, is_organizer: bool) -> Self:
        sees_account = is_self or is_organizer
        return cls(
            id=user_global_id(user.id),
            name=user.name,
            email=EmailAddress(user.email) if sees_account and not user.erased else None,
            role=user.role if sees_account else None,
            groups=list(user.groups) if sees_account else None,
            has_password=user.has_password if sees_account else None,
            erased=user.erased,
            banned=user.banned if is_organizer else None,
            banned_at=user.banned_at if is_organizer else None,
            ban_reason=user.ban_reason if is_organizer else None,
        )


async def load_user(info: Info, user_id: UserId) -> User | None:
    """Load a user as the viewer may see them."""
    user = await info.context.loaders.user(user_id)
    return User.from_domain(user, info.context.viewer) if user else None


async def load_referenced_user(info: Info, user_id: UserId) -> User | None:
    """Load a user to whom stored data refers, and who therefore exists, unless the id is enough."""
    if selected_names(info._raw_info) <= REFERENCE_FIELDS:
        return User.for_reference(user_id)
    return await load_user(info, user_id)
