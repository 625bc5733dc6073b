"""Mutations that create teams, invite users to them, and let members join and leave."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.teams import team_outcomes
from slotlock.domain.users.email_addresses import normalize_login_name
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import KEY_DESCRIPTION, require_valid_key
from slotlock.graphql.core.outcomes import Result, ResultView, refuse_id, register_type
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.teams.team_queries import Team
from slotlock.services import teams


@strawberry.input(description="The team to create.")
class CreateTeamInput:
    name: str = field(description="The name of the team, 1 to 100 characters.")
    idempotency_key: str | None = field(default=None, description=KEY_DESCRIPTION)


@strawberry.input(description="The team and the address to invite.")
class InviteToTeamInput:
    team_id: strawberry.ID = field(description="The team, of which the caller is a member.")
    email: EmailAddress = field(description="The e-mail address or the user name to invite.")


register_type(team_outcomes.TeamSaved, Team, lambda outcome, _view: Team(outcome.team))

CREATE_TEAM = Result[team_outcomes.CreateTeamOutcome](
    "CreateTeamResult", "The new team, or a refusal."
)
INVITE_TO_TEAM = Result[team_outcomes.InviteToTeamOutcome](
    "InviteToTeamResult", "The team with the new invitation, or a refusal."
)
ACCEPT_INVITATION = Result[team_outcomes.AcceptInvitationOutcome](
    "AcceptTeamInvitationResult", "The team with its new member, or a refusal."
)
DECLINE_INVITATION = Result[team_outcomes.DeclineInvitationOutcome](
    "DeclineTeamInvitationResult", "The declined invitation, or a refusal."
)
WITHDRAW_INVITATION = Result[team_outcomes.WithdrawInvitationOutcome](
    "WithdrawTeamInvitationResult", "The team without the invitation, or a refusal."
)
LEAVE_TEAM = Result[team_outcomes.LeaveTeamOutcome](
    "LeaveTeamResult", "The team that was left, or a refusal."
)

TeamIdArgument = Annotated[strawberry.ID, argument(description="The id of the team.")]
CreateTeamArgument = Annotated[CreateTeamInput, argument(description="The team to create.")]
InviteToTeamArgument = Annotated[InviteToTeamInput, argument(description="The new invitation.")]


@strawberry.type
class TeamMutations:
    @CREATE_TEAM.mutation("Create a team. The caller is its first member.")
    async def create_team(self, info: Info, input: CreateTeamArgument) -> object:
        caller = info.context.caller
        key = require_valid_key(input.idempotency_key)
        outcome = await teams.create(info.context.services, input.name, caller.user_id, key)
        return CREATE_TEAM.present(outcome, ResultView(caller))

    @INVITE_TO_TEAM.mutation(
        "Invite an e-mail address or a user name to a team of the caller. The result does "
        "not reveal whether the address has an account. Inviting it again changes nothing."
    )
    async def invite_to_team(self, info: Info, input: InviteToTeamArgument) -> object:
        caller = info.context.caller
        login_name = normalize_login_name(input.email)
        if (team_id := ids.parse_team_id(input.team_id)) is None:
            return refuse_id(team_outcomes.TeamNotFound, input.team_id)
        outcome = await teams.invite(info.context.services, team_id, login_name, caller.user_id)
        return INVITE_TO_TEAM.present(outcome, ResultView(caller))

    @ACCEPT_INVITATION.mutation("Join a team that invited the caller's e-mail address.")
    async def accept_team_invitation(self, info: Info, team_id: TeamIdArgument) -> object:
        caller = info.context.caller
        if (parsed_id := ids.parse_team_id(team_id)) is None:
            return ACCEPT_INVITATION.present(team_outcomes.NotInvited(), ResultView(caller))
        outcome = await teams.accept(info.context.services, parsed_id, caller.user_id)
        return ACCEPT_INVITATION.present(outcome, ResultView(caller))

    @DECLINE_INVITATION.mutation("Decline an invitation to the caller's e-mail address.")
    async def decline_team_invitation(self, info: Info, team_id: TeamIdArgument) -> object:
        caller = info.context.caller
        if (parsed_id := ids.parse_team_id(team_id)) is None:
            return DECLINE_INVITATION.present(team_outcomes.NotInvited(), ResultView(caller))
        outcome = await teams.decline(info.context.services, parsed_id, caller.user_id)
        return DECLINE_INVITATION.present(outcome, ResultView(caller))

    @WITHDRAW_INVITATION.mutation("Withdraw an open invitation of a team of the caller.")
    async def withdraw_team_invitation(
        self,
        info: Info,
        team_id: TeamIdArgument,
        email: Annotated[
            EmailAddress, argument(description="The invited e-mail address or user name.")
        ],
    ) -> object:
        caller = info.context.caller
        if (parsed_id := ids.parse_team_id(team_id)) is None:
            return refuse_id(team_outcomes.TeamNotFound, team_id)
        outcome = await teams.withdraw(
            info.context.services, parsed_id, normalize_login_name(email), caller.user_id
        )
        return WITHDRAW_INVITATION.present(outcome, ResultView(caller))

    @LEAVE_TEAM.mutation("Leave a team. A team without members is deleted. Existing bookings stay.")
    async def leave_team(self, info: Info, team_id: TeamIdArgument) -> object:
        caller = info.context.caller
        if (parsed_id := ids.parse_team_id(team_id)) is None:
            return refuse_id(team_outcomes.TeamNotFound, team_id)
        outcome = await teams.leave(info.context.services, parsed_id, caller.user_id)
        return LEAVE_TEAM.present(outcome, ResultView(caller))
