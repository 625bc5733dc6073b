"""Teams: users who may book for each other, and the invitations to join them."""

from collections.abc import Collection, Iterable
from dataclasses import field
from datetime import datetime
from typing import NewType

from slotlock.domain.shared.value_object import Stored, value_object
from slotlock.domain.users.user import UserId

TeamId = NewType("TeamId", str)

MAX_TEAM_SIZE = 50  # members and open invitations
MAX_TEAMS_PER_USER = 100
MAX_INVITATIONS_PER_ADDRESS = 100  # open ones


@value_object
class Member:
    """A member of a team; `number`, 0 to 99, is unique among the user's memberships."""

    user_id: UserId
    since: datetime
    number: int
    stored: Stored = field(default=None, compare=False, repr=False)


@value_object
class Invitation:
    """An open invitation to an address or a user name; `number`, 0 to 99, is unique among those.

    `user_id` is the user who had this login name and has another one now. The invitation follows
    that user; until then, it is None and the invitation is for who has the login name.
    """

    email: str
    at: datetime
    by: UserId
    number: int
    user_id: UserId | None = None
    stored: Stored = field(default=None, compare=False, repr=False)


@value_object
class TeamVersion:
    """The version of a team that a decision was based on; each change of members increments it."""

    team_id: TeamId
    version: int


@value_object
class Team:
    """A team with its members in the order they joined; every write increments `version`."""

    id: TeamId
    name: str
    members: tuple[Member, ...]
    invitations: tuple[Invitation, ...]
    version: int
    created_at: datetime

    def has_member(self, user_id: UserId) -> bool:
        """Return whether the user is a member."""
        return any(member.user_id == user_id for member in self.members)

    def invitation_to(self, email: str) -> Invitation | None:
        """Return the open invitation to this address, or None."""
        return next((invite for invite in self.invitations if invite.email == email), None)

    def invitations_of(self, user_id: UserId, login_name: str) -> tuple[Invitation, ...]:
        """Return the open invitations of a user with this login name; more than one is rare."""
        return tuple(
            each
            for each in self.invitations
            if each.user_id == user_id or (each.user_id is None and each.email == login_name)
        )

    @property
    def is_full(self) -> bool:
        """Return whether no one else can be invited; open invitations reserve a seat."""
        return len(self.members) + len(self.invitations) >= MAX_TEAM_SIZE

    @property
    def snapshot_version(self) -> TeamVersion:
        """Return the version by which a write detects that the team has changed."""
        return TeamVersion(self.id, self.version)


def shared_with(
    teams: Iterable[Team], user_id: UserId, others: Collection[UserId]
) -> tuple[frozenset[UserId], tuple[TeamVersion, ...]]:
    """Return the others who share a team with the user, and the versions of few such teams."""
    candidates = set(others) - {user_id}
    teammates_by_team = {
        team: candidates & {member.user_id for member in team.members}
        for team in teams
        if team.has_member(user_id)
    }
    teammates: set[UserId] = set()
    versions: list[TeamVersion] = []
    # A booking that depends on fewer teams conflicts with fewer changes of members.
    for team in sorted(teammates_by_team, key=lambda t: len(teammates_by_team[t]), reverse=True):
        if teammates_by_team[team] - teammates:
            teammates |= teammates_by_team[team]
            versions.append(team.snapshot_version)
    return frozenset(teammates), tuple(versions)
