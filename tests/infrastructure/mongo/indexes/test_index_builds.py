"""A start never waits for an index, and no index is lost. MongoDB stops the builds by failpoint."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from bson import ObjectId
from pymongo import MongoClient, timeout
from pymongo.errors import DuplicateKeyError, PyMongoError
from pymongo.read_concern import ReadConcern

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.client import (
    Database,
    Document,
    IndexMissingError,
    is_unavailable,
    open_database,
)
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.mongo.indexes import index_builder
from slotlock.infrastructure.mongo.indexes.index import Index, IndexConflictError, find_missing
from slotlock.infrastructure.mongo.indexes.index_builder import TaskLease
from slotlock.infrastructure.mongo.repositories import INDEXES, Repositories
from slotlock.infrastructure.mongo.slots.slot_documents import to_document
from slotlock.services.container import utc_now
from tests.support.apps.fork_server import forked_app, run_forked_command
from tests.support.apps.processes import app_environment
from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.domain.builders import build_slot
from tests.support.polling import eventually

SLOTS = 500
LIST = "slots.list"
EMAIL = "users.email"


@pytest.fixture(scope="module")
def mongod(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableServer]:
    """Yield a mongod that has failpoints."""
    options = ("--setParameter", "enableTestCommands=1")
    directory = tmp_path_factory.mktemp("index_builds") / "mongod"
    with restartable_server(directory, "mongod", options) as running:
        yield running


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[tuple[Database, Repositories]]:
    """Open a database as a process of its own would."""
    async with open_database(url) as database:
        yield database, Repositories(database)


@pytest.fixture
def url(mongod: RestartableServer) -> str:
    """Return the URL of a new database."""
    return mongod.url.replace("/own?", f"/builds{ObjectId()}?")


@contextmanager
def stopped_builds(mongod: RestartableServer) -> Iterator[None]:
    """Let index builds begin, and not go on before the end of the block."""
    point = {"configureFailPoint": "hangAfterStartingIndexBuild"}
    with MongoClient[Document](mongod.url) as client:
        client.admin.command({**point, "mode": "alwaysOn"})
        try:
            yield
        finally:
            client.admin.command({**point, "mode": "off"})


async def lose_indexes(database: Database, repositories: Repositories) -> None:
    """Fill a database, and drop an index of slots and the one that makes addresses unique."""
    await repositories.indexes.build_missing()
    start = utc_now() + timedelta(days=1)
    slots = [build_slot(3, id=new_slot_id(), start=start) for _ in range(SLOTS)]
    await database["slots"].insert_many([to_document(slot) for slot in slots])
    await repositories.users.insert("Ada", "ada@slotlock.test", Role.MEMBER, "hash", utc_now())
    await database["slots"].drop_index("list")
    await database["users"].drop_index("email")


async def missing_names(database: Database) -> set[str]:
    """Return the indexes that the database lacks."""
    return {index.full_name for index in await find_missing(database, INDEXES)}


async def is_building(database: Database) -> bool:
    """Return whether MongoDB has begun to build an index of this database."""
    stages: list[Document] = [
        {"$currentOp": {"allUsers": True}},
        {"$match": {"command.createIndexes": {"$exists": True}, "ns": {"$regex": database.name}}},
    ]
    admin = database.client.admin.with_options(read_concern=ReadConcern("local"))
    return bool(await (await admin.aggregate(stages)).to_list())


async def has_no_build(database: Database) -> bool:
    """Return whether MongoDB builds no index of this database."""
    return not await is_building(database)


async def test_a_start_serves_while_an_index_is_built(
    mongod: RestartableServer, url: str, servers: EmbeddedServers, tmp_path: Path
) -> None:
    environment = {**app_environment(servers, "unused"), "SLOTLOCK_MONGO_URL": url}
    environment = {k: v for k, v in environment.items() if "ADMIN" not in k}
    async with opened(url) as (database, repositories):
        await lose_indexes(database, repositories)
        with stopped_builds(mongod), forked_app(environment, tmp_path) as app:
            query = {"query": "{ slots(first: 5) { nodes { title remaining } } }"}
            async with httpx.AsyncClient() as http:
                response = await http.post(f"{app.url}/graphql", json=query)
            assert len(response.json()["data"]["slots"]["nodes"]) == 5
            await eventually(lambda: is_building(database), "a build begins")
            assert await missing_names(database) == {LIST, EMAIL}
        # The process that began the build was killed. After its lease, the next one completes it.
        await database["leases"].update_many({}, {"$set": {"until": utc_now()}})
        with forked_app(environment, tmp_path / "next"):
            await eventually(lambda: has_all(database), "all indexes are built")


async def has_all(database: Database) -> bool:
    """Return whether the database has all indexes."""
    return not await missing_names(database)


async def test_control_a_build_under_the_time_of_an_operation_is_lost(
    mongod: RestartableServer, url: str
) -> None:
    async with opened(url) as (database, repositories):
        await lose_indexes(database, repositories)
        with stopped_builds(mongod):
            with timeout(0.5), pytest.raises(PyMongoError):
                await database["slots"].create_index([("status", 1), ("start", 1)], name="lost")
            await eventually(lambda: has_no_build(database), "MongoDB gives up the build")
        names = [index["name"] async for index in await database["slots"].list_indexes()]
        assert "lost" not in names


async def test_an_index_that_is_being_built_is_still_missing(
    mongod: RestartableServer, url: str
) -> None:
    async with opened(url) as (database, repositories):
        await lose_indexes(database, repositories)
        with stopped_builds(mongod):
            task = asyncio.create_task(repositories.indexes.build_missing())
            await eventually(lambda: is_building(database), "the build begins")
            assert await missing_names(database) == {LIST, EMAIL}
        assert {index.full_name for index in await task} == {LIST, EMAIL}
        assert await missing_names(database) == set()


async def test_a_write_that_needs_a_missing_unique_index_is_unavailable_until_it_is_built(
    url: str,
) -> None:
    async with opened(url) as (database, repositories):
        await lose_indexes(database, repositories)
    async with opened(url) as (_, repositories):
        remaining = await repositories.indexes.create_on_empty()
        assert {index.full_name for index in remaining} == {LIST, EMAIL}
        with pytest.raises(IndexMissingError) as raised:
            await repositories.users.insert(
                "Ada", "ada@slotlock.test", Role.MEMBER, "hash", utc_now()
            )
        assert is_unavailable(raised.value)
        async with repositories.indexes.running():
            await eventually(lambda: is_taken(repositories), "the index exists")


async def is_taken(repositories: Repositories) -> bool:
    """Return whether a second user with Ada's address is refused, and not unavailable."""
    try:
        user = await repositories.users.insert(
            "Ada", "ada@slotlock.test", Role.MEMBER, "hash", utc_now()
        )
    except IndexMissingError:
        return False
    assert user is None
    return True


