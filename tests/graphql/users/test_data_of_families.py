"""What a guardian, a child and an admin download about a family, and what a ban leaves."""

import json
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from bson import ObjectId

from slotlock.api.endpoints.personal_data_endpoint import _chunks
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.sessions import open_session
from slotlock.domain.users.user import Role, UserId
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.users.privacy import PersonalDataQueries
from slotlock.infrastructure.mongo.users.user_documents import new_login_name, to_new_document
from slotlock.services.container import utc_now
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import Json
from tests.support.clients.exports import get_checked
from tests.support.clients.fixtures import Five
from tests.support.stores.users import auth_for_database, insert_user

MEMBER_COUNT = 4
BAN = "mutation($user: ID!) { banUser(userId: $user) { __typename } }"
OUTBOX = """query($user: ID!) { outbox(filter: { userId: $user, channel: MAIL }) {
  totalCount nodes { user { id } dependents { id } } } }"""
MY_BOOKINGS = "query($userId: ID) { myBookings(userId: $userId) { nodes { id } } }"


@dataclass
class Family:
    """Mia of two parents, who has an account of her own, and Ben of his mother, who has none."""

    mother: BookingClient
    father: BookingClient
    mia: BookingClient
    other: BookingClient
    organizer: BookingClient
    ids: dict[str, str]
    auth: Auth
    database: Any

    def object_id(self, name: str) -> ObjectId:
        """Return the id of one of the family as the database has it."""
        return ObjectId(self.ids[name][-24:])

    async def set(self, user: str, **fields: object) -> None:
        """Set fields of the stored user."""
        change = {"$set": fields}
        await self.database["users"].update_one({"_id": self.object_id(user)}, change)

    async def add_mail(self, user: str, *dependents: str) -> None:
        """Store a mail that was sent, perhaps to a guardian about children."""
        ids = [self.object_id(each) for each in dependents]
        about = {"dependents": ids} if ids else {}
        mail = {"_id": secrets.token_hex(8), "channel": "mail", "kind": "booked", "at": utc_now()}
        sent = {"user": self.object_id(user), "recipient": f"{user}@home.test", **about}
        await self.database["outbox"].insert_one({**mail, **sent, "state": "sent", "attempts": 1})


@pytest.fixture
async def family(two_apps: Pair, clients: Five) -> AsyncIterator[Family]:
    """Store a family, and mails about Mia."""
    url = two_apps[0].environment["SLOTLOCK_MONGO_URL"]
    client, database = connect(url)
    async with auth_for_database(url) as auth:
        names = ("mother", "father", "mia", "other", "organizer")
        found = dict(zip(names, clients, strict=True))
        ids = {name: await user.fetch_user_id() for name, user in found.items()}
        family = Family(*clients, ids, auth, database)
        parents = [family.object_id("mother"), family.object_id("father")]
        await family.set("mother", name="Mother", sortName="mother")
        await family.set("father", name="Father")
        await family.set("mia", name="Mia", sortName="mia", guardians=parents)
        ben = to_new_document("Ben", new_login_name(), Role.MEMBER, None, utc_now())
        await database["users"].insert_one({**ben, "guardians": parents[:1]})
        ids["ben"] = f"user_{ben['_id']}"
        for user, *dependents in (("mia",), ("mother", "mia", "ben"), ("father", "mia")):
            await family.add_mail(user, *dependents)
        yield family
    await client.close()


async def download(user: BookingClient, path: str = "personal-data") -> tuple[str, Json]:
    """Return the personal data as text, and parsed."""
    response = await get_checked(user, path)
    assert response.status_code == 200, response.text
    return response.text, json.loads(response.text)


async def test_the_data_of_a_guardian_have_those_of_the_children_and_no_address_of_others(
    family: Family,
) -> None:
    slot_id = await family.organizer.add_slot(title="Robotics")
    booked = (await family.mia.book_slot(slot_id))["booking"]
    text, data = await download(family.mother)
    ben, mia = data["dependents"]
    assert [each["account"][0]["name"] for each in (ben, mia)] == ["Ben", "Mia"]
    assert [each["id"] for each in mia["bookings"]] == [booked["id"]]
    assert mia["account"][0]["guardians"] == [
        {"userId": family.ids["mother"], "name": "Mother"},
        {"userId": family.ids["father"], "name": "Father"},
    ]
    assert {"email", "username"}.isdisjoint(ben["account"][0])
    assert mia.keys() == data.keys() - {"dependents"}
    assert [each.get("recipient") for each in mia["mails"]] == [None] * 3
    assert [each["dependentIds"] for each in mia["mails"][1:]] == [[family.ids["mia"]]] * 2
    (own,) = data["mails"]
    about = [family.ids[name] for name in ("mia", "ben")]
    assert (own["recipient"], own["dependentIds"]) == ("mother@home.test", about)
    father = (await family.father.execute("{ me { email } }"))["email"]
    assert "father@home.test" not in text
    assert father not in text
    await family.set("mia", guardians=[family.object_id("father")])
    text, data = await download(family.mother)
    assert [each["account"][0]["name"] for each in data["dependents"]] == ["Ben"]
    assert "Robotics" not in text


