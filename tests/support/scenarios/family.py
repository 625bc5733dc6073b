"""A child with two guardians, a sibling, and users who are no guardians of the child."""

from dataclasses import dataclass

import httpx
from bson import ObjectId
from pymongo import MongoClient

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import Json

KINDS = ("mother", "father", "child", "sibling", "other", "former", "member", "organizer")
# Those who are not the guardians of the child. `other` is the sibling's second guardian.
STRANGERS = ("sibling", "other", "former", "member", "organizer")


@dataclass
class Family:
    """A client of each kind. The dependents have a sign-in of their own, which not all have."""

    app: AppProcess
    clients: dict[str, BookingClient]
    user_ids: dict[str, str]

    def set_guardians(self, dependent: str, *guardians: str) -> None:
        """Store the guardians of a user."""
        ids = [ObjectId(self.user_ids[kind][-24:]) for kind in guardians]
        with MongoClient[Json](self.app.environment["SLOTLOCK_MONGO_URL"]) as mongo:
            users = mongo.get_default_database()["users"]
            query = {"_id": ObjectId(self.user_ids[dependent][-24:])}
            change = {"$set": {"guardians": ids}} if ids else {"$unset": {"guardians": ""}}
            assert users.update_one(query, change).matched_count


async def create_family(app: AppProcess, http: httpx.AsyncClient) -> Family:
    """Create the users. `former` was a guardian of the child before."""
    members, organizer = create_booking_clients(http, len(KINDS) - 1, app)
    clients = dict(zip(KINDS, [*members, organizer], strict=True))
    user_ids = {kind: await client.fetch_user_id() for kind, client in clients.items()}
    family = Family(app, clients, user_ids)
    family.set_guardians("child", "former")
    family.set_guardians("child", "mother", "father")
    family.set_guardians("sibling", "mother", "other")
    return family
