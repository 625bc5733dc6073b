"""Use cases of teams: create, invite, accept, decline, withdraw, leave and list."""

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from slotlock.domain.notifications.mail_kinds import team_invitation_mail
from slotlock.domain.teams import membership
from slotlock.domain.teams.membership import TeamDecision
from slotlock.domain.teams.team import Invitation, Team, TeamId
from slotlock.domain.teams.team_outcomes import (
    AcceptInvitationOutcome,
    CreateTeamOutcome,
    DeclineInvitationOutcome,
    InviteToTeamOutcome,
    LeaveTeamOutcome,
    NotInvited,
    TeamBusy,
    TeamNotFound,
    TeamSaved,
    WithdrawInvitationOutcome,
)
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.conflicts import attempts
from slotlock.infrastructure.mongo.ids import new_team_id
from slotlock.services.commands.idempotency import find_created, to_record
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey

# A write takes milliseconds. The random delay spreads the retries of concurrent callers.
RETRY_AFTER_MS = (50, 250)

Outcome = TypeVar("Outcome")


async def create(
    services: Services, name: str, creator_id: UserId, key_text: str | None = None
) -> CreateTeamOutcome:
    """Create a team whose only member is its creator.

    Return the team that the same request with this key created, if there is one.
    """
    now = services.now()
    key = IdempotencyKey.for_creation(creator_id, key_text, "createTeam", name)
    refusal: CreateTeamOutcome = _busy()
    for _ in attempts():
        if stored := await find_created(services, key, TeamSaved):
            return stored.outcome
        number = await services.teams.free_member_number(creator_id)
        outcome = membership.create(new_team_id(), name, creator_id, number, now)
        if not isinstance(outcome, TeamSaved):
            refusal = outcome
            break
        record = to_record(key, outcome, now) if key else None
        if await services.teams.insert(outcome.team, record):
            return outcome
    stored = await find_created(services, key, TeamSaved)
    return stored.outcome if stored else refusal


async def invite(
    services: Services, team_id: TeamId, login_name: str | None, member_id: UserId
) -> InviteToTeamOutcome:
    """Invite a normalized e-mail address to a team; None stands for an invalid address.

    The invited user gets a mail. A repeated invitation sends what a dead process did not.
    """
    now = services.now()

    async def decide(team: Team) -> TeamDecision[InviteToTeamOutcome]:
        # Load only the members' accounts: not even the response time may reveal whether the
        # address of another user has an account.
        members = await services.users.find_many(member.user_id for member in team.members)
        number = await services.teams.free_invitation_number(login_name) if login_name else None
        by_login_name = {user.login_name: user_id for user_id, user in members.items()}
        return membership.invite(team, member_id, login_name, by_login_name, number, now)

    missing: InviteToTeamOutcome = TeamNotFound(team_id)
    outcome = await _update(services, team_id, missing, decide)
    if services.sends_mail and login_name and isinstance(outcome, TeamSaved):
        mail = team_invitation_mail(team_id, login_name, member_id, now)
        await services.outbox.insert([mail] if mail else [], now)
    return outcome


async def accept(services: Services, team_id: TeamId, user_id: UserId) -> AcceptInvitationOutcome:
    """Join a team that invited the user's address."""
    now = services.now()
    login_name = await _login_name_of(services, user_id)

    async def decide(team: Team) -> TeamDecision[AcceptInvitationOutcome]:
        number = await services.teams.free_member_number(user_id)
        return membership.accept(team, user_id, login_name, number, now)

    return await _update(services, team_id, NotInvited(), decide)


async def decline(services: Services, team_id: TeamId, user_id: UserId) -> DeclineInvitationOutcome:
    """Decline an invitation to the user's address."""
    login_name = await _login_name_of(services, user_id)

    async def decide(team: Team) -> TeamDecision[DeclineInvitationOutcome]:
        return membership.decline(team, user_id, login_name)

    return await _update(services, team_id, NotInvited(), decide)


async def withdraw(
    services: Services, team_id: TeamId, login_name: str | None, member_id: UserId
) -> WithdrawInvitationOutcome:
    """Withdraw an open invitation."""

    async def decide(team: Team) -> TeamDecision[WithdrawInvitationOutcome]:
        return membership.withdraw(team, member_id, login_name)

    return await _update(services, team_id, TeamNotFound(team_id), decide)


async def leave(services: Services, team_id: TeamId, user_id: UserId) -> LeaveTeamOutcome:
    """Leave a team; the team is deleted with its last member."""

    async def decide(team: Team) -> TeamDecision[LeaveTeamOutcome]:
        return membership.leave(team, user_id)

    return await _update(services, team_id, TeamNotFound(team_id), decide)


async def remove_user(
    services: Services, user_id: UserId, login_name: str, former_login_names: Sequence[str] = ()
) -> None:
    """Remove a user from all teams, and delete their open invitations.

    `login_name` is the last one. Invitations to a former one are deleted as well, even if they were
    made after the change, unless another user has that login name now.
    """
    for team in await services.teams.find_by_user(user_id):
        await leave(services, team.id, user_id)
    await _delete_invitations(services, user_id, login_name)
    for former_name in former_login_names:
        if await services.users.find_with_password_hash(former_name) is None:
            await _delete_invitations(services, user_id, former_name)


async def _delete_invitations(services: Services, user_id: UserId, login_name: str) -> None:
    async def decide(team: Team) -> TeamDecision[DeclineInvitationOutcome]:
        return membership.decline(team, user_id, login_name)

    missing: DeclineInvitationOutcome = NotInvited()
    for team in await services.teams.find_by_invited_user(user_id, login_name):
        await _update(services, team.id, missing, decide)


async def find(services: Services, team_id: TeamId, viewer_id: UserId) -> Team | None:
    """Return a team if the viewer is a member, else None."""
    team = await services.teams.find(team_id)
    return team if team and team.has_member(viewer_id) else None


async def list_teams(services: Services, user_id: UserId) -> tuple[Team, ...]:
    """Return the user's teams, oldest first."""
    return await services.teams.find_by_user(user_id)


async def list_invitations(services: Services, user_id: UserId) -> list[tuple[Team, Invitation]]:
    """Return the open invitations of the user, each with its team."""
    login_name = await _login_name_of(services, user_id)
    teams = await services.teams.find_by_invited_user(user_id, login_name)
    found = ((team, team.invitations_of(user_id, login_name)) for team in teams)
    return [(team, own[0]) for team, own in found if own]


async def _update(
    services: Services,
    team_id: TeamId,
    missing_outcome: Outcome,
    decide: Callable[[Team], Awaitable[TeamDecision[Outcome]]],
) -> Outcome | TeamBusy:
    for _ in attempts():
        team = await services.teams.find(team_id)
        if team is None:
            return missing_outcome
        decision = await decide(team)
        if await _save(services, team, decision.team):
            return decision.outcome
    return _busy()


async def _save(services: Services, before: Team, after: Team | None) -> bool:
    if after is None:
        return await services.teams.delete(before)
    return after == before or await services.teams.update(before, after)


async def _login_name_of(services: Services, user_id: UserId) -> str:
    # No user has the empty address, so an unknown user has no invitations; nor has one who may
    # have registered with the address of a stranger.
    user = (await services.users.find_many([user_id])).get(user_id)
    if user is None or (services.require_verified_email and user.self_registered):
        return ""
    return user.login_name


def _busy() -> TeamBusy:
    return TeamBusy(random.randint(*RETRY_AFTER_MS))  # noqa: S311
