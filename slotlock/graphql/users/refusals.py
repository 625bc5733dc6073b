"""Refusals about users: unknown, banned, or not the caller's to act on."""

from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals
from slotlock.domain.shared import validation
from slotlock.domain.users import administration, bans
from slotlock.graphql.core.ids import user_global_id
from slotlock.graphql.core.refusals import InvalidInput, Refusal, RefusalCode, RefusalWithoutDetails
from slotlock.graphql.core.result_view import ResultView


@strawberry.type(description="The user does not exist.")
class UserNotFound(Refusal):
    user_id: strawberry.ID = field(description="The id that the request contained.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        """Refuse an id that names no user."""
        return cls(
            code=RefusalCode.USER_NOT_FOUND,
            message="This user does not exist.",
            user_id=strawberry.ID(global_id),
        )

    @classmethod
    def from_domain(cls, outcome: refusals.UserNotFound, _view: ResultView) -> Self:
        """Show that no user has the id."""
        return cls.for_id(user_global_id(outcome.user_id))


@strawberry.type(description="The user is banned. Nobody can book for them.")
class UserBanned(Refusal):
    user_id: strawberry.ID = field(description="The user to book for.")

    @classmethod
    def from_domain(cls, outcome: refusals.UserBanned, _view: ResultView) -> Self:
        """Show that the user is banned."""
        return cls(
            code=RefusalCode.USER_BANNED,
            message="This user is banned. Nobody can book for them.",
            user_id=user_global_id(outcome.user_id),
        )


@strawberry.type(description="Members can book for themselves and for members of their teams only.")
class NotTeammate(Refusal):
    user_id: strawberry.ID = field(description="The user to book for.")

    @classmethod
    def from_domain(cls, outcome: refusals.NotTeammate, _view: ResultView) -> Self:
        """Show that the user is in no team with the caller."""
        return cls(
            code=RefusalCode.NOT_TEAMMATE,
            message="You can book only for yourself and for members of your teams.",
            user_id=user_global_id(outcome.user_id),
        )


@strawberry.type(description="Callers cannot ban or unban their own account.")
class CannotBanSelf(RefusalWithoutDetails):
    CODE = RefusalCode.CANNOT_BAN_SELF
    MESSAGE = "You cannot ban or unban your own account."


@strawberry.type(description="Only admins can change the accounts of organizers and admins.")
class AdminRequired(RefusalWithoutDetails):
    CODE = RefusalCode.ADMIN_REQUIRED
    MESSAGE = "Only an admin can do this to an organizer or an admin."


@strawberry.type(
    description="The user is the last admin, who can neither lose the role nor be erased."
)
class LastAdmin(Refusal):
    @classmethod
    def from_domain(cls, outcome: administration.LastAdmin, view: ResultView) -> Self:
        """Show that the user has to remain an admin."""
        return cls(
            code=RefusalCode.LAST_ADMIN,
            message=view.address(
                outcome.user_id,
                own="You are the last admin. Please make another user an admin first.",
                other="This is the last admin. Please make another user an admin first.",
                neutral="This is the last admin. Please make another user an admin first.",
            ),
        )


@strawberry.type(description="Admins cannot erase their own account.")
class CannotEraseSelf(RefusalWithoutDetails):
    CODE = RefusalCode.CANNOT_ERASE_SELF
    MESSAGE = "You cannot erase your own account. Another admin can."


OnBehalfRefusal = NotTeammate | UserNotFound | UserBanned


def present_user_refusal(
    refusal: refusals.OnBehalfRefusal | bans.BanRefusal | validation.InvalidInput, view: ResultView
) -> Refusal:
    """Show why a user cannot be booked for, banned or changed."""
    match refusal:
        case refusals.UserNotFound():
            return UserNotFound.from_domain(refusal, view)
        case refusals.UserBanned():
            return UserBanned.from_domain(refusal, view)
        case refusals.NotTeammate():
            return NotTeammate.from_domain(refusal, view)
        case bans.CannotBanSelf():
            return CannotBanSelf.create()
        case administration.AdminRequired():
            return AdminRequired.create()
        case validation.InvalidInput():
            return InvalidInput.from_domain(refusal, view)
        case _:
            assert_never(refusal)
