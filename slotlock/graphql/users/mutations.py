"""What organisers do with people: give them groups, ban and unban them."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.auth import user_admin
from slotlock.domain.users.user import User
from slotlock.graphql.booking.refusals import UserNotFound
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.users import results
from slotlock.graphql.users.results import BanUserResult, SetGroupsResult, UnbanUserResult
from slotlock.services.booking import waitlist


@strawberry.input(description="Who carries which groups from now on.")
class SetGroupsInput:
    user_id: strawberry.ID = field(description="The person.")
    groups: list[str] = field(
        description="All groups of theirs: at most 20, each a line of 1 to 50 characters without "
        "`,` `;` and `*`."
    )


UserIdArgument = Annotated[strawberry.ID, argument(description="The person.")]


@strawberry.type
class UserMutations:
    @field(description="Let a person carry these groups and no others. Organisers only.")
    async def set_groups(
        self,
        info: Info,
        input: Annotated[SetGroupsInput, argument(description="Who, what.")],  # noqa: A002
    ) -> SetGroupsResult:
        organiser, user_id = info.context.require_organizer, ids.parse_user_id(input.user_id)
        if user_id is None:
            return UserNotFound.for_id(input.user_id)
        return results.to_set_groups_result(
            await user_admin.set_groups(info.context.auth, organiser, user_id, input.groups),
            organiser,
        )

    @field(
        description="Keep a person out: they are signed out, neither sign in nor are booked for, "
        "and leave all waiting lists; their bookings stay. Banned again, they get the new reason. "
        "Organisers only, and for organisers and admins admins only."
    )
    async def ban_user(
        self,
        info: Info,
        user_id: UserIdArgument,
        reason: Annotated[
            str | None,
            argument(description="Why, for organisers; a line of at most 200 characters."),
        ] = None,
    ) -> BanUserResult:
        organiser, found = info.context.require_organizer, ids.parse_user_id(user_id)
        if found is None:
            return UserNotFound.for_id(user_id)
        outcome = await user_admin.ban(info.context.auth, organiser, found, reason)
        if isinstance(outcome, User):
            await waitlist.remove_from_all(info.context.services, found, organiser.user_id)
        return results.to_ban_user_result(outcome, organiser)

    @field(
        description="Let a person in again; one who is not banned stays as they are. Organisers "
        "only, and for organisers and admins admins only."
    )
    async def unban_user(self, info: Info, user_id: UserIdArgument) -> UnbanUserResult:
        organiser, found = info.context.require_organizer, ids.parse_user_id(user_id)
        if found is None:
            return UserNotFound.for_id(user_id)
        return results.to_unban_user_result(
            await user_admin.unban(info.context.auth, organiser, found), organiser
        )
