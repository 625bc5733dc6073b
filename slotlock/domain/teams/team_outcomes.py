"""The outcomes of team operations, each named as a fact."""

from slotlock.domain.booking.booking_refusals import KeyReused
from slotlock.domain.shared.declare import (
    RETRY_AFTER_MS,
    SENT_ID,
    outcome,
    refusal,
    shown,
    to_reader,
)
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import (
    MAX_INVITATIONS_PER_ADDRESS,
    MAX_TEAM_SIZE,
    MAX_TEAMS_PER_USER,
    Team,
    TeamId,
)
from slotlock.domain.users.user import UserId


@value_object
class TeamSaved:
    """The team has the requested state."""

    team: Team


@outcome
class TeamLeft:
    """The caller left the team. Existing bookings stay."""

    team_id: TeamId = shown("The team that the caller left.")


@outcome
class InvitationDeclined:
    """The caller declined the invitation."""

    team_id: TeamId = shown("The team that sent the invitation.")


@refusal(message="This team does not exist.")
class TeamNotFound:
    """The team does not exist, or the caller is not a member."""

    team_id: TeamId = shown(SENT_ID)


@refusal(message=f"A team can have at most {MAX_TEAM_SIZE} members and open invitations.")
class TeamFull:
    """The team has the maximum number of members and open invitations."""


@refusal(
    message=to_reader(
        own="You are already a member of this team.",
        other="This user is already a member of the team.",
        about="user_id",
    )
)
class AlreadyMember:
    """The invited user is already a member of the team."""

    user_id: UserId


# It does not reveal whether the team exists.
@refusal(message="This invitation is no longer open.")
class NotInvited:
    """The invitation does not exist or is no longer open."""


@refusal(message=f"You are already in {MAX_TEAMS_PER_USER} teams. Please leave one first.")
class TooManyTeams:
    """The caller is a member of the maximum number of teams."""


@refusal(message=f"This address already has {MAX_INVITATIONS_PER_ADDRESS} open invitations.")
class TooManyInvitations:
    """The e-mail address has the maximum number of open invitations."""


@refusal(message="Others are changing this team right now. Please try again.")
class TeamBusy:
    """Too many requests are changing the team at once."""

    retry_after_ms: int = shown(RETRY_AFTER_MS)


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
