"""What came of what organisers do with people, as they are told it."""

from typing import Annotated, Self, assert_never

import strawberry

from slotlock.domain import banning
from slotlock.domain import people as domain
from slotlock.domain import refusals as refused
from slotlock.domain.people import Caller
from slotlock.graphql.ids import user_gid
from slotlock.graphql.types.booking_refusals import PersonNotFound
from slotlock.graphql.types.people import User
from slotlock.graphql.types.refusals import InvalidInput, Refusal, RefusalCode


@strawberry.type(description="Nobody bans or unbans themselves.")
class NotOneself(Refusal):
    @classmethod
    def of(cls) -> Self:
        return cls(code=RefusalCode.NOT_ONESELF, message="Nobody can ban or unban themselves.")


@strawberry.type(description="Organisers and admins are banned and unbanned by admins only.")
class AdminsOnly(Refusal):
    @classmethod
    def of(cls) -> Self:
        return cls(
            code=RefusalCode.ADMINS_ONLY,
            message="Only an admin can ban or unban an organiser or an admin.",
        )


SetGroupsResult = Annotated[
    User | PersonNotFound | InvalidInput,
    strawberry.union("SetGroupsResult", description="What came of giving somebody groups."),
]
BanPersonResult = Annotated[
    User | PersonNotFound | NotOneself | AdminsOnly | InvalidInput,
    strawberry.union("BanPersonResult", description="What came of banning somebody."),
]
UnbanPersonResult = Annotated[
    User | PersonNotFound | NotOneself | AdminsOnly,
    strawberry.union("UnbanPersonResult", description="What came of unbanning somebody."),
]

UnbanOutcome = domain.User | refused.PersonNotFound | banning.BanRefusal


def grouped(
    outcome: domain.User | refused.PersonNotFound | refused.InvalidInput, caller: Caller
) -> SetGroupsResult:
    """What giving somebody groups answers."""
    match outcome:
        case domain.User():
            return User.of(outcome, caller)
        case refused.PersonNotFound():
            return PersonNotFound.of(user_gid(outcome.user_id))
        case refused.InvalidInput():
            return InvalidInput.of(outcome)
        case _:
            assert_never(outcome)


def banned(outcome: UnbanOutcome | refused.InvalidInput, caller: Caller) -> BanPersonResult:
    """What banning answers."""
    if isinstance(outcome, refused.InvalidInput):
        return InvalidInput.of(outcome)
    return unbanned(outcome, caller)


def unbanned(outcome: UnbanOutcome, caller: Caller) -> UnbanPersonResult:
    """What unbanning answers."""
    match outcome:
        case domain.User():
            return User.of(outcome, caller)
        case refused.PersonNotFound():
            return PersonNotFound.of(user_gid(outcome.user_id))
        case banning.NotOneself():
            return NotOneself.of()
        case banning.AdminsOnly():
            return AdminsOnly.of()
        case _:
            assert_never(outcome)
