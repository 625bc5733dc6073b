"""Mutations with which organizers manage users: set groups, ban and unban."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.auth import user_admin
from slotlock.domain.users import user
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.refusals import InvalidInput, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.users.refusals import (
    AdminRequired,
    CannotBanSelf,
    UserNotFound,
    present_user_refusal,
)
from slotlock.graphql.users.types import User
from slotlock.services.booking import waitlist

SetGroupsResult = Annotated[
    User | UserNotFound | AdminRequired | InvalidInput,
    strawberry.union("SetGroupsResult", description="The user with the new groups, or a refusal."),
]
BanUserResult = Annotated[
    User | UserNotFound | CannotBanSelf | AdminRequired | InvalidInput,
    strawberry.union("BanUserResult", description="The banned user, or a refusal."),
]
UnbanUserResult = Annotated[
    User | UserNotFound | CannotBanSelf | AdminRequired,
    strawberry.union("UnbanUserResult", description="The unbanned user, or a refusal."),
]


@strawberry.input(description="The new groups of a user.")
class SetGroupsInput:
    user_id: strawberry.ID = field(description="The user to change.")
    groups: list[str] = field(
        description="All groups of the user, replacing the previous ones: at most 20, each a line "
        "of 1 to 50 characters without `,` `;` and `*`."
    )


SetGroupsArgument = Annotated[SetGroupsInput, argument(description="The user and the groups.")]
ReasonArgument = Annotated[
    str | None,
    argument(description="A reason that organizers can read, one line of at most 200 characters."),
]


@strawberry.type
class UserMutations:
    @field(
        description="Replace the groups of a user. Organizers change members and themselves, "
        "admins change everyone.",
        graphql_type=SetGroupsResult,
    )
    async def set_groups(self, info: Info, input: SetGroupsArgument) -> User | Refusal:  # noqa: A002
        organizer = info.context.require_organizer()
        user_id = ids.parse_user_id(input.user_id)
        if user_id is None:
            return UserNotFound.for_id(input.user_id)
        outcome = await user_admin.set_groups(info.context.auth, organizer, user_id, input.groups)
        if isinstance(outcome, user.User):
            return User.from_domain(outcome, organizer)
        return present_user_refusal(outcome, ResultView(organizer))

    @field(
        description="Ban a user. The ban ends their sessions and waiting list entries, and they "
        "can no longer sign in or be booked for; their bookings stay. Banning again replaces the "
        "reason. Organizers can ban members, admins can ban everyone but themselves.",
        graphql_type=BanUserResult,
    )
    async def ban_user(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user to ban.")],
        reason: ReasonArgument = None,
    ) -> User | Refusal:
        organizer = info.context.require_organizer()
        parsed_id = ids.parse_user_id(user_id)
        if parsed_id is None:
            return UserNotFound.for_id(user_id)
        outcome = await user_admin.ban(info.context.auth, organizer, parsed_id, reason)
        if isinstance(outcome, user.User):
            await waitlist.remove_from_all(info.context.services, parsed_id, organizer.user_id)
            return User.from_domain(outcome, organizer)
        return present_user_refusal(outcome, ResultView(organizer))

    @field(
        description="Lift the ban of a user. A user who is not banned does not change. Organizers "
        "can unban members, admins can unban everyone but themselves.",
        graphql_type=UnbanUserResult,
    )
    async def unban_user(
        self,
        info: Info,
        user_id: Annotated[strawberry.ID, argument(description="The user to unban.")],
    ) -> User | Refusal:
        organizer = info.context.require_organizer()
        parsed_id = ids.parse_user_id(user_id)
        if parsed_id is None:
            return UserNotFound.for_id(user_id)
        outcome = await user_admin.unban(info.context.auth, organizer, parsed_id)
        if isinstance(outcome, user.User):
            return User.from_domain(outcome, organizer)
        return present_user_refusal(outcome, ResultView(organizer))
