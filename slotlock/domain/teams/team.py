"""A team: people who may book for each other, and those who are invited to be among them."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NewType

from slotlock.domain.users.user import UserId

TeamId = NewType("TeamId", str)

MAX_TEAM_SIZE = 50  # members and open invitations of one team
MAX_TEAMS_PER_USER = 100  # of one person
MAX_INVITATIONS_PER_ADDRESS = 100  # open, to one address


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody in a team. It has a number among the person's teams, 0 to 99, and no other has."""

    user_id: UserId
    since: datetime
    number: int


@dataclass(frozen=True, slots=True)
class Invitation:
    """An open invitation. It has a number among those to its address, 0 to 99."""

    email: str
    at: datetime
    by: UserId
    number: int


@dataclass(frozen=True, slots=True)
class TeamVersion:
    """A team as somebody looked at it. Whoever comes or goes meanwhile makes it another version."""

    team_id: TeamId
    version: int


@dataclass(frozen=True, slots=True)
class Team:
    """A team with all its members, in the order they came. `version` grows with every write."""

    id: TeamId
    name: str
    members: tuple[Member, ...]
    invitations: tuple[Invitation, ...]
    version: int
    created_at: datetime

    def has_member(self, user_id: UserId) -> bool:
        """Whether this person is in the team."""
        return any(member.user_id == user_id for member in self.members)

    def invitation_to(self, email: str) -> Invitation | None:
        """The open invitation to this address."""
        return next((i for i in self.invitations if i.email == email), None)

    @property
    def is_full(self) -> bool:
        """Whether nobody more can be invited: an invitation keeps a seat until it is answered."""
        return len(self.members) + len(self.invitations) >= MAX_TEAM_SIZE

    @property
    def snapshot_version(self) -> TeamVersion:
        """What to compare with, to know whether the team is still as it was looked at."""
        return TeamVersion(self.id, self.version)


def shared_with(
    teams: Iterable[Team], user_id: UserId, others: Collection[UserId]
) -> tuple[frozenset[UserId], tuple[TeamVersion, ...]]:
    """Those of the others who are in a team with this person, and the few teams that say so."""
    wanted = set(others) - {user_id}
    found: set[UserId] = set()
    seen: list[TeamVersion] = []
    common = {t: wanted & {m.user_id for m in t.members} for t in teams if t.has_member(user_id)}
    # The fewer teams a booking leans on, the fewer people can get in its way.
    for team in sorted(common, key=lambda each: len(common[each]), reverse=True):
        if common[team] - found:
            found |= common[team]
            seen.append(team.snapshot_version)
    return frozenset(found), tuple(seen)
