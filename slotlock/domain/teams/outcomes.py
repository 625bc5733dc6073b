"""The outcomes of team operations, each named as a fact."""

from dataclasses import dataclass

from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.teams.team import Team, TeamId


@dataclass(frozen=True, slots=True)
class TeamSaved:
    """The team has the requested state."""

    team: Team


@dataclass(frozen=True, slots=True)
class TeamLeft:
    """The user is no longer a member of the team."""

    team_id: TeamId


@dataclass(frozen=True, slots=True)
class InvitationDeclined:
    """The invitation was deleted."""

    team_id: TeamId


@dataclass(frozen=True, slots=True)
class TeamNotFound:
    """The team does not exist, or the user is not a member of it."""

    team_id: TeamId


@dataclass(frozen=True, slots=True)
class TeamFull:
    """The team has the maximum number of members and open invitations."""


@dataclass(frozen=True, slots=True)
class AlreadyMember:
    """The invited user is a member already."""


@dataclass(frozen=True, slots=True)
class NotInvited:
    """There is no such open invitation; this does not reveal whether the team exists."""


@dataclass(frozen=True, slots=True)
class TooManyTeams:
    """The user is in the maximum number of teams."""


@dataclass(frozen=True, slots=True)
class TooManyInvitations:
    """The address has the maximum number of open invitations."""


@dataclass(frozen=True, slots=True)
class TeamBusy:
    """Concurrent changes to the team prevented this one; retry later."""

    retry_after_ms: int


CreateTeamOutcome = TeamSaved | InvalidInput | TooManyTeams | TeamBusy
InviteToTeamOutcome = (
    TeamSaved
    | TeamNotFound
    | InvalidInput
    | AlreadyMember
    | TeamFull
    | TooManyInvitations
    | TeamBusy
)
AcceptInvitationOutcome = TeamSaved | NotInvited | TooManyTeams | TeamBusy
DeclineInvitationOutcome = InvitationDeclined | NotInvited | TeamBusy
WithdrawInvitationOutcome = TeamSaved | TeamNotFound | NotInvited | TeamBusy
LeaveTeamOutcome = TeamLeft | TeamNotFound | TeamBusy
