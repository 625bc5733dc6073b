"""Guardians and the users for whom they act."""

import secrets
from collections.abc import Sequence

from bson import ObjectId
from pymongo.database import Database

from tests.support.clients.client import GraphQLTestClient, Json

CREATE_CHILD = """mutation($input: CreateUserInput!) { createUser(input: $input) {
  __typename ... on Refusal { code } ... on InvalidInput { fields { field code } }
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
