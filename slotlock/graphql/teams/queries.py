"""What people can read of teams: those they are in, and those they are invited to."""

import strawberry
from strawberry import field

from slotlock.graphql.context import Info
from slotlock.graphql.teams.types import Team, TeamInvitation
from slotlock.services.teams import list_invitations, list_teams


@strawberry.type
class TeamQueries:
    @field(description="The teams that the caller is in, the oldest first; at most 100.")
    async def my_teams(self, info: Info) -> list[Team]:
        teams = await list_teams(info.context.services, info.context.caller.user_id)
        return [Team.from_domain(team) for team in teams]

    @field(description="The open invitations to the caller's address, by team; at most 100.")
    async def my_team_invitations(self, info: Info) -> list[TeamInvitation]:
        found = await list_invitations(info.context.services, info.context.caller.user_id)
        return [TeamInvitation.from_domain(team, invitation) for team, invitation in found]
