"""What came of asking for a team, as clients are told it."""

from typing import Annotated, assert_never

import strawberry
from strawberry import field

from slotlock.domain import refusals as refused
from slotlock.domain import team_outcomes as outcomes
from slotlock.graphql import ids
from slotlock.graphql.types.refusals import InvalidInput
from slotlock.graphql.types.team_refusals import (
    AlreadyMember,
    NotInvited,
    TeamBusy,
    TeamFull,
    TeamNotFound,
    TooManyInvitations,
    TooManyTeams,
)
from slotlock.graphql.types.teams import Team


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
        case refused.InvalidInput():
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
        case refused.InvalidInput():
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
