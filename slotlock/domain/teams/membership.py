"""Rules of team membership: create, invite, accept, decline, withdraw and leave."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Generic, TypeVar

from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.text import normalize_line, validate_line
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import Invitation, Member, Team, TeamId
from slotlock.domain.teams.team_outcomes import (
    AcceptInvitationOutcome,
    AlreadyMember,
    CreateTeamOutcome,
    DeclineInvitationOutcome,
    InvitationDeclined,
    InviteToTeamOutcome,
    LeaveTeamOutcome,
    NotInvited,
    TeamFull,
    TeamLeft,
    TeamNotFound,
    TeamSaved,
    TooManyInvitations,
    TooManyTeams,
    WithdrawInvitationOutcome,
)
from slotlock.domain.users.email_addresses import INVALID_LOGIN_NAME
from slotlock.domain.users.user import UserId

MAX_TEAM_NAME_LENGTH = 100

Outcome = TypeVar("Outcome")


@value_object
class TeamDecision(Generic[Outcome]):
    """The new state of the team, None to delete it, and the outcome for the caller."""

    team: Team | None
    outcome: Outcome


def create(
    team_id: TeamId, name: str, creator: UserId, member_number: int | None, now: datetime
) -> CreateTeamOutcome:
    """Create a team of one; `member_number` is free among the creator's memberships, or None."""
    name = normalize_line(name)
    if problem := validate_line(name, MAX_TEAM_NAME_LENGTH) or (
        None if name else ProblemCode.NAME_MISSING.problem()
    ):
        return InvalidInput((FieldProblem("name", problem),))
    if member_number is None:
        return TooManyTeams()
    return TeamSaved(Team(team_id, name, (Member(creator, now, member_number),), (), 1, now))


def invite(
    team: Team,
    by: UserId,
    email: str | None,
    members_by_email: Mapping[str, UserId],
    invitation_number: int | None,
    now: datetime,
) -> TeamDecision[InviteToTeamOutcome]:
    """Invite a login name, None if it was invalid. A second invitation changes nothing.

    The outcome does not depend on whether the address has an account. `invitation_number` is free
    among the open invitations to the address, or None.
    """
    if not team.has_member(by):
        return TeamDecision(team, TeamNotFound(team.id))
    if email is None:
        return TeamDecision(team, InvalidInput((FieldProblem("email", INVALID_LOGIN_NAME),)))
    if (member_id := members_by_email.get(email)) is not None:
        return TeamDecision(team, AlreadyMember(member_id))
    if team.invitation_to(email):
        return TeamDecision(team, TeamSaved(team))
    if team.is_full:
        return TeamDecision(team, TeamFull())
    if invitation_number is None:
        return TeamDecision(team, TooManyInvitations())
    invitation = Invitation(email, now, by, invitation_number)
    after = _next_version(replace(team, invitations=(*team.invitations, invitation)))
    return TeamDecision(after, TeamSaved(after))


def accept(
    team: Team, user_id: UserId, email: str, member_number: int | None, now: datetime
) -> TeamDecision[AcceptInvitationOutcome]:
    """Add the invited user, whose address is `email`. Accepting twice changes nothing.

    The invitation has reserved a seat. `member_number` is free among the user's memberships, or
    None.
    """
    own = team.invitations_of(user_id, email)
    if team.has_member(user_id):
        # A member has an open invitation after a change to an address that was invited, too.
        after = _without(team, own) if own else team
        return TeamDecision(after, TeamSaved(after))
    if not own:
        return TeamDecision(team, NotInvited())
    if member_number is None:
        return TeamDecision(team, TooManyTeams())
    member = Member(user_id, now, member_number)
    after = replace(_without(team, own), members=(*team.members, member))
    return TeamDecision(after, TeamSaved(after))


def decline(team: Team, user_id: UserId, email: str) -> TeamDecision[DeclineInvitationOutcome]:
    """Delete the invitation of the user, whose address is `email`."""
    own = team.invitations_of(user_id, email)
    if not own:
        return TeamDecision(team, NotInvited())
    return TeamDecision(_without(team, own), InvitationDeclined(team.id))


def withdraw(team: Team, by: UserId, email: str | None) -> TeamDecision[WithdrawInvitationOutcome]:
    """Delete an open invitation on behalf of a member."""
    if not team.has_member(by):
        return TeamDecision(team, TeamNotFound(team.id))
    invitation = team.invitation_to(email) if email is not None else None
    if invitation is None:
        return TeamDecision(team, NotInvited())
    after = _without(team, (invitation,))
    return TeamDecision(after, TeamSaved(after))


def leave(team: Team, user_id: UserId) -> TeamDecision[LeaveTeamOutcome]:
    """Remove a member, or the team with its last member. Existing bookings do not change."""
    if not team.has_member(user_id):
        return TeamDecision(team, TeamNotFound(team.id))
    remaining = tuple(member for member in team.members if member.user_id != user_id)
    after = _next_version(replace(team, members=remaining)) if remaining else None
    return TeamDecision(after, TeamLeft(team.id))


def _without(team: Team, invitations: Collection[Invitation]) -> Team:
    remaining = tuple(each for each in team.invitations if each not in invitations)
    return _next_version(replace(team, invitations=remaining))


def _next_version(team: Team) -> Team:
    return replace(team, version=team.version + 1)
