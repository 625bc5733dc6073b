"""What came of what organisers do with people, as they are told it."""

from typing import Annotated, Self, assert_never

import strawberry

from slotlock.domain.booking import refusals
from slotlock.domain.shared import validation
from slotlock.domain.users import bans, user
from slotlock.domain.users.user import Caller
from slotlock.graphql.booking.refusals import UserNotFound
from slotlock.graphql.core.ids import user_global_id
from slotlock.graphql.core.refusals import InvalidInput, Refusal, RefusalCode
from slotlock.graphql.users.types import User


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

UnbanOutcome = user.User | refusals.UserNotFound | bans.BanRefusal


def to_set_groups_result(
    outcome: user.User | refusals.UserNotFound | validation.InvalidInput, viewer: Caller
) -> SetGroupsResult:
    """What giving somebody groups answers."""
    match outcome:
        case user.User():
            return User.from_domain(outcome, viewer)
        case refusals.UserNotFound():
            return UserNotFound.for_id(user_global_id(outcome.user_id))
        case validation.InvalidInput():
            return InvalidInput.from_domain(outcome)
        case _:
            assert_never(outcome)


def to_ban_user_result(
    outcome: UnbanOutcome | validation.InvalidInput, viewer: Caller
) -> BanUserResult:
    """What banning answers."""
    if isinstance(outcome, validation.InvalidInput):
        return InvalidInput.from_domain(outcome)
    return to_unban_user_result(outcome, viewer)


def to_unban_user_result(outcome: UnbanOutcome, viewer: Caller) -> UnbanUserResult:
    """What unbanning answers."""
    match outcome:
        case user.User():
            return User.from_domain(outcome, viewer)
        case refusals.UserNotFound():
            return UserNotFound.for_id(user_global_id(outcome.user_id))
        case bans.CannotBanSelf():
            return CannotBanSelf.from_domain()
        case bans.AdminRequired():
            return AdminRequired.from_domain()
        case _:
            assert_never(outcome)
