"""What can come of asking for a team, each expected result named as a fact."""

from dataclasses import dataclass

from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.teams.team import Team, TeamId


@dataclass(frozen=True, slots=True)
class TeamSaved:
    """The team stands as was wanted."""

    team: Team


@dataclass(frozen=True, slots=True)
class TeamLeft:
    """This person is no longer in the team."""

    team_id: TeamId


@dataclass(frozen=True, slots=True)
class InvitationDeclined:
    """The invitation is gone."""

    team_id: TeamId


@dataclass(frozen=True, slots=True)
class TeamNotFound:
    """No such team, or none that this person is in."""

    team_id: TeamId


@dataclass(frozen=True, slots=True)
class TeamFull:
    """The team has as many members and open invitations as a team may have."""


@dataclass(frozen=True, slots=True)
class AlreadyMember:
    """Who is invited is in the team."""


@dataclass(frozen=True, slots=True)
class NotInvited:
    """There is no such open invitation; whether there is such a team is not told."""


@dataclass(frozen=True, slots=True)
class TooManyTeams:
    """This person is in as many teams as a person may be."""


@dataclass(frozen=True, slots=True)
class TooManyInvitations:
    """The address has as many open invitations as an address may have."""


@dataclass(frozen=True, slots=True)
class TeamBusy:
    """So many are changing this at once that it was not this one's turn; ask again."""

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
