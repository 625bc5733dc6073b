"""How a team begins, how people come into it and leave it, and how it ends."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Generic, TypeVar

from slotlock.domain.people import UserId
from slotlock.domain.refusals import FieldProblem, InvalidInput
from slotlock.domain.team_outcomes import (
    AcceptOutcome,
    AlreadyMember,
    CreateTeamOutcome,
    DeclineOutcome,
    InvitationDeclined,
    InviteOutcome,
    LeaveOutcome,
    NotInvited,
    TeamFull,
    TeamKept,
    TeamLeft,
    TeamNotFound,
    TooManyInvitations,
    TooManyTeams,
    WithdrawOutcome,
)
from slotlock.domain.teams import Invitation, Member, Team, TeamId
from slotlock.domain.texts import line_problem

MAX_NAME = 100

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class TeamDecision(Generic[Outcome]):
    """The team as it shall be, or None if it shall end, and the answer."""

    team: Team | None
    outcome: Outcome


def create(
    team_id: TeamId, name: str, creator: UserId, number: int | None, now: datetime
) -> CreateTeamOutcome:
    """A team of its creator alone. `number`: one that is free among the creator's teams."""
    name = name.strip()
    if problem := line_problem(name, MAX_NAME) or (None if name else "A team needs a name."):
        return InvalidInput((FieldProblem("name", problem),))
    if number is None:
        return TooManyTeams()
    return TeamKept(Team(team_id, name, (Member(creator, now, number),), (), 1, now))


def invite(
    team: Team,
    by: UserId,
    email: str | None,
    member_emails: Collection[str],
    number: int | None,
    now: datetime,
) -> TeamDecision[InviteOutcome]:
    """A member invites an address; None is one that is none. Inviting twice changes nothing.

    Whether the address has an account plays no part. `number`: one that is free among the open
    invitations to it.
    """
    if not team.has(by):
        return TeamDecision(team, TeamNotFound(team.id))
    if email is None:
        problem = FieldProblem("email", "This is not an e-mail address.")
        return TeamDecision(team, InvalidInput((problem,)))
    if email in member_emails:
        return TeamDecision(team, AlreadyMember())
    if team.invitation_to(email):
        return TeamDecision(team, TeamKept(team))
    if team.is_full:
        return TeamDecision(team, TeamFull())
    if number is None:
        return TeamDecision(team, TooManyInvitations())
    invitation = Invitation(email, now, by, number)
    after = _next(replace(team, invitations=(*team.invitations, invitation)))
    return TeamDecision(after, TeamKept(after))


def accept(
    team: Team, user_id: UserId, email: str, number: int | None, now: datetime
) -> TeamDecision[AcceptOutcome]:
    """Who has an invited address comes in. Accepting twice changes nothing.

    There is always a seat: the invitation kept it. `number`: one that is free among the teams of
    this person.
    """
    if team.has(user_id):
        return TeamDecision(team, TeamKept(team))
    if not team.invitation_to(email):
        return TeamDecision(team, NotInvited())
    if number is None:
        return TeamDecision(team, TooManyTeams())
    member = Member(user_id, now, number)
    after = replace(_uninvited(team, email), members=(*team.members, member))
    return TeamDecision(after, TeamKept(after))


def decline(team: Team, email: str) -> TeamDecision[DeclineOutcome]:
    """Who has an invited address does not want to come in."""
    if not team.invitation_to(email):
        return TeamDecision(team, NotInvited())
    return TeamDecision(_uninvited(team, email), InvitationDeclined(team.id))


def withdraw(team: Team, by: UserId, email: str | None) -> TeamDecision[WithdrawOutcome]:
    """A member takes an open invitation back."""
    if not team.has(by):
        return TeamDecision(team, TeamNotFound(team.id))
    if email is None or not team.invitation_to(email):
        return TeamDecision(team, NotInvited())
    after = _uninvited(team, email)
    return TeamDecision(after, TeamKept(after))


def leave(team: Team, user_id: UserId) -> TeamDecision[LeaveOutcome]:
    """A member goes; the last one out ends the team. Bookings that were made stay as they are."""
    if not team.has(user_id):
        return TeamDecision(team, TeamNotFound(team.id))
    staying = tuple(member for member in team.members if member.user_id != user_id)
    after = _next(replace(team, members=staying)) if staying else None
    return TeamDecision(after, TeamLeft(team.id))


def _uninvited(team: Team, email: str) -> Team:
    open_ = tuple(invitation for invitation in team.invitations if invitation.email != email)
    return _next(replace(team, invitations=open_))


def _next(team: Team) -> Team:
    return replace(team, version=team.version + 1)