async def test_organizers_find_the_mails_about_a_child_to_whomever_they_went(
    family: Family,
) -> None:
    readers = {"mia": {"mia", "mother", "father"}, "ben": {"mother"}, "father": {"father"}}
    for name, expected in readers.items():
        found = await family.organizer.execute(OUTBOX, user=family.ids[name])
        users = {each["user"]["id"] for each in found["nodes"]}
        assert (users, found["totalCount"]) == ({family.ids[n] for n in expected}, len(expected))
    (of_ben,) = (await family.organizer.execute(OUTBOX, user=family.ids["ben"]))["nodes"]
    assert [each["id"] for each in of_ben["dependents"]] == [family.ids[n] for n in ("mia", "ben")]


async def test_the_data_of_a_child_name_the_guardians_without_their_addresses(
    family: Family,
) -> None:
    session = await open_session(family.auth, await insert_user(family.auth, Role.ADMIN))
    admin = BookingClient(family.mia.http, family.mia.url, session.access_token)
    for reader, path in ((family.mia, ""), (admin, f"/{family.ids['mia']}")):
        text, data = await download(reader, f"personal-data{path}")
        assert [each["name"] for each in data["account"][0]["guardians"]] == ["Mother", "Father"]
        assert [each.get("recipient") for each in data["mails"]] == ["mia@home.test", None, None]
        assert "father@home.test" not in text
        assert data["dependents"] == []
    _, data = await download(family.other)
    assert data["dependents"] == []
    refused = await get_checked(family.mother, f"personal-data/{family.ids['mia']}")
    assert refused.status_code == 403, "the guardian's own document has what is about the child"


async def test_a_guardian_who_is_removed_during_the_download_gets_no_further_child(
    family: Family,
) -> None:
    user_id = UserId(str(family.object_id("mother")))
    caller = await authenticate(family.auth, f"Bearer {family.mother.token}")
    assert caller is not None
    queries = PersonalDataQueries(family.database)
    children = [UserId(str(family.object_id(each))) for each in ("ben", "mia")]
    text = ""
    tickets: dict[UserId, list[dict[str, str]]] = {each: [] for each in (user_id, *children)}
    async for chunk in _chunks(family.auth, caller, queries, user_id, tickets):
        if '"Ben"' in chunk:
            await family.set("mia", guardians=[family.object_id("father")])
        text += chunk
    assert [each["account"][0]["name"] for each in json.loads(text)["dependents"]] == ["Ben"]


async def test_a_banned_guardian_acts_no_more_and_the_places_of_the_child_stay(
    family: Family,
) -> None:
    slots = [await family.organizer.add_slot(capacity=2) for _ in range(2)]
    child = {"userId": family.ids["mia"]}
    booked = (await family.mother.book_slot(slots[0], **child))["booking"]["id"]
    await family.organizer.execute(BAN, user=family.ids["mother"])
    assert await family.mother.error_code(MY_BOOKINGS, **child) == "UNAUTHENTICATED"
    assert (await family.organizer.fetch_booking(booked))["status"] == "CONFIRMED"
    assert (await family.father.book_slot(slots[1], **child))["__typename"] == "Booked"
    assert (await family.father.cancel_booking(booked))["__typename"] == "BookingCancelled"


async def test_guardians_do_not_book_for_a_banned_child_whose_places_stay(family: Family) -> None:
    slots = [await family.organizer.add_slot() for _ in range(2)]
    child = {"userId": family.ids["mia"]}
    booked = (await family.mother.book_slot(slots[0], **child))["booking"]["id"]
    await family.organizer.execute(BAN, user=family.ids["mia"])
    assert (await family.mother.book_slot(slots[1], **child))["code"] == "USER_BANNED"
    refused = await family.mother.book_all({"slotId": slots[1], **child})
    assert refused["refusals"][0]["refusal"]["code"] == "USER_BANNED"
    assert (await family.father.join(slots[0], family.ids["mia"]))["code"] == "USER_BANNED"
    assert (await family.father.fetch_booking(booked))["status"] == "CONFIRMED"
    assert (await family.father.move(booked, slots[1]))["code"] == "USER_BANNED"
    assert (await family.father.cancel_booking(booked))["__typename"] == "BookingCancelled"
