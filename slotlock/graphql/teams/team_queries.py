"""Teams as their members see them, and invitations as the invited users see them."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import Parent, field

from slotlock.domain.teams import team
from slotlock.domain.users.user import UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core.ids import team_global_id
from slotlock.graphql.core.node import Node, attribute_field
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.users.user_queries import User, load_referenced_user
from slotlock.services import teams


@strawberry.type(description="A member of a team.")
class TeamMember:
    since: datetime = field(description="When the member joined the team.")

    @field(description="The user who is the member.")
    async def user(member: Parent[team.Member], info: Info) -> User | None:
        return await load_referenced_user(info, member.user_id)


@strawberry.type(description="An open invitation of a team, as its members see it.")
class InvitedAddress:
    email: EmailAddress = field(
        description="The invited e-mail address or user name, whether or not it has an account."
    )
    at: datetime = field(name="invitedAt", description="When the address was invited.")


@strawberry.type(
    description="Users who may book for each other. Only the members of a team see it."
)
class Team(Node):
    def __init__(self, team: team.Team) -> None:
        self.id = team_global_id(team.id)
        self._team = team

    name = attribute_field("_team.name", str, "The name of the team.")
    members = attribute_field(
        "_team.members", list[TeamMember], "The members in the order in which they joined."
    )
    invitations = attribute_field(
        "_team.invitations", list[InvitedAddress], "The open invitations."
    )
    created_at = attribute_field("_team.created_at", datetime, "When the team was created.")


@strawberry.type(description="An open invitation to the caller's e-mail address.")
class TeamInvitation:
    team_id: strawberry.ID = field(
        description="The id of the team, to accept or decline the invitation. `node` returns the "
        "team to its members only."
    )
    team_name: str = field(description="The name of the team.")
    at: datetime = field(
        description="When the invitation was sent.", deprecation_reason="Use `invitedAt`."
    )
    invited_at: datetime = field(description="When the invitation was sent.")
    inviter_id: strawberry.Private[UserId]

    @field(description="The user who sent the invitation. They may have left the team since.")
    async def invited_by(self, info: Info) -> User | None:
        return await load_referenced_user(info, self.inviter_id)

    @classmethod
    def from_domain(cls, team: team.Team, invitation: team.Invitation) -> Self:
        return cls(
            team_id=team_global_id(team.id),
            team_name=team.name,
            at=invitation.at,
            invited_at=invitation.at,
            inviter_id=invitation.by,
        )


@strawberry.type
class TeamQueries:
    @field(description="The teams of the caller, oldest first; at most 100.")
    async def my_teams(self, info: Info) -> list[Team]:
        caller = info.context.caller
        found = await teams.list_teams(info.context.services, caller.user_id)
        return [Team(team) for team in found]

    @field(
        description="The open invitations to the caller's e-mail address, ordered by team; at most "
        "100."
    )
    async def my_team_invitations(self, info: Info) -> list[TeamInvitation]:
        caller = info.context.caller
        found = await teams.list_invitations(info.context.services, caller.user_id)
        return [TeamInvitation.from_domain(team, invitation) for team, invitation in found]
