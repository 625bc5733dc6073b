"""Refusals about teams and their invitations."""

from typing import Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals
from slotlock.domain.shared import validation
from slotlock.domain.teams import outcomes
from slotlock.domain.teams.team import (
    MAX_INVITATIONS_PER_ADDRESS,
    MAX_TEAM_SIZE,
    MAX_TEAMS_PER_USER,
)
from slotlock.graphql.core.ids import team_global_id
from slotlock.graphql.core.refusals import (
    InvalidInput,
    KeyReused,
    Refusal,
    RefusalCode,
    RefusalWithoutDetails,
)
from slotlock.graphql.core.result_view import ResultView


@strawberry.type(description="The team does not exist, or the caller is not a member.")
class TeamNotFound(Refusal):
    team_id: strawberry.ID = field(description="The id that the request contained.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        """Refuse an id that names no team of the caller."""
        return cls(
            code=RefusalCode.TEAM_NOT_FOUND,
            message="This team does not exist.",
            team_id=strawberry.ID(global_id),
        )

    @classmethod
    def from_domain(cls, outcome: outcomes.TeamNotFound, _view: ResultView) -> Self:
        """Show that the caller is in no team of this id."""
        return cls.for_id(team_global_id(outcome.team_id))


@strawberry.type(description="The team has the maximum number of members and open invitations.")
class TeamFull(RefusalWithoutDetails):
    CODE = RefusalCode.TEAM_FULL
    MESSAGE = f"A team can have at most {MAX_TEAM_SIZE} members and open invitations."


@strawberry.type(description="The invited user is already a member of the team.")
class AlreadyMember(Refusal):
    @classmethod
    def from_domain(cls, outcome: outcomes.AlreadyMember, view: ResultView) -> Self:
        """Show that the invited user is a member."""
        return cls(
            code=RefusalCode.ALREADY_MEMBER,
            message=view.address(
                outcome.user_id,
                own="You are already a member of this team.",
                other="This user is already a member of the team.",
                neutral="This user is already a member of the team.",
            ),
        )


@strawberry.type(description="The invitation does not exist or is no longer open.")
class NotInvited(RefusalWithoutDetails):
    CODE = RefusalCode.NOT_INVITED
    MESSAGE = "This invitation is no longer open."


@strawberry.type(description="The caller is a member of the maximum number of teams.")
class TooManyTeams(RefusalWithoutDetails):
    CODE = RefusalCode.TOO_MANY_TEAMS
    MESSAGE = f"You are already in {MAX_TEAMS_PER_USER} teams. Please leave one first."


@strawberry.type(description="The e-mail address has the maximum number of open invitations.")
class TooManyInvitations(RefusalWithoutDetails):
    CODE = RefusalCode.TOO_MANY_INVITATIONS
    MESSAGE = f"This address already has {MAX_INVITATIONS_PER_ADDRESS} open invitations."


@strawberry.type(description="Too many requests are changing the team at once.")
class TeamBusy(Refusal):
    retry_after_ms: int = field(description="How long to wait before a retry, in milliseconds.")

    @classmethod
    def from_domain(cls, outcome: outcomes.TeamBusy, _view: ResultView) -> Self:
        """Show when a retry may succeed."""
        return cls(
            code=RefusalCode.TEAM_BUSY,
            message="Others are changing this team right now. Please try again.",
            retry_after_ms=outcome.retry_after_ms,
        )


def present_team_refusal(
    refusal: outcomes.TeamNotFound
    | outcomes.TeamFull
    | outcomes.AlreadyMember
    | outcomes.NotInvited
    | outcomes.TooManyTeams
    | outcomes.TooManyInvitations
    | outcomes.TeamBusy
    | refusals.KeyReused
    | validation.InvalidInput,
    view: ResultView,
) -> Refusal:
    """Show why a team or an invitation did not change."""
    match refusal:
        case outcomes.TeamNotFound():
            return TeamNotFound.from_domain(refusal, view)
        case outcomes.TeamFull():
            return TeamFull.create()
        case outcomes.AlreadyMember():
            return AlreadyMember.from_domain(refusal, view)
        case outcomes.NotInvited():
            return NotInvited.create()
        case outcomes.TooManyTeams():
            return TooManyTeams.create()
        case outcomes.TooManyInvitations():
            return TooManyInvitations.create()
        case outcomes.TeamBusy():
            return TeamBusy.from_domain(refusal, view)
        case refusals.KeyReused():
            return KeyReused.from_domain(refusal, view)
        case validation.InvalidInput():
            return InvalidInput.from_domain(refusal, view)
        case _:
            assert_never(refusal)
