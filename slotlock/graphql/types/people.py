"""People as clients see them, and what everything that has an id has in common."""

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
    name: str = field(description="The name they gave.")
    email: EmailAddress | None = field(
        description="Their address; shown to themselves and to organisers, else null."
    )
    role: Role | None = field(
        description="What they may do; shown to themselves and to organisers, else null."
    )

    @classmethod
    def of(cls, user: Person, viewer: Caller | None) -> Self:
        shown = viewer is not None and (viewer.organises or viewer.user_id == user.id)
        return cls(
            id=user_gid(user.id),
            name=user.name,
            email=EmailAddress(user.email) if shown else None,
            role=user.role if shown else None,
        )

    @classmethod
    def in_full(cls, user: Person) -> Self:
        """As the person sees themselves."""
        email = EmailAddress(user.email)
        return cls(id=user_gid(user.id), name=user.name, email=email, role=user.role)


async def load_user(info: Info, user_id: UserId) -> User | None:
    """A person as the reader may see them."""
    user = await info.context.users.load(user_id)
    return User.of(user, info.context.reader) if user else None
