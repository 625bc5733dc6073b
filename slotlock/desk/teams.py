"""What people do with their teams: create, invite, accept, decline, withdraw, leave, look."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from slotlock.desk.desk import Desk
from slotlock.domain import joining as rules
from slotlock.domain.joining import TeamDecision
from slotlock.domain.people import UserId
from slotlock.domain.team_outcomes import (
    AcceptOutcome,
    CreateTeamOutcome,
    DeclineOutcome,
    InviteOutcome,
    LeaveOutcome,
    NotInvited,
    TeamBusy,
    TeamKept,
    TeamNotFound,
    WithdrawOutcome,
)
from slotlock.domain.teams import Invitation, Team, TeamId
from slotlock.stores.ids import new_team_id

# Each try that fails means that somebody else's succeeded.
TRIES = 20
# A write takes milliseconds. The spread keeps those refused together from returning so.
RETRY_AFTER_MS = (50, 250)

Outcome = TypeVar("Outcome")


async def create(desk: Desk, name: str, creator: UserId) -> CreateTeamOutcome:
    """Create a team of one."""
    now = desk.now()
    for _ in range(TRIES):
        number = await desk.teams.number_for(creator)
        outcome = rules.create(new_team_id(), name, creator, number, now)
        if not isinstance(outcome, TeamKept) or await desk.teams.add(outcome.team):
            return outcome
    return _busy()


async def invite(desk: Desk, team_id: TeamId, email: str | None, by: UserId) -> InviteOutcome:
    """Invite a normalised address to a team; None is one that is none."""
    now = desk.now()

    async def decide(team: Team) -> TeamDecision[InviteOutcome]:
        # Only the members' accounts are looked at, so that not even the time it takes tells
        # whether somebody else has one.
        members = await desk.users.by_ids(member.user_id for member in team.members)
        number = await desk.teams.number_to(email) if email else None
        emails = {user.email for user in members.values()}
        return rules.invite(team, by, email, emails, number, now)

    return await _keep(desk, team_id, TeamNotFound(team_id), decide)


async def accept(desk: Desk, team_id: TeamId, user_id: UserId) -> AcceptOutcome:
    """Come into a team that invited this person's address."""
    now = desk.now()
    email = await _address(desk, user_id)

    async def decide(team: Team) -> TeamDecision[AcceptOutcome]:
        number = await desk.teams.number_for(user_id)
        return rules.accept(team, user_id, email, number, now)

    return await _keep(desk, team_id, NotInvited(), decide)


async def decline(desk: Desk, team_id: TeamId, user_id: UserId) -> DeclineOutcome:
    """Turn down an invitation to this person's address."""
    email = await _address(desk, user_id)

    async def decide(team: Team) -> TeamDecision[DeclineOutcome]:
        return rules.decline(team, email)

    return await _keep(desk, team_id, NotInvited(), decide)


async def withdraw(desk: Desk, team_id: TeamId, email: str | None, by: UserId) -> WithdrawOutcome:
    """Take back an open invitation."""

    async def decide(team: Team) -> TeamDecision[WithdrawOutcome]:
        return rules.withdraw(team, by, email)

    return await _keep(desk, team_id, TeamNotFound(team_id), decide)


async def leave(desk: Desk, team_id: TeamId, user_id: UserId) -> LeaveOutcome:
    """Go out of a team; the last one out ends it."""

    async def decide(team: Team) -> TeamDecision[LeaveOutcome]:
        return rules.leave(team, user_id)

    return await _keep(desk, team_id, TeamNotFound(team_id), decide)


async def find(desk: Desk, team_id: TeamId, viewer: UserId) -> Team | None:
    """A team, for its members."""
    team = await desk.teams.look(team_id)
    return team if team and team.has(viewer) else None


async def list_teams(desk: Desk, user_id: UserId) -> tuple[Team, ...]:
    """The teams a person is in, the oldest first."""
    return await desk.teams.of_person(user_id)


async def list_invitations(desk: Desk, user_id: UserId) -> list[tuple[Team, Invitation]]:
    """The open invitations to a person's address, each with its team."""
    email = await _address(desk, user_id)
    teams = await desk.teams.invited(email)
    return [(team, found) for team in teams if (found := team.invitation_to(email))]


async def _keep(
    desk: Desk,
    team_id: TeamId,
    absent: Outcome,
    decide: Callable[[Team], Awaitable[TeamDecision[Outcome]]],
) -> Outcome | TeamBusy:
    for _ in range(TRIES):
        team = await desk.teams.look(team_id)
        if team is None:
            return absent
        decision = await decide(team)
        if await _written(desk, team, decision.team):
            return decision.outcome
    return _busy()


async def _written(desk: Desk, before: Team, after: Team | None) -> bool:
    if after is None:
        return await desk.teams.remove(before)
    return after == before or await desk.teams.replace(before, after)


async def _address(desk: Desk, user_id: UserId) -> str:
    # Nobody's address is the empty one.
    user = (await desk.users.by_ids([user_id])).get(user_id)
    return user.email if user else ""


def _busy() -> TeamBusy:
    return TeamBusy(random.randint(*RETRY_AFTER_MS))  # noqa: S311
