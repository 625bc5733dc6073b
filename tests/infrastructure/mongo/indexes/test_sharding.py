"""On shards, unique indexes and conditional writes hold only with the shard key; see ADR 0036."""

from collections.abc import Iterator

from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.repositories import INDEXES
from slotlock.infrastructure.mongo.slots.slot_document_updates import version_filter
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
    *("users.email", "users.invitation", "users.calendar", "users.password_reset"),
    "users.identity",
    *("teams.members", "teams.invitations", "resources.name_key", "holiday_lists.name_key"),
    *("draws.active", "draw_slots.slot", "draw_entries.leaf", "draw_wishes.users"),
    "draw_texts.part",
}

# Reads of these fields of slots, with any other filter.
PUBLIC_FIELDS = {"status", "campaign.published"}
PUBLIC_LISTS = "slots: campaign.published status ..."
# The reads that all shards answer: the fields of their filters, by reason.
READS_OF_ALL_SHARDS = {
    "lists and calendars of slots by time or title, and searches": {PUBLIC_LISTS},
    "slots that another folding stored, every two seconds in one process": {
        "slots: searchWords.0",
    },
    "the bookings and waitlist entries of a user": {
        "slots: _id bookings.user start",
        "slots: bookings.user",
        "slots: bookings.user start waitlist.user",
        "slots: bookings.user end",
        "slots: _id bookings.user end start",
        "slots: bookings.user end start",
        "slots: bookings.user end status",
        "slots: _id start waitlist.user",
        "slots: start waitlist.user",
        "slots: waitlist.user",
        "slots: end waitlist.user",
        "slots: _id end start waitlist.user",
        "slots: end start waitlist.user",
    },
    "rules across slots: one choice, no overlap, limits of a campaign": {
        "slots: bookings.user choiceGroup status",
        "slots: bookings.user campaign.forbidOverlap campaign.id end start status",
        "slots: campaign groupLimits.0 waitlist.user",
    },
    "the slots of a campaign, a series or a resource": {
        "slots: campaign.id",
        "slots: campaign.id end",
        "slots: campaign.id status",
        "slots: campaign.id number status",
        "slots: series",
        "slots: _id series start",
        "slots: end series",
        "slots: end series start",
        "slots: _id end series start",
        "slots: end resource start status",
    },
    "future slots that are in no period any more, after a change of the periods of a school day": {
        "slots: end status",
    },
    "expired holds, four times a second in one process": {"slots: nextDeadline"},
    "reminders, once a minute in one process": {
        "slots: $expr campaign.reminderMinutes reminderMinutes start status",
    },
    "the ended bookings of a slot": {
        "ended_bookings: _id endedAt slot",
        "ended_bookings: slot",
    },
    "an erasure, and the export of what is stored about a user": {
        "slots: bookings bookings.user start status",
        "ended_bookings: user",
        "ended_waitlist_entries: user",
        "audit_notes: users",
        "audit_notes: by users",
    },
    "whether a user waited for the canceled slots of a list, if it has any": {
        "ended_waitlist_entries: slot user",
    },
    "what changed in a slot, once after a change in one process": {
        "audit_notes: at slot",
        "ended_bookings: endedAt slot",
        "ended_waitlist_entries: at slot",
    },
    "what happened to campaigns and users, some times a second in one process, for webhooks": {
        "audit_notes: action at",
    },
}


def field_names(query: Document) -> set[str]:
    """Return the fields of a filter, with those inside `$and`, `$or` and `$nor`."""
    names = set()
    for name, value in query.items():
        if name in {"$and", "$or", "$nor"}:
            names |= {inner for branch in value for inner in field_names(branch)}
        else:
            names.add(name)
    return names


def name_of_read(collection: str, query: Document) -> str:
    """Return the collection and the fields of a filter, which public lists have in common."""
    names = field_names(query)
    return PUBLIC_LISTS if names >= PUBLIC_FIELDS else f"{collection}: {' '.join(sorted(names))}"


def names_shard_key(query: Document) -> bool:
    """Return whether a filter says which ids it is for, so that only their shards are asked."""
    ids = query.get("_id")
    return ids is not None and (not isinstance(ids, dict) or "$in" in ids)


def sharded_reads(commands: list[Document]) -> Iterator[tuple[str, Document]]:
    """Yield the collection and the filter of each read of a sharded collection."""
    for command in commands:
        if command.get("find") in SHARDED:
            yield command["find"], command["filter"]
        elif command.get("aggregate") in SHARDED:
            yield command["aggregate"], command["pipeline"][0].get("$match", {})


def test_every_unique_index_is_of_a_collection_that_stays_on_one_shard() -> None:
    unique = [index for index in INDEXES if index.is_unique]
    assert {index.full_name for index in unique} == UNIQUE_ON_ONE_SHARD
    assert not SHARDED & {index.collection for index in unique}


def test_the_version_check_of_a_slot_names_the_shard_key() -> None:
    assert "_id" in version_filter(build_slot(1, id=new_slot_id()))


async def test_every_write_and_each_read_that_is_not_listed_names_the_shard_key(
    recorded_commands: Recorded,
) -> None:
    database, recorder = recorded_commands
    await run_all_queries(database)
    assert_writes_name_shard_key(recorder.commands)
    reads = {
        name_of_read(collection, query)
        for collection, query in sharded_reads(recorder.commands)
        if not names_shard_key(query)
    }
    assert reads == set().union(*READS_OF_ALL_SHARDS.values())


def assert_writes_name_shard_key(commands: list[Document]) -> None:
    """Assert it for each write of a sharded collection but the updates of many documents."""
    updates = [
        (command["update"], write)
        for command in commands
        if "updates" in command and command["update"] in SHARDED
        for write in command["updates"]
    ]
    assert updates
    for collection, write in updates:
        assert "_id" in write["q"] or write.get("multi"), (collection, write)
    deleted = [
        (command["delete"], write["q"])
        for command in commands
        if command.get("delete") in SHARDED
        for write in command["deletes"]
    ]
    modified = [
        (command["findAndModify"], command["query"])
        for command in commands
        if command.get("findAndModify") in SHARDED
    ]
    assert deleted
    assert modified
    for collection, query in deleted + modified:
        assert names_shard_key(query), (collection, query)
