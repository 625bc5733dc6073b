"""The outcomes of team operations, each named as a fact."""

from slotlock.domain.booking.refusals import KeyReused
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.shared.values import value_object
from slotlock.domain.teams.team import Team, TeamId
from slotlock.domain.users.user import UserId


@value_object
class TeamSaved:
    """The team has the requested state."""

    team: Team


@value_object
class TeamLeft:
    """The user is no longer a member of the team."""

    team_id: TeamId


@value_object
class InvitationDeclined:
    """The invitation was deleted."""

    team_id: TeamId


@value_object
class TeamNotFound:
    """The team does not exist, or the user is not a member of it."""

    team_id: TeamId


@value_object
class TeamFull:
    """The team has the maximum number of members and open invitations."""


@value_object
class AlreadyMember:
    """The invited user is a member already."""

    user_id: UserId


@value_object
class NotInvited:
    """There is no such open invitation; this does not reveal whether the team exists."""


@value_object
class TooManyTeams:
    """The user is in the maximum number of teams."""


@value_object
class TooManyInvitations:
    """The address has the maximum number of open invitations."""


@value_object
class TeamBusy:
    """Concurrent changes to the team prevented this one; retry later."""

    retry_after_ms: int


CreateTeamOutcome = TeamSaved | InvalidInput | TooManyTeams | TeamBusy | KeyReused
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
