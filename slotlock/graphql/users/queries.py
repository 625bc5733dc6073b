"""Queries with which users read their own account and organizers find users."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.auth import user_admin
from slotlock.domain.shared.text import strip_blanks
from slotlock.domain.users import user
from slotlock.domain.users.groups import clean_groups, validate_group
from slotlock.graphql.context import Info
from slotlock.graphql.core.connections import (
    DEFAULT_FIRST,
    After,
    Connection,
    First,
    require_valid_first,
)
from slotlock.graphql.core.cursors import decode_name, encode_cursor
from slotlock.graphql.core.errors import bad_input
from slotlock.graphql.users.types import User

USERS_CURSOR = "users"
MAX_SEARCH_LENGTH = 200

UserConnection = Connection[User]


@strawberry.input(description="The users to find. A field that is left out matches every user.")
class UserFilter:
    text: str | None = field(
        default=None,
        description="Words or prefixes of words that all occur in the name or the e-mail address. "
        "Capitals, accents and variants of characters do not matter. Of scripts without "
        "blanks, such as Chinese or Thai, and of Korean, any part of the text counts as a word.",
    )
    group: str | None = field(default=None, description="Only users of this group.")
    banned: bool | None = field(default=None, description="Only users who are or are not banned.")
    without_password: bool | None = field(
        default=None, description="Only users without a password, or only users with one."
    )

    def to_domain(self) -> user.UserFilter:
        """Convert the filter to the domain's. Errors: BAD_USER_INPUT."""
        text = strip_blanks(self.text or "")
        group = require_valid_group(self.group)
        if len(text) > MAX_SEARCH_LENGTH:
            raise bad_input("text", f"`text` has at most {MAX_SEARCH_LENGTH} characters.")
        return user.UserFilter(text or None, group, self.banned, self.without_password)


UserFilterArgument = Annotated[UserFilter | None, argument(description="The users to find.")]


@strawberry.type
class UserQueries:
    @field(description="The account of the caller, or null for an anonymous client.")
    async def me(self, info: Info) -> User | None:
        caller = info.context.optional_caller
        found = await info.context.loaders.user(caller.user_id) if caller else None
        return User.for_self(found) if found else None

    @field(description="The users that match a filter, by e-mail address. Organizers only.")
    async def users(
        self,
        info: Info,
        filter: UserFilterArgument = None,  # noqa: A002
        first: First = DEFAULT_FIRST,
        after: After = None,
    ) -> UserConnection:
        organizer = info.context.require_organizer()
        page = await user_admin.list_users(
            info.context.auth,
            (filter or UserFilter()).to_domain(),
            require_valid_first(first),
            decode_email(USERS_CURSOR, after),
        )
        items = [
            (encode_cursor(USERS_CURSOR, found.email), User.from_domain(found, organizer))
            for found in page.items
        ]
        return UserConnection.from_items(items, has_more=page.has_more, after=after)


def decode_email(list_name: str, cursor: str | None) -> str | None:
    """Return the e-mail address that a cursor encodes. Errors: BAD_USER_INPUT."""
    email = decode_name(list_name, cursor)
    if email is not None and "@" not in email:
        raise bad_input("after", "The cursor does not belong to this list.")
    return email


def require_valid_group(text: str | None) -> str | None:
    """Return the group in its stored form, or None for no group. Errors: BAD_USER_INPUT."""
    group = next(iter(clean_groups([text or ""])), None)
    if group and (problem := validate_group(group)):
        raise bad_input("group", f"`group`: {problem}")
    return group
