"""Teams over GraphQL, and clients that know their user's id and e-mail address."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from bson import ObjectId

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.stores.empty_database import stored_database
from tests.support.stores.users import create_user_tokens

TEAM_FIELDS = """{
  __typename
  ... on Team {
    id name createdAt members { since user { id email } } invitations { email invitedAt }
  }
  ... on Refusal { code message }
}"""
TEAM_OR_INVALID_FIELDS = TEAM_FIELDS[:-1] + "... on InvalidInput { fields { field } } }"
REFUSAL_CODE_FIELDS = "{ __typename ... on Refusal { code } }"
CREATE_TEAM = (
    "mutation ($name: String!) { createTeam(input: {name: $name}) " + TEAM_OR_INVALID_FIELDS + "}"
)
INVITE_TO_TEAM = (
    "mutation ($team: ID!, $email: EmailAddress!) "
    "{ inviteToTeam(input: {teamId: $team, email: $email}) " + TEAM_OR_INVALID_FIELDS + "}"
)
ACCEPT_INVITATION = (
    "mutation ($team: ID!) { acceptTeamInvitation(teamId: $team) " + TEAM_FIELDS + "}"
)
DECLINE_INVITATION = (
    "mutation ($team: ID!) { declineTeamInvitation(teamId: $team) " + REFUSAL_CODE_FIELDS + "}"
)
WITHDRAW_INVITATION = (
    "mutation ($team: ID!, $email: EmailAddress!) "
    "{ withdrawTeamInvitation(teamId: $team, email: $email) " + TEAM_FIELDS + "}"
)
LEAVE_TEAM = "mutation ($team: ID!) { leaveTeam(teamId: $team) " + REFUSAL_CODE_FIELDS + "}"
MY_TEAMS = "{ myTeams { id name members { user { id } } } }"
MY_INVITATIONS = "{ myTeamInvitations { teamId teamName invitedAt invitedBy { id name email } } }"
TEAM_BY_ID = "query ($id: ID!) { node(id: $id) { id ... on Team { name } } }"


@dataclass(frozen=True)
class TeamClient:
    """A signed-in user's client with the user's id and e-mail address."""

    client: GraphQLTestClient
    id: str
    email: str

    @property
    def token(self) -> str:
        """The user's access token."""
        assert self.client.token is not None
        return self.client.token

    async def execute(self, document: str, **variables: Any) -> Any:
        """Send a document and return its only field. The response must have no errors."""
        return await self.client.execute(document, **variables)

    async def create_team(self, name: str = "Relay") -> str:
        """Create a team of this user and return its id."""
        team: Json = await self.execute(CREATE_TEAM, name=name)
        assert team["__typename"] == "Team", team
        return str(team["id"])

    async def add_members(self, team_id: str, *others: "TeamClient") -> None:
        """Add others to a team: this user invites each, and each accepts."""
        for other in others:
            assert (await self.execute(INVITE_TO_TEAM, team=team_id, email=other.email))[
                "id"
            ] == team_id
            assert (await other.execute(ACCEPT_INVITATION, team=team_id))["id"] == team_id


async def create_team_clients(
    app: AppProcess, http: httpx.AsyncClient, count: int
) -> list[TeamClient]:
    """Return clients of this many new users."""
    tokens = create_user_tokens(app.environment, count).members
    clients = [GraphQLTestClient(http, app.url, token) for token in tokens]
    profiles = [await client.execute("{ me { id email } }") for client in clients]
    return [TeamClient(c, me["id"], me["email"]) for c, me in zip(clients, profiles, strict=True)]


def team_document(environment: Mapping[str, str], team_global_id: str) -> dict[str, Any] | None:
    """Return the document of a team, if it exists."""
    teams = stored_database(environment["SLOTLOCK_MONGO_URL"])["teams"]
    return teams.find_one({"_id": ObjectId(team_global_id.removeprefix("team_"))})
