"""Teams as their members see them, and invitations as the invited users see them."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.teams import team
from slotlock.domain.users.user import UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core.ids import team_global_id
from slotlock.graphql.core.node import Node
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.users.types import User, load_referenced_user


@strawberry.type(description="A member of a team.")
class TeamMember:
    since: datetime = field(description="When the member joined the team.")
    user_id: strawberry.Private[UserId]

    @field(description="The user who is the member.")
    async def user(self, info: Info) -> User | None:
        return await load_referenced_user(info, self.user_id)


@strawberry.type(description="An open invitation of a team, as its members see it.")
class InvitedAddress:
    email: EmailAddress = field(
        description="The invited e-mail address, whether or not it has an account."
    )
    invited_at: datetime = field(description="When the address was invited.")


@strawberry.type(
    description="Users who may book for each other. Only the members of a team see it."
)
class Team(Node):
    name: str = field(description="The name of the team.")
    members: list[TeamMember] = field(description="The members in the order in which they joined.")
    invitations: list[InvitedAddress] = field(description="The open invitations.")
    created_at: datetime = field(description="When the team was created.")

    @classmethod
    def from_domain(cls, team: team.Team) -> Self:
        """Show a team to a member."""
        return cls(
            id=team_global_id(team.id),
            name=team.name,
            members=[
                TeamMember(since=member.since, user_id=member.user_id) for member in team.members
            ],
            invitations=[
                InvitedAddress(email=EmailAddress(invitation.email), invited_at=invitation.at)
                for invitation in team.invitations
            ],
            created_at=team.created_at,
        )


@strawberry.type(description="An open invitation to the caller's e-mail address.")
class TeamInvitation:
    team_id: strawberry.ID = field(
        description="The id of the team, to accept or decline the invitation. `node` returns the "
        "team to its members only."
    )
    team_name: str = field(description="The name of the team.")
    at: datetime = field(description="When the invitation was sent.")
    inviter_id: strawberry.Private[UserId]

    @field(description="The user who sent the invitation. They may have left the team since.")
    async def invited_by(self, info: Info) -> User | None:
        return await load_referenced_user(info, self.inviter_id)

    @classmethod
    def from_domain(cls, team: team.Team, invitation: team.Invitation) -> Self:
        """Show an invitation to the invited user."""
        return cls(
            team_id=team_global_id(team.id),
            team_name=team.name,
            at=invitation.at,
            inviter_id=invitation.by,
        )
