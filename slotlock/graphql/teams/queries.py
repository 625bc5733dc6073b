"""Queries that list the caller's teams and invitations."""

import strawberry
from strawberry import field

from slotlock.graphql.context import Info
from slotlock.graphql.teams.types import Team, TeamInvitation
from slotlock.services import teams


@strawberry.type
class TeamQueries:
    @field(description="The teams of the caller, oldest first; at most 100.")
    async def my_teams(self, info: Info) -> list[Team]:
        caller = info.context.caller
        found = await teams.list_teams(info.context.services, caller.user_id)
        return [Team.from_domain(team) for team in found]

    @field(
        description="The open invitations to the caller's e-mail address, ordered by team; at most "
        "100."
    )
    async def my_team_invitations(self, info: Info) -> list[TeamInvitation]:
        caller = info.context.caller
        found = await teams.list_invitations(info.context.services, caller.user_id)
        return [TeamInvitation.from_domain(team, invitation) for team, invitation in found]