async def test_control_without_the_check_an_address_is_given_twice(url: str) -> None:
    async with opened(url) as (database, repositories):
        await lose_indexes(database, repositories)
        insert = repositories.users.insert  # this process has not looked for missing indexes
        assert await insert("Ada", "ada@slotlock.test", Role.MEMBER, "hash", utc_now())
        with pytest.raises(DuplicateKeyError):
            await repositories.indexes.build_missing()


async def test_an_empty_database_has_all_indexes_before_the_first_write(url: str) -> None:
    async with opened(url) as (database, repositories):
        assert await repositories.indexes.create_on_empty() == []
        assert await missing_names(database) == set()


async def test_of_two_first_starts_the_later_one_finds_the_indexes_of_the_other(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = find_missing
    async with opened(url) as (_, first), opened(url) as (database, second):

        async def find_missing_before_the_first(
            database: Database, indexes: Sequence[Index]
        ) -> list[Index]:
            monkeypatch.setattr(index_builder, "find_missing", original)
            missing = await original(database, indexes)
            await first.indexes.create_on_empty()
            await first.users.insert("Ada", "ada@example.org", Role.ADMIN, "hash", utc_now())
            return missing

        monkeypatch.setattr(index_builder, "find_missing", find_missing_before_the_first)
        assert await second.indexes.create_on_empty() == []
        with pytest.raises(DuplicateKeyError):
            await database["users"].insert_one({"email": "ada@example.org"})
        await second.users.insert("Bob", "bob@example.org", Role.ADMIN, "hash", utc_now())


async def test_a_start_with_an_administrator_succeeds_while_a_unique_index_is_missing(
    url: str, servers: EmbeddedServers, tmp_path: Path, mongod: RestartableServer
) -> None:
    async with opened(url) as (database, repositories):
        await repositories.indexes.create_on_empty()
        await repositories.users.insert("Ada", "ada@example.org", Role.ADMIN, "hash", utc_now())
        await database["users"].drop_index("email")
    settings = app_environment(servers, "unused") | {"SLOTLOCK_MONGO_URL": url}
    with stopped_builds(mongod), forked_app(settings, tmp_path) as app:
        assert "is not created at this start" in app.log


async def test_an_index_of_the_same_name_that_is_not_unique_ends_the_start(url: str) -> None:
    async with opened(url) as (database, repositories):
        await database["users"].create_index("email", name="email")
        with pytest.raises(IndexConflictError, match=r"users\.email"):
            await repositories.indexes.create_on_empty()


async def test_one_process_has_the_lease_until_it_ends_or_gives_it_back(url: str) -> None:
    async with opened(url) as (database, _):
        first, second = TaskLease(database, "task"), TaskLease(database, "task")
        assert await first.acquire()
        assert not await second.acquire()
        assert await first.acquire()
        await first.release()
        assert await second.acquire()
        past = {"$set": {"until": utc_now() - timedelta(seconds=1)}}
        await database["leases"].update_one({"_id": "task"}, past)  # its holder died
        assert await first.acquire()


async def test_two_processes_build_in_the_background_and_both_learn_the_result(
    url: str,
) -> None:
    async with (
        opened(url) as (database, repositories),
        opened(url) as (_, first),
        opened(url) as (_, second),
    ):
        await lose_indexes(database, repositories)
        for each in (first, second):
            await each.indexes.create_on_empty()
        async with first.indexes.running(), second.indexes.running():
            await eventually(lambda: is_taken(first), "the first process accepts writes")
            await eventually(lambda: is_taken(second), "the second process accepts writes")
        assert await missing_names(database) == set()


async def test_a_build_logs_its_progress(
    mongod: RestartableServer,
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(index_builder, "PROGRESS_INTERVAL_S", 0.05)
    caplog.set_level("INFO", "slotlock.indexes")
    async with opened(url) as (database, repositories):
        await lose_indexes(database, repositories)
        with stopped_builds(mongod):
            task = asyncio.create_task(repositories.indexes.build_missing())

            await eventually(lambda: "so far" in caplog.text, "the progress is logged")
        await task
    assert "built indexes of slots" in caplog.text


async def test_migrate_builds_what_is_missing(url: str) -> None:
    async with opened(url) as (database, repositories):
        await lose_indexes(database, repositories)
        code, output = run_forked_command({"SLOTLOCK_MONGO_URL": url}, "migrate")
        assert code == 0, output
        assert f"built {LIST}" in output
        assert await missing_names(database) == set()
