"""An audit note is written with the change that it describes, or neither is written."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from pymongo import AsyncMongoClient, monitoring
from pymongo.errors import OperationFailure

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.audit.audit_notes import AuditNote, note_campaign_change, note_slot_change
from slotlock.domain.users.user import Role, UserId
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.slots.write_set import WriteSet
from slotlock.services.container import utc_now
from tests.support.apps.processes import database_url
from tests.support.domain.builders import build_slot
from tests.support.stores.slot_store import open_slot_store
from tests.support.stores.slots import insert_open_campaign

ORGANIZER = UserId("b" * 24)


class TransactionCommands(monitoring.CommandListener):
    """Lists the commands of transactions."""

    def __init__(self) -> None:
        self.names = list[str]()

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command.get("autocommit") is False:
            self.names.append(event.command_name)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Ignore the success."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Ignore the failure."""


@pytest.fixture
async def database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """Yield a database that rejects every audit note."""
    async with open_slot_store(servers) as store:
        validate = partial(store.database.command, "collMod", "audit_notes")
        await validate(validator={"never": {"$exists": True}})
        yield store.database
        await validate(validator={})


async def test_a_slot_is_not_created_without_its_note(database: Database) -> None:
    slot = build_slot(id=new_slot_id())
    note = note_slot_change(None, slot, ORGANIZER)
    assert note is not None
    changes = WriteSet((), new_slots=(slot,), audit_notes=(note,))
    with pytest.raises(OperationFailure):
        await Repositories(database).slot_writer.commit(changes)
    assert await database["slots"].count_documents({}) == 0


async def test_a_campaign_is_not_changed_without_its_note(database: Database) -> None:
    campaigns, now = Repositories(database).campaigns, utc_now()
    before = await insert_open_campaign(database, ())
    closes_at = before.terms.closes_at + timedelta(days=1)
    after = replace(before, terms=replace(before.terms, version=2, closes_at=closes_at))
    note = note_campaign_change(before, after, ORGANIZER, now)
    with pytest.raises(OperationFailure):
        await campaigns.update(before, after, now, note)
    assert await campaigns.find(before.id) == before


async def test_a_note_is_written_in_the_transaction_of_its_change(servers: EmbeddedServers) -> None:
    commands = TransactionCommands()
    client: AsyncMongoClient[Document] = AsyncMongoClient(
        database_url(servers, "notes"), tz_aware=True, event_listeners=[commands]
    )
    async with client:
        database, now = client.get_default_database(), utc_now()
        before = await insert_open_campaign(database, ())
        after = replace(before, name="Spring", terms=replace(before.terms, version=2))
        note = note_campaign_change(before, after, ORGANIZER, now)
        commands.names.clear()
        assert await Repositories(database).campaigns.update(before, after, now, note)
        assert commands.names == ["findAndModify", "insert", "commitTransaction"]
        commands.names.clear()
        assert not await Repositories(database).campaigns.update(before, after, now, note)
        assert commands.names == ["findAndModify", "commitTransaction"]


async def test_a_user_is_not_changed_without_a_note(database: Database) -> None:
    repositories, now = Repositories(database), utc_now()
    users = repositories.users
    ada = await users.insert("Ada", "ada@slotlock.test", Role.MEMBER, "hash", now)
    assert ada is not None
    for change in (
        users.set_groups(ada.id, ["5a"], ORGANIZER, now),
        repositories.account_admin_writer.set_role(ada.id, Role.ADMIN, None, now),
        repositories.bans.ban(ada, ORGANIZER, "Loud", now),
        users.insert("Ben", "ben@slotlock.test", Role.ORGANIZER, "hash", now),
    ):
        with pytest.raises(OperationFailure):
            await change
    assert [user async for user in users.find_all()] == [ada]


async def test_nobody_is_invited_without_a_note(database: Database) -> None:
    invitations, now = Repositories(database).invitations, utc_now()
    await database["users"].insert_one(
        {"name": "Ada", "email": "ada@slotlock.test", "role": "member", "createdAt": now}
        | {"searchWords": [], "withoutPassword": True}
    )
    (ada,) = await invitations.find_invitable(None, list(Role), 10, None)
    note = AuditNote(now, ORGANIZER, NoteAction.USERS_INVITED, ())
    with pytest.raises(OperationFailure):
        await invitations.save({"hash": ada}, list(Role), now + timedelta(days=1), note)
    assert await invitations.find("hash", now) is None
