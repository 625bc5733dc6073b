"""People as clients see them, and what everything that has an id has in common."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.domain.users.user import User as Person
from slotlock.graphql.context import Info
from slotlock.graphql.core.ids import user_global_id
from slotlock.graphql.core.scalars import EmailAddress


@strawberry.interface(description="Anything that can be fetched again by its id.")
class Node:
    id: strawberry.ID = field(description="Opaque, unique among all types.")


@strawberry.type(description="A person with an account.")
class User(Node):
    name: str = field(description="The name they gave, or were imported with.")
    email: EmailAddress | None = field(
        description="Their address; shown to themselves and to organisers, else null."
    )
    role: Role | None = field(
        description="What they may do; shown to themselves and to organisers, else null."
    )
    groups: list[str] | None = field(
        description="The groups they carry, such as a class, in order; shown to themselves and to "
        "organisers, else null."
    )
    has_password: bool | None = field(
        description="Whether they have set a password; shown to themselves and to organisers, else "
        "null."
    )
    banned: bool | None = field(
        description="Whether they may neither sign in nor be booked for; shown to organisers, else "
        "null."
    )
    banned_at: datetime | None = field(description="Since when; shown to organisers.")
    ban_reason: str | None = field(description="Why, if somebody said so; shown to organisers.")

    @classmethod
    def from_domain(cls, user: Person, viewer: Caller | None) -> Self:
        organises = viewer is not None and viewer.is_organizer
        own = viewer is not None and viewer.user_id == user.id
        return cls._build(user, is_self=organises or own, is_organizer=organises)

    @classmethod
    def for_self(cls, user: Person) -> Self:
        """As the person sees themselves."""
        return cls._build(user, is_self=True, is_organizer=user.role is not Role.MEMBER)

    @classmethod
    def _build(cls, user: Person, *, is_self: bool, is_organizer: bool) -> Self:
        return cls(
            id=user_global_id(user.id),
            name=user.name,
            email=EmailAddress(user.email) if is_self else None,
            role=user.role if is_self else None,
            groups=list(user.groups) if is_self else None,
            has_password=user.has_password if is_self else None,
            banned=user.banned if is_organizer else None,
            banned_at=user.banned_at if is_organizer else None,
            ban_reason=user.ban_reason if is_organizer else None,
        )


async def load_user(info: Info, user_id: UserId) -> User | None:
    """A person as the reader may see them."""
    user = await info.context.users.load(user_id)
    return User.from_domain(user, info.context.viewer) if user else None
