"""What organisers can read of people: all of them, and those they search for."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.auth import user_admin
from slotlock.domain.users.groups import clean_groups, validate_group
from slotlock.domain.users.user import UserFilter as Wanted
from slotlock.graphql.context import Info
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    First,
    require_valid_first,
)
from slotlock.graphql.core.cursors import decode_name, encode_cursor
from slotlock.graphql.core.errors import ErrorCode, GraphQLRequestError
from slotlock.graphql.users.types import User

USERS_CURSOR = "people"
MAX_SEARCH_TEXT = 200

UserConnection = Connection[User]


@strawberry.input(description="Which people; a field that is left out asks for nothing.")
class UserFilter:
    text: str | None = field(
        default=None,
        description="Words, or beginnings of words, that are all in the name or the address.",
    )
    group: str | None = field(default=None, description="A group that they carry.")
    banned: bool | None = field(default=None, description="Whether they are banned.")
    without_password: bool | None = field(
        default=None, description="Whether they have never set a password."
    )

    def to_domain(self) -> Wanted:
        """The same as the store knows it. Errors: BAD_USER_INPUT."""
        text = (self.text or "").strip()
        group = require_valid_group(self.group)
        if len(text) > MAX_SEARCH_TEXT:
            raise GraphQLRequestError(
                ErrorCode.BAD_USER_INPUT, f"`text` has at most {MAX_SEARCH_TEXT} characters."
            )
        return Wanted(text or None, group, self.banned, self.without_password)


@strawberry.type
class UserQueries:
    @field(description="People that match a filter, by address. Organisers only.")
    async def users(
        self,
        info: Info,
        filter: Annotated[  # noqa: A002
            UserFilter | None, argument(description="Which people.")
        ] = None,
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> UserConnection:
        organiser = info.context.require_organizer
        wanted = (filter or UserFilter()).to_domain()
        page = await user_admin.list_users(
            info.context.auth, wanted, require_valid_first(first), decode_email(USERS_CURSOR, after)
        )
        items = [
            (encode_cursor(USERS_CURSOR, user.email), User.from_domain(user, organiser))
            for user in page.items
        ]
        return UserConnection.from_items(items, has_more=page.has_more, after=after)


def decode_email(list_name: str, cursor: str | None) -> str | None:
    """The address that a cursor stands for. Errors: BAD_USER_INPUT."""
    address = decode_name(list_name, cursor)
    if address is not None and "@" not in address:
        raise GraphQLRequestError(ErrorCode.BAD_USER_INPUT, "This cursor is not one of ours.")
    return address


def require_valid_group(text: str | None) -> str | None:
    """The group as it is kept, or None for none. Errors: BAD_USER_INPUT."""
    group = next(iter(clean_groups([text or ""])), None)
    if group and (problem := validate_group(group)):
        raise GraphQLRequestError(ErrorCode.BAD_USER_INPUT, f"`group`: {problem}")
    return group
