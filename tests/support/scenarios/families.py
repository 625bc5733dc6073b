"""Guardians and the users for whom they act."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import httpx
from bson import ObjectId
from pymongo.database import Database

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.stores.empty_database import stored_database

FAMILY_KINDS = ("mother", "father", "child", "sibling", "other", "former", "member", "organizer")
# Those who are no guardians of the child.
STRANGERS = ("sibling", "other", "former", "member", "organizer")
CREATE_CHILD = """mutation($input: CreateUserInput!) { createUser(input: $input) {
  __typename ... on Refusal { code }
  ... on InvalidInput { fields { field code values { name value } } }
  ... on UserCreated { invitationToken user {
    id name email username hasPassword guardians { id }
  } }
} }"""
UPDATE_USER = """mutation($input: UpdateUserInput!) { updateUser(input: $input) {
  __typename ... on Refusal { code } ... on InvalidInput { fields { field code } }
  ... on UserUpdated { user { id email username guardians { id } } }
} }"""


async def set_guardians(
    organizer: GraphQLTestClient, user_id: str, guardian_ids: Sequence[str]
) -> Json:
    """Replace the guardians of a user and return the result."""
    changes = {"userId": user_id, "guardianIds": guardian_ids}
    changed: Json = await organizer.execute(UPDATE_USER, input=changes)
    return changed


async def create_child(
    organizer: GraphQLTestClient, *guardian_ids: str, name: str = "", **fields: object
) -> Json:
    """Create a user with these guardians, by default without a login name; return the result."""
    child = {"name": name or f"Mia {secrets.token_hex(4)}", "guardianIds": guardian_ids, **fields}
    created: Json = await organizer.execute(CREATE_CHILD, input=child)
    return created


def store_guardians(database: "Database[Json]", user_id: str, *guardian_ids: str) -> None:
    """Replace the guardians of a user in the database."""
    guardians = [ObjectId(each[-24:]) for each in guardian_ids]
    change = {"$set": {"guardians": guardians}} if guardians else {"$unset": {"guardians": ""}}
    database["users"].update_one({"_id": ObjectId(user_id[-24:])}, change)


@dataclass
class Family:
    """A client of each kind of user. The dependents sign in themselves, which not all do.

    `other` is the second guardian of the sibling.
    """

    app: AppProcess
    clients: dict[str, BookingClient]
    user_ids: dict[str, str]

    def set_guardians(self, dependent: str, *guardians: str) -> None:
        """Store the guardians of a user."""
        database = stored_database(self.app.environment["SLOTLOCK_MONGO_URL"])
        ids = [self.user_ids[kind] for kind in guardians]
        store_guardians(database, self.user_ids[dependent], *ids)


async def create_family(app: AppProcess, http: httpx.AsyncClient) -> Family:
    """Create the users. `former` was a guardian of the child before."""
    members, organizer = create_booking_clients(http, len(FAMILY_KINDS) - 1, app)
    clients = dict(zip(FAMILY_KINDS, [*members, organizer], strict=True))
    user_ids = {kind: await client.fetch_user_id() for kind, client in clients.items()}
    family = Family(app, clients, user_ids)
    family.set_guardians("child", "former")
    family.set_guardians("child", "mother", "father")
    family.set_guardians("sibling", "mother", "other")
    return family
