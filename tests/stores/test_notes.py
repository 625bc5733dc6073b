"""A note is written with what it tells of, or neither is."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import OperationFailure

from slotlock.api.embedded import Servers
from slotlock.desk.desk import utc_now
from slotlock.domain.audit import Happening
from slotlock.domain.notes import Note, campaign_note, slot_note
from slotlock.domain.people import Role, UserId
from slotlock.stores.campaigns import Campaigns
from slotlock.stores.ids import new_slot_id
from slotlock.stores.mongo import Database, Document
from slotlock.stores.slots import Slots
from slotlock.stores.users import Users
from slotlock.stores.writes import Changes, Writes
from tests.domain.test_booking import slot
from tests.stores.test_report_plans import campaign_for
from tests.support.processes import database_url

BOSS = UserId("b" * 24)


@pytest.fixture
async def database(servers: Servers) -> AsyncIterator[Database]:
    """A database that keeps no notes: each is refused."""
    name = f"notes_{new_slot_id()}"
    client: AsyncMongoClient[Document] = AsyncMongoClient(
        database_url(servers, name), tz_aware=True, w="majority"
    )
    try:
        empty = client.get_default_database()
        for store in (Slots(empty), Campaigns(empty), Users(empty)):
            await store.prepare()
        refusal = {"never": {"$exists": True}}
        await empty.command("collMod", "notes", validator=refusal)
        yield empty
        await client.drop_database(name)
    finally:
        await client.close()


async def test_a_slot_is_not_created_without_its_note(database: Database) -> None:
    new = replace(slot(), id=new_slot_id())
    note = slot_note(None, new, BOSS)
    assert note is not None
    with pytest.raises(OperationFailure):
        await Writes(database).commit(Changes((), new=(new,), notes=(note,)))
    assert await database["slots"].count_documents({}) == 0


async def test_a_campaign_is_not_changed_without_its_note(database: Database) -> None:
    before = await campaign_for(database, ())
    later = before.terms.closes_at + timedelta(days=1)
    after = replace(before, terms=replace(before.terms, version=2, closes_at=later))
    now = utc_now()
    with pytest.raises(OperationFailure):
        await Campaigns(database).change(
            before, after, now, campaign_note(before, after, BOSS, now)
        )
    assert await Campaigns(database).find(before.id) == before


async def test_a_person_is_not_changed_without_the_note(database: Database) -> None:
    users, now = Users(database), utc_now()
    ada = await users.add("Ada", "ada@slotlock.test", Role.MEMBER, "hash", now)
    assert ada is not None
    for change in (
        users.set_groups(ada.id, ["5a"], BOSS, now),
        users.set_role(ada.email, Role.ADMIN, None, now),
        users.bans.ban(ada, BOSS, "Loud", now),
        users.add("Ben", "ben@slotlock.test", Role.ORGANIZER, "hash", now),
    ):
        with pytest.raises(OperationFailure):
            await change
    assert [user async for user in users.all()] == [ada]


async def test_nobody_is_invited_without_the_note(database: Database) -> None:
    users, now = Users(database), utc_now()
    await database["users"].insert_one(
        {"name": "Ada", "email": "ada@slotlock.test", "role": "member", "createdAt": now}
        | {"words": [], "withoutPassword": True}
    )
    (ada,) = await users.invitations.invitable(None, list(Role), 10, None)
    note = Note(now, BOSS, Happening.PEOPLE_INVITED, ())
    with pytest.raises(OperationFailure):
        await users.invitations.keep({ada.id: "hash"}, list(Role), now + timedelta(days=1), note)
    assert await users.invitations.find("hash", now) is None
