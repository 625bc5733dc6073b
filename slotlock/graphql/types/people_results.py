"""What came of what organisers do with people, as they are told it."""

from typing import Annotated, Self, assert_never

import strawberry

from slotlock.domain import banning
from slotlock.domain import people as domain
from slotlock.domain import refusals as refused
from slotlock.domain.people import Caller
from slotlock.graphql.ids import user_global_id
from slotlock.graphql.types.booking_refusals import UserNotFound
from slotlock.graphql.types.people import User
from slotlock.graphql.types.refusals import InvalidInput, Refusal, RefusalCode


@strawberry.type(description="Nobody bans or unbans themselves.")
class CannotBanSelf(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        return cls(code=RefusalCode.CANNOT_BAN_SELF, message="Nobody can ban or unban themselves.")


@strawberry.type(description="Organisers and admins are banned and unbanned by admins only.")
class AdminRequired(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        return cls(
            code=RefusalCode.ADMIN_REQUIRED,
            message="Only an admin can ban or unban an organiser or an admin.",
        )


SetGroupsResult = Annotated[
    User | UserNotFound | InvalidInput,
    strawberry.union("SetGroupsResult", description="What came of giving somebody groups."),
]
BanUserResult = Annotated[
    User | UserNotFound | CannotBanSelf | AdminRequired | InvalidInput,
    strawberry.union("BanUserResult", description="What came of banning somebody."),
]
UnbanUserResult = Annotated[
    User | UserNotFound | CannotBanSelf | AdminRequired,
    strawberry.union("UnbanUserResult", description="What came of unbanning somebody."),
]

UnbanOutcome = domain.User | refused.UserNotFound | banning.BanRefusal


def to_set_groups_result(
    outcome: domain.User | refused.UserNotFound | refused.InvalidInput, viewer: Caller
) -> SetGroupsResult:
    """What giving somebody groups answers."""
    match outcome:
        case domain.User():
            return User.from_domain(outcome, viewer)
        case refused.UserNotFound():
            return UserNotFound.for_id(user_global_id(outcome.user_id))
        case refused.InvalidInput():
            return InvalidInput.from_domain(outcome)
        case _:
            assert_never(outcome)


def to_ban_user_result(
    outcome: UnbanOutcome | refused.InvalidInput, viewer: Caller
) -> BanUserResult:
    """What banning answers."""
    if isinstance(outcome, refused.InvalidInput):
        return InvalidInput.from_domain(outcome)
    return to_unban_user_result(outcome, viewer)


def to_unban_user_result(outcome: UnbanOutcome, viewer: Caller) -> UnbanUserResult:
    """What unbanning answers."""
    match outcome:
        case domain.User():
            return User.from_domain(outcome, viewer)
        case refused.UserNotFound():
            return UserNotFound.for_id(user_global_id(outcome.user_id))
        case banning.CannotBanSelf():
            return CannotBanSelf.from_domain()
        case banning.AdminRequired():
            return AdminRequired.from_domain()
        case _:
            assert_never(outcome)
