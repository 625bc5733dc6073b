"""A note is written with what it tells of, or neither is."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import OperationFailure

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.audit.log import AuditAction
from slotlock.domain.audit.notes import AuditNote, note_campaign_change, note_slot_change
from slotlock.domain.users.user import Role, UserId
from slotlock.infrastructure.mongo.campaigns.repository import CampaignRepository
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, check_written
from slotlock.infrastructure.mongo.slots.repository import SlotRepository
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from slotlock.infrastructure.mongo.users.repository import UserRepository
from slotlock.services.container import utc_now
from tests.support.apps.processes import database_url
from tests.support.domain.builders import build_slot
from tests.support.stores.campaigns import insert_open_campaign

BOSS = UserId("b" * 24)


@pytest.fixture
async def database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """A database that keeps no notes: each is refused."""
    name = f"notes_{new_slot_id()}"
    client: AsyncMongoClient[Document] = AsyncMongoClient(
        database_url(servers, name), tz_aware=True, w="majority"
    )
    try:
        empty = client.get_default_database()
        for store in (SlotRepository(empty), CampaignRepository(empty), UserRepository(empty)):
            await store.create_indexes()
        refusal = {"never": {"$exists": True}}
        await empty.command("collMod", "audit_notes", validator=refusal)
        yield empty
        await client.drop_database(name)
    finally:
        await client.close()


async def test_a_slot_is_not_created_without_its_note(database: Database) -> None:
    new = replace(build_slot(), id=new_slot_id())
    note = note_slot_change(None, new, BOSS)
    assert note is not None
    with pytest.raises(OperationFailure):
        check_written(
            await SlotWriter(database).commit(ChangeSet((), new_slots=(new,), audit_notes=(note,)))
        )
    assert await database["slots"].count_documents({}) == 0


async def test_a_campaign_is_not_changed_without_its_note(database: Database) -> None:
    before = await insert_open_campaign(database, ())
    later = before.terms.closes_at + timedelta(days=1)
    after = replace(before, terms=replace(before.terms, version=2, closes_at=later))
    now = utc_now()
    with pytest.raises(OperationFailure):
        await CampaignRepository(database).update(
            before, after, now, note_campaign_change(before, after, BOSS, now)
        )
    assert await CampaignRepository(database).find(before.id) == before


async def test_a_person_is_not_changed_without_the_note(database: Database) -> None:
    users, now = UserRepository(database), utc_now()
    ada = await users.insert("Ada", "ada@slotlock.test", Role.MEMBER, "hash", now)
    assert ada is not None
    for change in (
        users.set_groups(ada.id, ["5a"], BOSS, now),
        users.set_role(ada.email, Role.ADMIN, None, now),
        users.bans.ban(ada, BOSS, "Loud", now),
        users.insert("Ben", "ben@slotlock.test", Role.ORGANIZER, "hash", now),
    ):
        with pytest.raises(OperationFailure):
            await change
    assert [user async for user in users.find_all()] == [ada]


async def test_nobody_is_invited_without_the_note(database: Database) -> None:
    users, now = UserRepository(database), utc_now()
    await database["users"].insert_one(
        {"name": "Ada", "email": "ada@slotlock.test", "role": "member", "createdAt": now}
        | {"searchWords": [], "withoutPassword": True}
    )
    (ada,) = await users.invitations.find_invitable(None, list(Role), 10, None)
    note = AuditNote(now, BOSS, AuditAction.USERS_INVITED, ())
    with pytest.raises(OperationFailure):
        await users.invitations.save({ada.id: "hash"}, list(Role), now + timedelta(days=1), note)
    assert await users.invitations.find("hash", now) is None
