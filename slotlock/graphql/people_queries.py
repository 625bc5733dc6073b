"""What organisers can read of people: all of them, and those they search for."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Annotated

import orjson
import strawberry
from strawberry import argument, field

from slotlock.auth import people
from slotlock.domain.groups import group_problem, normalised
from slotlock.domain.people import PeopleFilter as Wanted
from slotlock.domain.texts import line_problem
from slotlock.graphql.context import Info
from slotlock.graphql.errors import Code, RefusedError
from slotlock.graphql.types.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    First,
    checked_first,
)
from slotlock.graphql.types.people import User

MAX_TEXT = 200
# The longest address there is (RFC 5321, 4.5.3.1), and as much again.
MAX_ADDRESS = 640

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
        group = next(iter(normalised([self.group or ""])), None)
        if len(text) > MAX_TEXT:
            raise RefusedError(Code.BAD_USER_INPUT, f"`text` has at most {MAX_TEXT} characters.")
        if group and (problem := group_problem(group)):
            raise RefusedError(Code.BAD_USER_INPUT, f"`group`: {problem}")
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
            info.context.auth, wanted, checked_first(first), _address_of(after)
        )
        items = [(_cursor(user.email), User.of(user, organiser)) for user in page.items]
        return UserConnection.of(items, more=page.more, after=after)


def _cursor(email: str) -> str:
    return urlsafe_b64encode(orjson.dumps([email])).decode()


def _address_of(cursor: str | None) -> str | None:
    """The address that a cursor stands for. Errors: BAD_USER_INPUT."""
    if cursor is None:
        return None
    try:
        (email,) = orjson.loads(urlsafe_b64decode(cursor.encode("ascii")))
        if isinstance(email, str) and "@" in email and not line_problem(email, MAX_ADDRESS):
            return email
    except (ValueError, TypeError, binascii.Error):
        pass
    raise RefusedError(Code.BAD_USER_INPUT, "This cursor is not one of ours.")
