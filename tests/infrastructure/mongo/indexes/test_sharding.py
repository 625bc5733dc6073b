"""On shards, unique indexes and conditional writes hold only with the shard key; see ADR 0036."""

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.repositories import INDEXES
from slotlock.infrastructure.mongo.slots.documents import version_filter
from tests.infrastructure.mongo.test_query_plans import Recorded
from tests.support.domain.builders import build_slot
from tests.support.stores.all_queries import run_all_queries
from tests.support.stores.query_plans import recorded_commands

__all__ = ["recorded_commands"]

# Their shard key is `_id`.
SHARDED = {
    *("slots", "ended_bookings", "ended_waitlist_entries", "audit_notes"),
    *("idempotency_records", "user_versions", "session_versions"),
}
# Unique indexes of collections that stay on one shard.
UNIQUE_ON_ONE_SHARD = {
    *("users.email", "users.invitation", "users.calendar"),
    *("teams.members", "teams.invitations"),
}


def test_every_unique_index_is_of_a_collection_that_stays_on_one_shard() -> None:
    unique = [index for index in INDEXES if index.is_unique]
    assert {index.full_name for index in unique} == UNIQUE_ON_ONE_SHARD
    assert not SHARDED & {index.collection for index in unique}


def test_the_version_check_of_a_slot_names_the_shard_key() -> None:
    assert "_id" in version_filter(build_slot(1, id=new_slot_id()))


async def test_every_update_of_a_sharded_collection_names_the_shard_key_or_is_for_many(
    recorded_commands: Recorded,
) -> None:
    database, recorder = recorded_commands
    await run_all_queries(database)
    updates = [
        (command["update"], write)
        for command in recorder.commands
        if "updates" in command and command["update"] in SHARDED
        for write in command["updates"]
    ]
    assert updates
    for collection, write in updates:
        assert "_id" in write["q"] or write.get("multi"), (collection, write)
