"""Mutations that create teams, invite users to them, and let members join and leave."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.teams import outcomes
from slotlock.domain.users.email_addresses import normalize_email
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import KEY_DESCRIPTION, require_valid_key
from slotlock.graphql.core.refusals import InvalidInput, KeyReused, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.teams.refusals import (
    AlreadyMember,
    NotInvited,
    TeamBusy,
    TeamFull,
    TeamNotFound,
    TooManyInvitations,
    TooManyTeams,
    present_team_refusal,
)
from slotlock.graphql.teams.types import Team
from slotlock.services import teams


@strawberry.input(description="The team to create.")
class CreateTeamInput:
    name: str = field(description="The name of the team, 1 to 100 characters.")
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)


@strawberry.input(description="The team and the address to invite.")
class InviteToTeamInput:
    team_id: strawberry.ID = field(description="The team, of which the caller is a member.")
    email: EmailAddress = field(description="The e-mail address to invite.")


@strawberry.type(description="The caller declined the invitation.")
class InvitationDeclined:
    team_id: strawberry.ID = field(description="The team that sent the invitation.")


@strawberry.type(description="The caller left the team. Existing bookings stay.")
class TeamLeft:
    team_id: strawberry.ID = field(description="The team that the caller left.")


CreateTeamResult = Annotated[
    Team | InvalidInput | TooManyTeams | TeamBusy | KeyReused,
    strawberry.union("CreateTeamResult", description="The new team, or a refusal."),
]
InviteToTeamResult = Annotated[
    Team | TeamNotFound | InvalidInput | AlreadyMember | TeamFull | TooManyInvitations | TeamBusy,
    strawberry.union(
        "InviteToTeamResult", description="The team with the new invitation, or a refusal."
    ),
]
AcceptTeamInvitationResult = Annotated[
    Team | NotInvited | TooManyTeams | TeamBusy,
    strawberry.union(
        "AcceptTeamInvitationResult", description="The team with its new member, or a refusal."
    ),
]
DeclineTeamInvitationResult = Annotated[
    InvitationDeclined | NotInvited | TeamBusy,
    strawberry.union(
        "DeclineTeamInvitationResult", description="The declined invitation, or a refusal."
    ),
]
WithdrawTeamInvitationResult = Annotated[
    Team | TeamNotFound | NotInvited | TeamBusy,
    strawberry.union(
        "WithdrawTeamInvitationResult",
        description="The team without the invitation, or a refusal.",
    ),
]
LeaveTeamResult = Annotated[
    TeamLeft | TeamNotFound | TeamBusy,
    strawberry.union("LeaveTeamResult", description="The team that was left, or a refusal."),
]

TeamIdArgument = Annotated[strawberry.ID, argument(description="The id of the team.")]
CreateTeamArgument = Annotated[CreateTeamInput, argument(description="The team to create.")]
InviteToTeamArgument = Annotated[InviteToTeamInput, argument(description="The new invitation.")]


@strawberry.type
class TeamMutations:
    @field(
        description="Create a team. The caller is its first member.",
        graphql_type=CreateTeamResult,
    )
    async def create_team(
        self,
        info: Info,
        input: CreateTeamArgument,  # noqa: A002
    ) -> Team | Refusal:
        caller = info.context.caller
        key = require_valid_key(input.idempotency_key)
        outcome = await teams.create(info.context.services, input.name, caller.user_id, key)
        if isinstance(outcome, outcomes.TeamSaved):
            return Team.from_domain(outcome.team)
        return present_team_refusal(outcome, ResultView(caller))

    @field(
        description="Invite an e-mail address to a team of the caller. The result does not reveal "
        "whether the address has an account. Inviting the same address again changes nothing.",
        graphql_type=InviteToTeamResult,
    )
    async def invite_to_team(
        self,
        info: Info,
        input: InviteToTeamArgument,  # noqa: A002
    ) -> Team | Refusal:
        caller = info.context.caller
        email = normalize_email(input.email)
        team_id = ids.parse_team_id(input.team_id)
        if team_id is None:
            return TeamNotFound.for_id(input.team_id)
        outcome = await teams.invite(info.context.services, team_id, email, caller.user_id)
        if isinstance(outcome, outcomes.TeamSaved):
            return Team.from_domain(outcome.team)
        return present_team_refusal(outcome, ResultView(caller))

    @field(
        description="Join a team that invited the caller's e-mail address.",
        graphql_type=AcceptTeamInvitationResult,
    )
    async def accept_team_invitation(self, info: Info, team_id: TeamIdArgument) -> Team | Refusal:
        caller = info.context.caller
        parsed_id = ids.parse_team_id(team_id)
        if parsed_id is None:
            return NotInvited.create()
        outcome = await teams.accept(info.context.services, parsed_id, caller.user_id)
        if isinstance(outcome, outcomes.TeamSaved):
            return Team.from_domain(outcome.team)
        return present_team_refusal(outcome, ResultView(caller))

    @field(
        description="Decline an invitation to the caller's e-mail address.",
        graphql_type=DeclineTeamInvitationResult,
    )
    async def decline_team_invitation(
        self, info: Info, team_id: TeamIdArgument
    ) -> InvitationDeclined | Refusal:
        caller = info.context.caller
        parsed_id = ids.parse_team_id(team_id)
        if parsed_id is None:
            return NotInvited.create()
        outcome = await teams.decline(info.context.services, parsed_id, caller.user_id)
        if isinstance(outcome, outcomes.InvitationDeclined):
            return InvitationDeclined(team_id=ids.team_global_id(outcome.team_id))
        return present_team_refusal(outcome, ResultView(caller))

    @field(
        description="Withdraw an open invitation of a team of the caller.",
        graphql_type=WithdrawTeamInvitationResult,
    )
    async def withdraw_team_invitation(
        self,
        info: Info,
        team_id: TeamIdArgument,
        email: Annotated[EmailAddress, argument(description="The invited e-mail address.")],
    ) -> Team | Refusal:
        caller = info.context.caller
        parsed_id = ids.parse_team_id(team_id)
        if parsed_id is None:
            return TeamNotFound.for_id(team_id)
        outcome = await teams.withdraw(
            info.context.services, parsed_id, normalize_email(email), caller.user_id
        )
        if isinstance(outcome, outcomes.TeamSaved):
            return Team.from_domain(outcome.team)
        return present_team_refusal(outcome, ResultView(caller))

    @field(
        description="Leave a team. A team without members is deleted. Existing bookings stay.",
        graphql_type=LeaveTeamResult,
    )
    async def leave_team(self, info: Info, team_id: TeamIdArgument) -> TeamLeft | Refusal:
        caller = info.context.caller
        parsed_id = ids.parse_team_id(team_id)
        if parsed_id is None:
            return TeamNotFound.for_id(team_id)
        outcome = await teams.leave(info.context.services, parsed_id, caller.user_id)
        if isinstance(outcome, outcomes.TeamLeft):
            return TeamLeft(team_id=ids.team_global_id(outcome.team_id))
        return present_team_refusal(outcome, ResultView(caller))
