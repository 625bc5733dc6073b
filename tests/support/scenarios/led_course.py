"""A course with a leader, and everybody who may want something of it."""

import secrets
from dataclasses import dataclass

import httpx
from bson import ObjectId

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import Json, times_in
from tests.support.scenarios.families import set_guardians
from tests.support.stores.empty_database import stored_database

CREATE_LED = """mutation($name: String!, $leader: ID, $kind: ResourceKind! = STAFF) {
  createResource(input: {name: $name, kind: $kind, leaderId: $leader}) {
    __typename ... on Resource { id name leader { id } } ... on Refusal { code }
    ... on InvalidInput { fields { field code } }
  }
}"""
SET_LEADER = """mutation($id: ID!, $leader: ID) {
  updateResource(input: {resourceId: $id, leaderId: $leader}) {
    __typename ... on Resource { name leader { id } } ... on Refusal { code }
    ... on InvalidInput { fields { field code } }
  }
}"""
# `parted` was a guardian of the user, for whom `sibling` is another child of their guardian.
KINDS = (
    *("self", "guardian", "parted", "sibling", "teammate"),
    *("leader", "other", "former", "member", "organizer"),
)


@dataclass
class LedCourse:
    """A full course, somebody who waits for it, another course, and a client of each kind.

    `former` led the course before `leader`, and `other` leads the other course.
    """

    clients: dict[str, BookingClient]
    slot_id: str
    booking_id: str
    other_slot_id: str
    other_booking_id: str
    resource_id: str
    resource: str
    other_resource: str
    user_ids: dict[str, str]

    @property
    def tag(self) -> str:
        """A text that is no part of what belongs to another course."""
        return self.resource[-8:]

    async def set_leader(self, kind: str | None) -> Json:
        """Give the course to somebody, or to nobody."""
        changed: Json = await self.clients["organizer"].execute(
            SET_LEADER, id=self.resource_id, leader=kind and self.user_ids[kind]
        )
        return changed


async def led_course(app: AppProcess, http: httpx.AsyncClient) -> LedCourse:
    """Create the course, which begins in an hour, and its clients."""
    members, organizer = create_booking_clients(http, len(KINDS) - 1, app)
    clients = dict(zip(KINDS, [*members, organizer], strict=True))
    user_ids = {kind: await client.fetch_user_id() for kind, client in clients.items()}
    await clients["self"].create_team_with(clients["teammate"])
    for kind, guardians in (("self", ["parted", "guardian"]), ("sibling", ["guardian"])):
        await set_guardians(organizer, user_ids[kind], [user_ids[each] for each in guardians])

    async def add_course(leader: str, first: str) -> tuple[str, str, str, str]:
        resource_name = f"Berg {secrets.token_hex(4)}"
        made = await organizer.execute(CREATE_LED, name=resource_name, leader=user_ids[leader])
        slot_id = await organizer.add_slot(resource=resource_name, **times_in(1))
        booked = await clients[first].book_slot(slot_id, userId=user_ids["self"])
        return resource_name, made["id"], slot_id, booked["booking"]["id"]

    # Each place was made by somebody who has no right any more.
    resource, resource_id, slot_id, booking_id = await add_course("former", "parted")
    other_resource, _, other_slot_id, other_booking_id = await add_course("other", "self")
    await set_guardians(organizer, user_ids["self"], [user_ids["guardian"]])
    assert (await clients["member"].join(slot_id))["__typename"] == "WaitlistJoined"
    course = LedCourse(
        clients,
        slot_id,
        booking_id,
        other_slot_id,
        other_booking_id,
        resource_id,
        resource,
        other_resource,
        user_ids,
    )
    assert (await course.set_leader("leader"))["leader"] == {"id": user_ids["leader"]}
    return course


def change_document(app: AppProcess, collection: str, global_id: str, **fields: object) -> None:
    """Set fields of a stored document."""
    stored = stored_database(app.environment["SLOTLOCK_MONGO_URL"])[collection]
    stored.update_one({"_id": ObjectId(global_id[-24:])}, {"$set": fields})
