"""What came of asking for a team, as clients are told it."""

from typing import Annotated, Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.shared import validation
from slotlock.domain.teams import outcomes
from slotlock.domain.teams.team import (
    MAX_INVITATIONS_PER_ADDRESS,
    MAX_TEAM_SIZE,
    MAX_TEAMS_PER_USER,
)
from slotlock.graphql.core import ids
from slotlock.graphql.core.refusals import InvalidInput, Refusal, RefusalCode
from slotlock.graphql.teams.types import Team


@strawberry.type(description="No such team, or none that the caller is in.")
class TeamNotFound(Refusal):
    team_id: strawberry.ID = field(description="The id that was asked for.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        return cls(
            code=RefusalCode.TEAM_NOT_FOUND,
            message="There is no such team.",
            team_id=strawberry.ID(global_id),
        )


@strawberry.type(description="The team has as many members and open invitations as there may be.")
class TeamFull(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        message = f"A team has at most {MAX_TEAM_SIZE} members and open invitations."
        return cls(code=RefusalCode.TEAM_FULL, message=message)


@strawberry.type(description="Who is invited is in the team already.")
class AlreadyMember(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        return cls(code=RefusalCode.ALREADY_MEMBER, message="They are in this team already.")


@strawberry.type(description="There is no such open invitation.")
class NotInvited(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        return cls(code=RefusalCode.NOT_INVITED, message="There is no such invitation any more.")


@strawberry.type(description="The caller is in as many teams as a person may be.")
class TooManyTeams(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        message = f"You are in {MAX_TEAMS_PER_USER} teams. Please leave one first."
        return cls(code=RefusalCode.TOO_MANY_TEAMS, message=message)


@strawberry.type(description="The address has as many open invitations as an address may have.")
class TooManyInvitations(Refusal):
    @classmethod
    def from_domain(cls) -> Self:
        message = (
            f"This address has {MAX_INVITATIONS_PER_ADDRESS} invitations that are not answered."
        )
        return cls(code=RefusalCode.TOO_MANY_INVITATIONS, message=message)


@strawberry.type(description="Too many people are changing this at once.")
class TeamBusy(Refusal):
    retry_after_ms: int = field(description="Asking again is worth it after this many ms.")

    @classmethod
    def from_domain(cls, outcome: outcomes.TeamBusy) -> Self:
        return cls(
            code=RefusalCode.TEAM_BUSY,
            message="Others are changing this team right now. Please try again.",
            retry_after_ms=outcome.retry_after_ms,
        )


@strawberry.type(description="The caller turned an invitation down.")
class InvitationDeclined:
    team_id: strawberry.ID = field(description="The team.")


@strawberry.type(description="The caller is no longer in a team; bookings stay as they are.")
class TeamLeft:
    team_id: strawberry.ID = field(description="The team.")


CreateTeamResult = Annotated[
    Team | InvalidInput | TooManyTeams | TeamBusy,
    strawberry.union("CreateTeamResult", description="What came of creating a team."),
]
InviteToTeamResult = Annotated[
    Team | TeamNotFound | InvalidInput | AlreadyMember | TeamFull | TooManyInvitations | TeamBusy,
    strawberry.union("InviteToTeamResult", description="What came of inviting."),
]
AcceptTeamInvitationResult = Annotated[
    Team | NotInvited | TooManyTeams | TeamBusy,
    strawberry.union("AcceptTeamInvitationResult", description="What came of accepting."),
]
DeclineTeamInvitationResult = Annotated[
    InvitationDeclined | NotInvited | TeamBusy,
    strawberry.union("DeclineTeamInvitationResult", description="What came of declining."),
]
WithdrawTeamInvitationResult = Annotated[
    Team | TeamNotFound | NotInvited | TeamBusy,
    strawberry.union("WithdrawTeamInvitationResult", description="What came of withdrawing."),
]
LeaveTeamResult = Annotated[
    TeamLeft | TeamNotFound | TeamBusy,
    strawberry.union("LeaveTeamResult", description="What came of leaving."),
]


def to_create_team_result(outcome: outcomes.CreateTeamOutcome) -> CreateTeamResult:
    """What creating a team answers."""
    match outcome:
        case outcomes.TeamSaved():
            return Team.from_domain(outcome.team)
        case validation.InvalidInput():
            return InvalidInput.from_domain(outcome)
        case outcomes.TooManyTeams():
            return TooManyTeams.from_domain()
        case outcomes.TeamBusy():
            return TeamBusy.from_domain(outcome)
        case _:
            assert_never(outcome)


def to_invite_result(outcome: outcomes.InviteToTeamOutcome) -> InviteToTeamResult:
    """What inviting answers."""
    match outcome:
        case outcomes.TeamSaved():
            return Team.from_domain(outcome.team)
        case outcomes.TeamNotFound():
            return TeamNotFound.for_id(ids.team_global_id(outcome.team_id))
        case validation.InvalidInput():
            return InvalidInput.from_domain(outcome)
        case outcomes.AlreadyMember():
            return AlreadyMember.from_domain()
        case outcomes.TeamFull():
            return TeamFull.from_domain()
        case outcomes.TooManyInvitations():
            return TooManyInvitations.from_domain()
        case outcomes.TeamBusy():
            return TeamBusy.from_domain(outcome)
        case _:
            assert_never(outcome)


def to_accept_result(outcome: outcomes.AcceptInvitationOutcome) -> AcceptTeamInvitationResult:
    """What accepting answers."""
    match outcome:
        case outcomes.TeamSaved():
            return Team.from_domain(outcome.team)
        case outcomes.NotInvited():
            return NotInvited.from_domain()
        case outcomes.TooManyTeams():
            return TooManyTeams.from_domain()
        case outcomes.TeamBusy():
            return TeamBusy.from_domain(outcome)
        case _:
            assert_never(outcome)


def to_decline_result(outcome: outcomes.DeclineInvitationOutcome) -> DeclineTeamInvitationResult:
    """What declining answers."""
    match outcome:
        case outcomes.InvitationDeclined():
            return InvitationDeclined(team_id=ids.team_global_id(outcome.team_id))
        case outcomes.NotInvited():
            return NotInvited.from_domain()
        case outcomes.TeamBusy():
            return TeamBusy.from_domain(outcome)
        case _:
            assert_never(outcome)


def to_withdraw_result(outcome: outcomes.WithdrawInvitationOutcome) -> WithdrawTeamInvitationResult:
    """What withdrawing an invitation answers."""
    match outcome:
        case outcomes.TeamSaved():
            return Team.from_domain(outcome.team)
        case outcomes.TeamNotFound():
            return TeamNotFound.for_id(ids.team_global_id(outcome.team_id))
        case outcomes.NotInvited():
            return NotInvited.from_domain()
        case outcomes.TeamBusy():
            return TeamBusy.from_domain(outcome)
        case _:
            assert_never(outcome)


def to_leave_team_result(outcome: outcomes.LeaveTeamOutcome) -> LeaveTeamResult:
    """What leaving answers."""
    match outcome:
        case outcomes.TeamLeft():
            return TeamLeft(team_id=ids.team_global_id(outcome.team_id))
        case outcomes.TeamNotFound():
            return TeamNotFound.for_id(ids.team_global_id(outcome.team_id))
        case outcomes.TeamBusy():
            return TeamBusy.from_domain(outcome)
        case _:
            assert_never(outcome)
