"""Teams as clients use them: their documents, and people who know their own address."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import httpx
from bson import ObjectId
from pymongo import MongoClient

from tests.support.client import Client, Json
from tests.support.people import make_crowd
from tests.support.processes import AppProcess

TEAM = """{
  __typename
  ... on Team {
    id name createdAt members { since user { id email } } invitations { email invitedAt }
  }
  ... on Refusal { code message }
}"""
CHECKED = TEAM[:-1] + "... on InvalidInput { fields { field } } }"
LEFT = "{ __typename ... on Refusal { code } }"
CREATE_TEAM = "mutation ($name: String!) { createTeam(input: {name: $name}) " + CHECKED + "}"
INVITE = (
    "mutation ($team: ID!, $email: EmailAddress!) "
    "{ inviteToTeam(input: {teamId: $team, email: $email}) " + CHECKED + "}"
)
ACCEPT = "mutation ($team: ID!) { acceptTeamInvitation(teamId: $team) " + TEAM + "}"
DECLINE = "mutation ($team: ID!) { declineTeamInvitation(teamId: $team) " + LEFT + "}"
WITHDRAW = (
    "mutation ($team: ID!, $email: EmailAddress!) "
    "{ withdrawTeamInvitation(teamId: $team, email: $email) " + TEAM + "}"
)
LEAVE = "mutation ($team: ID!) { leaveTeam(teamId: $team) " + LEFT + "}"
MY_TEAMS = "{ myTeams { id name members { user { id } } } }"
MY_INVITATIONS = "{ myTeamInvitations { teamId teamName at invitedBy { id name email } } }"
NODE = "query ($id: ID!) { node(id: $id) { id ... on Team { name } } }"


@dataclass(frozen=True)
class Person:
    """Somebody signed in, with their id and address."""

    client: Client
    id: str
    email: str

    @property
    def token(self) -> str:
        """Their access token."""
        assert self.client.token is not None
        return self.client.token

    async def ask(self, query: str, **variables: Any) -> Any:
        """The only field of an answer without errors."""
        return await self.client.ask(query, **variables)

    async def create_team(self, name: str = "Relay") -> str:
        """The id of a new team of this person."""
        team: Json = await self.ask(CREATE_TEAM, name=name)
        assert team["__typename"] == "Team", team
        return str(team["id"])

    async def bring_in(self, team_id: str, *others: "Person") -> None:
        """Invite others, who accept."""
        for other in others:
            assert (await self.ask(INVITE, team=team_id, email=other.email))["id"] == team_id
            assert (await other.ask(ACCEPT, team=team_id))["id"] == team_id


async def people(app: AppProcess, http: httpx.AsyncClient, size: int) -> list[Person]:
    """So many people, new and signed in."""
    tokens = (await make_crowd(app.environment, size)).members
    clients = [Client(http, app.url, token) for token in tokens]
    each = [await client.ask("{ me { id email } }") for client in clients]
    return [Person(c, me["id"], me["email"]) for c, me in zip(clients, each, strict=True)]


def team_document(environment: Mapping[str, str], team_gid: str) -> dict[str, Any] | None:
    """The truth about a team, read past the app."""
    with closing(MongoClient[dict[str, Any]](environment["SLOTLOCK_MONGO_URL"])) as client:
        teams = client.get_default_database()["teams"]
        return teams.find_one({"_id": ObjectId(team_gid.removeprefix("team_"))})
