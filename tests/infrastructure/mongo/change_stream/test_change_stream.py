"""The change stream names what others have to read again."""

from pathlib import Path

import pytest
from bson import ObjectId
from pymongo.errors import PyMongoError

from slotlock.auth.admin import account_admin
from slotlock.auth.sessions import open_session, refresh_session
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.change_stream.change_stream import ChangeBatch, ChangeStream
from slotlock.infrastructure.mongo.client import Document, connect, open_database
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.slots.write_set import WriteSet
from slotlock.infrastructure.mongo.slots.writer import SlotWriter
from tests.support.apps.processes import database_url
from tests.support.apps.replica_pair import replica_pair
from tests.support.domain.builders import build_slot
from tests.support.polling import poll_until
from tests.support.scenarios.stalled_majority import FAILPOINTS, stalled_majority
from tests.support.stores.slots import edit_silently, insert_new_slots
from tests.support.stores.users import auth_for_database, insert_user

ADA, BEN, CLEO = (ObjectId() for _ in range(3))
PUSHED: Document = {"$push": {"bookings": {"user": ADA}}, "$set": {"version": 2}}
REPLACED: Document = {"$set": {"bookings": [{"user": BEN}, {"user": ADA}], "version": 2}}
SHIFTED: list[Document] = [{"$set": {"bookings": [{"user": ADA, "at": 1}], "version": 2}}]


async def test_a_stream_without_changes_returns_after_the_time_it_asks_for(
    servers: EmbeddedServers,
) -> None:
    async with open_database(database_url(servers, "idle_stream")) as database:
        await insert_new_slots(database, build_slot(5, id=new_slot_id()))
        stream = ChangeStream(database)
        await stream.open()
        await stream.next_changes()  # the stream begins with the latest write
        for _ in range(2):  # with the timeout of the client, this would be no reply in time
            assert not await stream.next_changes()
        await stream.close()


async def test_after_an_election_the_stream_begins_with_what_the_new_primary_knows(
    tmp_path: Path,
) -> None:
    with replica_pair(tmp_path, can_succeed=True, options=FAILPOINTS) as pair:
        members = f"127.0.0.1:{pair.primary.port},127.0.0.1:{pair.secondary.port}"
        client, database = connect(f"mongodb://{members}/own?replicaSet=rs0")
        slots = database["slots"]
        slot = build_slot(5, id=new_slot_id())
        await insert_new_slots(database, slot)
        stream = ChangeStream(database)
        await stream.open()
        resumable = await slots.watch()
        with stalled_majority(pair.secondary.url):
            await edit_silently(database, slot)
            assert (await stream.next_changes()).slot_versions == {slot.id: 2}
            token = (await anext(resumable))["_id"]
            await client.admin.command("replSetStepDown", 60)

            async def is_opened() -> bool:
                try:
                    await stream.open()
                except PyMongoError:  # the driver finds the new primary
                    return False
                return True

            await poll_until(is_opened, bool, "there is a new primary")
            document = await slots.find_one({})
            assert document is not None
            assert document["version"] == 1  # which a new subscriber reads
        assert (await stream.next_changes()).slot_versions == {slot.id: 2}
        # The control: where the former stream ended, the change is not reported again.
        resumed = await slots.watch(resume_after=token, max_await_time_ms=100)
        assert await resumed.try_next() is None
        document = await slots.find_one({})
        assert document is not None
        assert document["version"] == 2
        await stream.close()
        await client.close()


async def test_the_stream_names_the_slots_that_were_deleted(servers: EmbeddedServers) -> None:
    async with open_database(database_url(servers, "deletion_stream")) as database:
        deleted, other = (build_slot(5, id=new_slot_id()) for _ in range(2))
        await insert_new_slots(database, deleted, other)
        stream = ChangeStream(database)
        await stream.open()
        await SlotWriter(database).commit(WriteSet((), deleted_slots=(deleted,)))
        await edit_silently(database, other)
        found: list[ChangeBatch] = []
        while not any(each.slot_versions.get(other.id, 1) > 1 for each in found):
            found.append(await stream.next_changes())  # each write may be a reply of its own
        assert {id_ for each in found for id_ in each.deleted_slot_ids} == {deleted.id}
        assert not any(each.session_ids for each in found)
        await stream.close()


async def test_the_stream_names_the_sessions_that_ended_or_got_another_role(
    servers: EmbeddedServers,
) -> None:
    async def next_session_ids() -> frozenset[str]:
        while not (ids := (await stream.next_changes()).session_ids):
            pass
        return ids

    async with auth_for_database(database_url(servers, "session_stream")) as auth:
        client, database = connect(database_url(servers, "session_stream"))
        user = await insert_user(auth)
        ended, other = [await open_session(auth, user) for _ in range(2)]
        stream = ChangeStream(database)
        await stream.open()
        ended_id, other_id = [
            auth.tokens.verify("access", each.access_token, auth.now()).session_id
            for each in (ended, other)
        ]
        await auth.repositories.sessions.end(ended_id)
        assert await next_session_ids() == {ended_id}
        await refresh_session(auth, other.refresh_token)  # changes neither
        await account_admin.set_role(auth, None, user.id, Role.ORGANIZER)
        assert await next_session_ids() == {other_id}
        await stream.close()
        await client.close()


@pytest.mark.parametrize("update", [PUSHED, REPLACED, SHIFTED], ids=["new", "replaced", "shifted"])
async def test_the_stream_names_the_users_of_new_bookings(
    servers: EmbeddedServers, update: Document | list[Document]
) -> None:
    async with open_database(database_url(servers, "user_stream")) as database:
        slots, slot_id = database["slots"], ObjectId()
        bookings = [{"user": BEN, "at": 1}, {"user": CLEO, "at": 2}]
        await slots.insert_one({"_id": slot_id, "bookings": bookings})
        stream = ChangeStream(database)
        await stream.open()
        await slots.update_one({"_id": slot_id}, update)
        while str(ADA) not in (await stream.next_changes()).user_ids:
            pass  # the stream begins with the insertion
        await stream.close()
