"""People as clients see them, and what everything that has an id has in common."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.people import Caller, Role, UserId
from slotlock.domain.people import User as Person
from slotlock.graphql.context import Info
from slotlock.graphql.ids import user_gid
from slotlock.graphql.scalars import EmailAddress


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
    def of(cls, user: Person, viewer: Caller | None) -> Self:
        organises = viewer is not None and viewer.organises
        own = viewer is not None and viewer.user_id == user.id
        return cls._shown(user, own=organises or own, behind=organises)

    @classmethod
    def in_full(cls, user: Person) -> Self:
        """As the person sees themselves."""
        return cls._shown(user, own=True, behind=user.role is not Role.MEMBER)

    @classmethod
    def _shown(cls, user: Person, *, own: bool, behind: bool) -> Self:
        return cls(
            id=user_gid(user.id),
            name=user.name,
            email=EmailAddress(user.email) if own else None,
            role=user.role if own else None,
            groups=list(user.groups) if own else None,
            has_password=user.has_password if own else None,
            banned=user.banned if behind else None,
            banned_at=user.banned_at if behind else None,
            ban_reason=user.ban_reason if behind else None,
        )


async def load_user(info: Info, user_id: UserId) -> User | None:
    """A person as the reader may see them."""
    user = await info.context.users.load(user_id)
    return User.of(user, info.context.reader) if user else None
