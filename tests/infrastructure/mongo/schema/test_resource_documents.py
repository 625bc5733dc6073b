"""Resources and slots that an older version stored go on to work, beside those of this one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.booking.slot import SlotStatus
from slotlock.domain.resources.resource import Resource
from slotlock.domain.slots.resource_conflicts import ResourceUsage
from slotlock.infrastructure.mongo.client import Document
from tests.support.apps.fork_server import run_forked_command
from tests.support.apps.processes import database_url
from tests.support.domain.builders import NOW
from tests.support.polling import eventually
from tests.support.stores.slot_store import SlotStore

DAYS = NOW, NOW + timedelta(days=3)
SEVERAL: dict[str, Any] = {"resource": "Beamer", "several_resources": ("Beamer", "Hall")}


async def resources_by_name(store: SlotStore) -> list[Document]:
    """Return the stored resources, by name."""
    return await store.database["resources"].find({}, sort=[("_id", 1)]).to_list()


async def insert_older_documents(store: SlotStore) -> None:
    """Insert slots that name resources, and one resource as an older version stored it."""
    for name in ("Hall", "hall", "Lab", None):
        await store.insert_slot(resource=name)
    await store.insert_slot(**SEVERAL)
    await store.database["resources"].insert_one({"_id": "Lab", "version": 3})


async def test_texts_of_slots_become_resources_once_and_those_of_an_older_version_stay(
    store: SlotStore,
) -> None:
    await insert_older_documents(store)
    for _ in range(2):
        await store.repositories.resources.backfill()
        assert await resources_by_name(store) == [
            {"_id": "Beamer", "nameKey": "beamer", "foldedName": "beamer", "version": 1},
            {"_id": "Hall", "nameKey": "hall", "foldedName": "hall", "version": 1},
            {"_id": "Lab", "nameKey": "lab", "foldedName": "lab", "version": 3},
            {"_id": "hall", "nameKey": "hall\0hall", "foldedName": "hall", "version": 1},
        ]


async def test_a_deleted_resource_that_only_slots_name_which_are_over_stays_deleted(
    store: SlotStore,
) -> None:
    resources, long_ago = store.repositories.resources, NOW.replace(year=2020)
    assert await resources.insert(Resource("Hall"))
    await store.insert_slot(resource="Hall", status=SlotStatus.CANCELLED)
    await store.insert_slot(resource="Hall", start=long_ago, end=long_ago + timedelta(hours=1))
    assert await resources.delete("Hall", datetime.now(UTC)) == []
    await resources.backfill()
    assert await resources_by_name(store) == []


async def test_a_start_makes_resources_of_the_texts_of_slots(store: SlotStore) -> None:
    await insert_older_documents(store)

    async def are_complete() -> bool:
        return len(await resources_by_name(store)) == 4

    async with store.repositories.indexes.running():
        await eventually(are_complete, "the texts are resources")


async def test_migrate_makes_resources_of_the_texts_of_slots(
    servers: EmbeddedServers, store: SlotStore
) -> None:
    await insert_older_documents(store)
    url = database_url(servers, store.database.name)
    code, output = run_forked_command({"SLOTLOCK_MONGO_URL": url}, "migrate")
    assert code == 0, output
    found = await resources_by_name(store)
    assert [each["_id"] for each in found] == ["Beamer", "Hall", "Lab", "hall"]


@pytest.mark.parametrize(
    ("stored", "new"), [({"resource": "Hall"}, SEVERAL), (SEVERAL, {"resource": "Hall"})]
)
async def test_a_slot_with_one_resource_and_one_with_a_list_do_not_overlap(
    store: SlotStore, stored: dict[str, Any], new: dict[str, Any]
) -> None:
    old = await store.insert_slot(**stored)
    (document,) = await store.documents("slots")
    assert document["resource"] == ("Hall" if stored != SEVERAL else ["Beamer", "Hall"])
    wanted = await store.insert_slot(**new)
    _, found = await store.repositories.resources.find_overlapping(wanted.slot.resources, *DAYS)
    taken = ResourceUsage.from_slots(found).conflict_with(wanted.slot)
    assert taken is not None
    assert (taken.resource, taken.other.id) == ("Hall", old.id)
