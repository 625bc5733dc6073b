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


def created(outcome: outcomes.CreateTeamOutcome) -> CreateTeamResult:
    """What creating a team answers."""
    match outcome:
        case outcomes.TeamKept():
            return Team.of(outcome.team)
        case refused.InvalidInput():
            return InvalidInput.of(outcome)
        case outcomes.TooManyTeams():
            return TooManyTeams.of()
        case outcomes.TeamBusy():
            return TeamBusy.of(outcome)
        case _:
            assert_never(outcome)


def invited(outcome: outcomes.InviteOutcome) -> InviteToTeamResult:
    """What inviting answers."""
    match outcome:
        case outcomes.TeamKept():
            return Team.of(outcome.team)
        case outcomes.TeamNotFound():
            return TeamNotFound.of(ids.team_gid(outcome.team_id))
        case refused.InvalidInput():
            return InvalidInput.of(outcome)
        case outcomes.AlreadyMember():
            return AlreadyMember.of()
        case outcomes.TeamFull():
            return TeamFull.of()
        case outcomes.TooManyInvitations():
            return TooManyInvitations.of()
        case outcomes.TeamBusy():
            return TeamBusy.of(outcome)
        case _:
            assert_never(outcome)


def accepted(outcome: outcomes.AcceptOutcome) -> AcceptTeamInvitationResult:
    """What accepting answers."""
    match outcome:
        case outcomes.TeamKept():
            return Team.of(outcome.team)
        case outcomes.NotInvited():
            return NotInvited.of()
        case outcomes.TooManyTeams():
            return TooManyTeams.of()
        case outcomes.TeamBusy():
            return TeamBusy.of(outcome)
        case _:
            assert_never(outcome)


def declined(outcome: outcomes.DeclineOutcome) -> DeclineTeamInvitationResult:
    """What declining answers."""
    match outcome:
        case outcomes.InvitationDeclined():
            return InvitationDeclined(team_id=ids.team_gid(outcome.team_id))
        case outcomes.NotInvited():
            return NotInvited.of()
        case outcomes.TeamBusy():
            return TeamBusy.of(outcome)
        case _:
            assert_never(outcome)


def withdrawn(outcome: outcomes.WithdrawOutcome) -> WithdrawTeamInvitationResult:
    """What withdrawing an invitation answers."""
    match outcome:
        case outcomes.TeamKept():
            return Team.of(outcome.team)
        case outcomes.TeamNotFound():
            return TeamNotFound.of(ids.team_gid(outcome.team_id))
        case outcomes.NotInvited():
            return NotInvited.of()
        case outcomes.TeamBusy():
            return TeamBusy.of(outcome)
        case _:
            assert_never(outcome)


def left(outcome: outcomes.LeaveOutcome) -> LeaveTeamResult:
    """What leaving answers."""
    match outcome:
        case outcomes.TeamLeft():
            return TeamLeft(team_id=ids.team_gid(outcome.team_id))
        case outcomes.TeamNotFound():
            return TeamNotFound.of(ids.team_gid(outcome.team_id))
        case outcomes.TeamBusy():
            return TeamBusy.of(outcome)
        case _:
            assert_never(outcome)
