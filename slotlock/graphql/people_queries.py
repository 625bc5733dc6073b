"""What organisers can read of people: all of them, and those they search for."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.auth import people
from slotlock.domain.groups import group_problem, normalised
from slotlock.domain.people import PeopleFilter as Wanted
from slotlock.graphql.context import Info
from slotlock.graphql.cursors import name_of, sealed
from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.types.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    First,
    checked_first,
)
from slotlock.graphql.types.people import User

PEOPLE = "people"
MAX_TEXT = 200

UserConnection = Connection[User]


@strawberry.input(description="Which people; a field that is left out asks for nothing.")
class PeopleFilter:
    text: str | None = field(
        default=None,
        description="Words, or beginnings of words, that are all in the name or the address.",
    )
    group: str | None = field(default=None, description="A group that they carry.")
    banned: bool | None = field(default=None, description="Whether they are banned.")
    without_password: bool | None = field(
        default=None, description="Whether they have never set a password."
    )

    def as_domain(self) -> Wanted:
        """The same as the store knows it. Errors: BAD_USER_INPUT."""
        text = (self.text or "").strip()
        group = checked_group(self.group)
        if len(text) > MAX_TEXT:
            raise RefusedError(Code.BAD_USER_INPUT, f"`text` has at most {MAX_TEXT} characters.")
        return Wanted(text or None, group, self.banned, self.without_password)


@strawberry.type
class PeopleQueries:
    @field(description="People that match a filter, by address. Organisers only.")
    async def people(
        self,
        info: Info,
        filter: Annotated[  # noqa: A002
            PeopleFilter | None, argument(description="Which people.")
        ] = None,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> UserConnection:
        organiser = info.context.organiser
        wanted = (filter or PeopleFilter()).as_domain()
        page = await people.list_people(
            info.context.auth, wanted, checked_first(first), address_of(PEOPLE, after)
        )
        items = [(sealed(PEOPLE, user.email), User.of(user, organiser)) for user in page.items]
        return UserConnection.of(items, more=page.more, after=after)


def address_of(of: str, cursor: str | None) -> str | None:
    """The address that a cursor stands for. Errors: BAD_USER_INPUT."""
    address = name_of(of, cursor)
    if address is not None and "@" not in address:
        raise RefusedError(Code.BAD_USER_INPUT, "This cursor is not one of ours.")
    return address


def checked_group(text: str | None) -> str | None:
    """The group as it is kept, or None for none. Errors: BAD_USER_INPUT."""
    group = next(iter(normalised([text or ""])), None)
    if group and (problem := group_problem(group)):
        raise RefusedError(Code.BAD_USER_INPUT, f"`group`: {problem}")
    return group
