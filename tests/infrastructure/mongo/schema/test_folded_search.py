"""Slots, users and resources are found by one folding; slots and users follow a later one."""

from collections.abc import Awaitable, Callable

import pytest
from pymongo.errors import PyMongoError

from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.resources.resource import Resource, name_key
from slotlock.domain.slots.listing import SlotFilter, SlotOrder
from slotlock.domain.users.user import Role, UserFilter
from slotlock.infrastructure.mongo.client import Database, Document
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.indexes import index
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.slots import writer
from slotlock.infrastructure.mongo.slots.slot_documents import list_fields
from slotlock.services.container import utc_now
from tests.support.domain.builders import build_slot
from tests.support.domain.search_pairs import SEARCH_PAIRS
from tests.support.domain.selections import NOTHING
from tests.support.stores.query_plans import (
    CommandRecorder,
    plan_indexes,
    plan_stages,
    recorded_commands,
)
from tests.support.stores.slots import insert_new_slots

__all__ = ["recorded_commands"]

Recorded = tuple[Database, CommandRecorder]
Find = Callable[[Repositories, str], Awaitable[list[str]]]
NAMES = ["Übung", "高等数学A", "Łódź", "🎉", "Yoga"]
QUERIES = {"ubung": "Übung", "数学": "高等数学A", "lodz": "Łódź", "🎉": "🎉", "yog": "Yoga"}


async def insert(database: Database, *names: str) -> Repositories:
    """Build the indexes, and insert a slot, a user and a resource of each name."""
    repositories = Repositories(database)
    await repositories.indexes.build_missing()
    slots = [build_slot(3, id=new_slot_id(), title=name) for name in names]
    await insert_new_slots(database, *slots)
    for number, name in enumerate(names):
        email = f"{number:03}@x.test"
        assert await repositories.users.insert(name, email, Role.MEMBER, "hash", utc_now())
    return repositories


async def find_slots(repositories: Repositories, text: str) -> list[str]:
    """Return the titles that a search finds, by title."""
    order, now = SlotOrder.TITLE_ASC, utc_now()
    slot_filter = SlotFilter(text=text, include_past=True)
    page = await repositories.slots.page(slot_filter, order, 100, None, now, NOTHING)
    states = [await repositories.slots.find_with_roster(each.id) for each in page.items]
    return [state.slot.title for state in states if isinstance(state, SlotState)]


async def find_users(repositories: Repositories, text: str) -> list[str]:
    """Return the names that a search finds, by address."""
    page = await repositories.users.page(UserFilter(text=text), 100, None)
    return [user.name for user in page.items]


async def store_as_older_folding(database: Database) -> None:
    """Store the words and the sort keys as a folding did that has another mark."""
    for name, key in (("slots", "titleKey"), ("users", "sortName")):
        older = {"searchWords": ["#3", "older"], key: "older"}
        await database[name].update_many({}, {"$set": older})


async def stored(database: Database) -> list[Document]:
    """Return all slots, users and resources."""
    return [
        each
        for name in ("slots", "users", "resources")
        async for each in database[name].find({}, sort=[("_id", 1)])
    ]


async def test_mongodb_finds_what_the_table_says(recorded_commands: Recorded) -> None:
    texts = sorted({text for _, text, _ in SEARCH_PAIRS if text})
    repositories = await insert(recorded_commands[0], *texts)
    for query, text, is_found in SEARCH_PAIRS:
        if text in texts:
            for find in (find_slots, find_users):
                assert (text in await find(repositories, query)) is is_found, (query, text)


@pytest.mark.parametrize("text", ["高等数学 übung", "ubung", "łódź"])
async def test_a_folded_search_is_a_query_of_indexes(
    recorded_commands: Recorded, text: str
) -> None:
    database, recorder = recorded_commands
    repositories = await insert(database, *NAMES)
    for find in (find_slots, find_users):
        recorder.commands.clear()
        await find(repositories, text)
        command = recorder.commands[0]
        assert "COLLSCAN" not in await plan_stages(database, command)
        assert "search_words" in await plan_indexes(database, command)


async def test_an_interrupted_repair_continues(
    recorded_commands: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, _ = recorded_commands
    repositories = await insert(database, *NAMES)
    current = await stored(database)
    await store_as_older_folding(database)
    monkeypatch.setattr(index, "SEARCH_WORDS_BATCH_SIZE", 2)
    repaired = 0

    def fold_some(slot: Document) -> Document:
        nonlocal repaired
        repaired += 1
        if repaired == 3:
            raise PyMongoError("the process ends here")
        return list_fields(slot)

    with monkeypatch.context() as patch:
        patch.setattr(writer, "list_fields", fold_some)
        with pytest.raises(PyMongoError, match="ends here"):
            await repositories.indexes.build_missing()
    assert await database["slots"].count_documents({"titleKey": "older"}) == len(NAMES) - 2
    for _ in range(2):
        await repositories.indexes.build_missing()
        assert await stored(database) == current
    for query, name in QUERIES.items():
        for find in (find_slots, find_users):
            assert await find(repositories, query) == [name]


async def test_words_of_a_newer_version_are_left_alone(recorded_commands: Recorded) -> None:
    database, _ = recorded_commands
    repositories = await insert(database, *NAMES)
    for name in ("slots", "users"):
        await database[name].update_many({}, {"$set": {"searchWords.0": "#6"}})
    newer = await stored(database)
    await repositories.slot_writer.backfill_list_fields()
    await repositories.users.backfill_list_fields()
    assert await stored(database) == newer
    for find in (find_slots, find_users):
        assert await find(repositories, "yoga") == ["Yoga"]


@pytest.mark.parametrize("words", [None, [], ["#3", "yoga"], ["yoga"]])
async def test_words_without_a_mark_or_with_an_older_one_are_written_again(
    recorded_commands: Recorded, words: list[str] | None
) -> None:
    database, _ = recorded_commands
    repositories = await insert(database, "Yoga")
    current = await stored(database)
    update = {"$unset": {"searchWords": ""}} if words is None else {"$set": {"searchWords": words}}
    for name in ("slots", "users"):
        await database[name].update_many({}, update)
    await repositories.slot_writer.backfill_list_fields()
    await repositories.users.backfill_list_fields()
    assert await stored(database) == current


async def test_resources_are_found_by_any_part_of_their_folded_names(
    recorded_commands: Recorded,
) -> None:
    database, _ = recorded_commands
    repositories = await insert(database)
    for name in ("Große Aula", "Café 高等数学"):
        assert await repositories.resources.insert(Resource(name))

    async def find(text: str) -> list[str]:
        page = await repositories.resources.page(text, None, 10, None)
        return [resource.name for _, resource in page.items]

    assert await find("GROSSE") == await find("ße a") == ["Große Aula"]
    assert await find("Café") == await find("cafe") == await find("数学") == ["Café 高等数学"]
    assert name_key("Café") != name_key("Cafe")  # two names remain two resources
