"""Creating a team, coming into it, and leaving it."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.auth.accounts import normalize_email
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.teams import results
from slotlock.graphql.teams.results import (
    AcceptTeamInvitationResult,
    CreateTeamResult,
    DeclineTeamInvitationResult,
    InviteToTeamResult,
    LeaveTeamResult,
    NotInvited,
    TeamNotFound,
    WithdrawTeamInvitationResult,
)
from slotlock.services import teams


@strawberry.input(description="A team to create.")
class CreateTeamInput:
    name: str = field(description="What it is called, 1 to 100 characters.")


@strawberry.input(description="Who is invited to which team.")
class InviteToTeamInput:
    team_id: strawberry.ID = field(description="The team.")
    email: EmailAddress = field(description="The address of who is invited.")


TeamIdArgument = Annotated[strawberry.ID, argument(description="The team.")]


@strawberry.type
class TeamMutations:
    @field(description="Create a team. The caller is its first member.")
    async def create_team(
        self,
        info: Info,
        input: Annotated[CreateTeamInput, argument(description="The team.")],  # noqa: A002
    ) -> CreateTeamResult:
        caller = info.context.caller
        return results.to_create_team_result(
            await teams.create(info.context.services, input.name, caller.user_id)
        )

    @field(
        description="Invite an address to a team, as one of its members. The answer is the same "
        "whether or not the address has an account; inviting twice changes nothing."
    )
    async def invite_to_team(
        self,
        info: Info,
        input: Annotated[InviteToTeamInput, argument(description="Who, where.")],  # noqa: A002
    ) -> InviteToTeamResult:
        caller, email = info.context.caller, normalize_email(input.email)
        team_id = ids.parse_team_id(input.team_id)
        if team_id is None:
            return TeamNotFound.for_id(input.team_id)
        return results.to_invite_result(
            await teams.invite(info.context.services, team_id, email, caller.user_id)
        )

    @field(description="Come into a team that invited the caller's address.")
    async def accept_team_invitation(
        self, info: Info, team_id: TeamIdArgument
    ) -> AcceptTeamInvitationResult:
        caller = info.context.caller
        found = ids.parse_team_id(team_id)
        if found is None:
            return NotInvited.from_domain()
        return results.to_accept_result(
            await teams.accept(info.context.services, found, caller.user_id)
        )

    @field(description="Turn down an invitation to the caller's address.")
    async def decline_team_invitation(
        self, info: Info, team_id: TeamIdArgument
    ) -> DeclineTeamInvitationResult:
        caller = info.context.caller
        found = ids.parse_team_id(team_id)
        if found is None:
            return NotInvited.from_domain()
        return results.to_decline_result(
            await teams.decline(info.context.services, found, caller.user_id)
        )

    @field(description="Take back an open invitation, as a member of the team.")
    async def withdraw_team_invitation(
        self,
        info: Info,
        team_id: TeamIdArgument,
        email: Annotated[EmailAddress, argument(description="The address that was invited.")],
    ) -> WithdrawTeamInvitationResult:
        caller = info.context.caller
        found = ids.parse_team_id(team_id)
        if found is None:
            return TeamNotFound.for_id(team_id)
        address = normalize_email(email)
        return results.to_withdraw_result(
            await teams.withdraw(info.context.services, found, address, caller.user_id)
        )

    @field(
        description="Leave a team; the last one out ends it. Bookings that were made stay as they "
        "are."
    )
    async def leave_team(self, info: Info, team_id: TeamIdArgument) -> LeaveTeamResult:
        caller = info.context.caller
        found = ids.parse_team_id(team_id)
        if found is None:
            return TeamNotFound.for_id(team_id)
        return results.to_leave_team_result(
            await teams.leave(info.context.services, found, caller.user_id)
        )
