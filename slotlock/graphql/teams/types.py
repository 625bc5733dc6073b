"""Teams as their members see them, and invitations as those see them who are invited."""

from datetime import datetime
from typing import Self

import strawberry
from strawberry import field

from slotlock.domain.teams import team as domain
from slotlock.domain.users.user import UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core.ids import team_global_id
from slotlock.graphql.core.scalars import EmailAddress
from slotlock.graphql.users.types import Node, User, load_user


@strawberry.type(description="Somebody in a team.")
class TeamMember:
    since: datetime = field(description="When they came in.")
    user_id: strawberry.Private[UserId]

    @field(description="Who it is.")
    async def user(self, info: Info) -> User | None:
        return await load_user(info, self.user_id)


@strawberry.type(description="An address that is invited to a team and has not answered.")
class InvitedAddress:
    email: EmailAddress = field(description="The address, whether or not it has an account.")
    invited_at: datetime = field(description="When it was invited.")


@strawberry.type(description="People who may book for each other; shown to its members only.")
class Team(Node):
    name: str = field(description="What it is called.")
    members: list[TeamMember] = field(description="Who is in it, in the order they came.")
    invitations: list[InvitedAddress] = field(description="Who is invited and has not answered.")
    created_at: datetime = field(description="When it was created.")

    @classmethod
    def from_domain(cls, team: domain.Team) -> Self:
        return cls(
            id=team_global_id(team.id),
            name=team.name,
            members=[TeamMember(since=m.since, user_id=m.user_id) for m in team.members],
            invitations=[
                InvitedAddress(email=EmailAddress(i.email), invited_at=i.at)
                for i in team.invitations
            ],
            created_at=team.created_at,
        )


@strawberry.type(description="An open invitation to the caller's address.")
class TeamInvitation:
    team_id: strawberry.ID = field(
        description="The team, to accept or decline; shown to its members only."
    )
    team_name: str = field(description="What the team is called.")
    at: datetime = field(description="When it was made.")
    inviter_id: strawberry.Private[UserId]

    @field(description="Who made it; they may have left the team since.")
    async def invited_by(self, info: Info) -> User | None:
        return await load_user(info, self.inviter_id)

    @classmethod
    def from_domain(cls, team: domain.Team, invitation: domain.Invitation) -> Self:
        return cls(
            team_id=team_global_id(team.id),
            team_name=team.name,
            at=invitation.at,
            inviter_id=invitation.by,
        )
