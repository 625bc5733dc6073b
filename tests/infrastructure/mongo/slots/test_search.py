"""A search for a rare word reads what it finds, and not every slot."""

from collections.abc import Sequence

from bson import ObjectId

from slotlock.domain.slots.listing import SlotFilter, SlotOrder
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.search_words import to_stored_words
from slotlock.infrastructure.mongo.slots.slot_documents import to_document
from slotlock.infrastructure.mongo.slots.slot_list_queries import list_query
from slotlock.services.container import utc_now
from tests.support.domain.builders import build_slot
from tests.support.stores.query_plans import CommandRecorder, recorded_commands

__all__ = ["recorded_commands"]

SLOTS = 6_000
PAGE_SIZE = 21


async def insert_slots(database: Database) -> None:
    """Insert slots: every third is about math, three about zebras."""
    await Repositories(database).indexes.build_missing()
    state = to_document(build_slot(3, id=new_slot_id()))
    documents: list[Document] = []
    for number in range(SLOTS):
        words = ["lesson", *(["math"] if number % 3 == 0 else [])]
        words += ["zebra"] if number % (SLOTS // 3) == 0 else []
        documents.append(
            {**state, "_id": ObjectId(), "searchWords": to_stored_words(" ".join(words))}
        )
    await database["slots"].insert_many(documents)


async def examined(database: Database, query: Document) -> tuple[int, int]:
    """Return how many slots MongoDB found, and how many documents it read for that."""
    command = {"find": "slots", "filter": query, "sort": {"start": 1, "_id": 1}, "limit": PAGE_SIZE}
    explained = await database.command("explain", command, verbosity="executionStats")
    stats = explained["executionStats"]
    return stats["nReturned"], max(stats["totalDocsExamined"], stats["totalKeysExamined"])


# Texts with how many slots of a page they find, and how many documents or keys they may read.
BOUNDS = {
    "zebra": (3, 10),
    "missing": (0, 10),
    "math": (PAGE_SIZE, 200),
    "math zebra": (1, 10),
    "Zébra": (3, 10),
}


async def test_a_search_by_anyone_reads_few_slots(
    recorded_commands: tuple[Database, CommandRecorder],
) -> None:
    database, _ = recorded_commands
    await insert_slots(database)
    for text, (found, bound) in BOUNDS.items():
        anyone = SlotFilter(text=text, include_unpublished_campaigns=False)
        query = list_query(anyone, SlotOrder.START_ASC, None, utc_now())
        returned, read = await examined(database, query)
        assert (returned, read <= bound) == (found, True), (text, read)
    # Control: a pattern with the flag of Python scans all slots.
    query = list_query(SlotFilter(text="zebra"), SlotOrder.START_ASC, None, utc_now())
    patterns: Sequence[Document] = query["searchWords"]["$all"]
    flagged = [each.try_compile() for each in patterns]  # type: ignore[attr-defined]
    query["searchWords"] = {"$all": flagged}
    assert (await examined(database, query))[1] >= SLOTS
