"""A read of one batch returns what a cursor returns, also when its command fails the first time."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from functools import partial

import pytest
from bson import ObjectId
from pymongo import MongoClient, timeout
from pymongo.errors import OperationFailure, PyMongoError

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import Database, Document, open_database
from slotlock.infrastructure.mongo.commands import (
    aggregate_in_one_batch,
    find_in_one_batch,
)
from tests.support.apps.processes import database_url
from tests.support.stores.mongo_route import MongoRoute, database_behind
from tests.support.stores.query_plans import CommandRecorder, recorded_commands

__all__ = ["recorded_commands"]

START = datetime(2030, 5, 17, 14, 0, tzinfo=UTC)
BY_NUMBER = {"n": 1}


@pytest.fixture
async def database(servers: EmbeddedServers) -> AsyncIterator[Database]:
    """Yield a new database."""
    async with open_database(database_url(servers, f"batch{ObjectId()}")) as database:
        yield database
        await database.client.drop_database(database.name)


class Fault(Enum):
    """What happens to reads: the first loses its connection, or none has a reply."""

    LOST_CONNECTION = auto()
    NO_REPLY = auto()


class FaultyRoute(MongoRoute):
    """Forwards connections with a fault, and counts the reads."""

    def __init__(self, fault: Fault, host: str, port: int) -> None:
        super().__init__(host, port)
        self._fault = fault
        self.read_count = 0

    def send_request(self, writer: asyncio.StreamWriter, message: bytes) -> bool:
        """Send a request, unless the fault concerns it."""
        if b"\x02find\x00" in message or b"\x02aggregate\x00" in message:
            self.read_count += 1
            if self.read_count == 1 and self._fault is Fault.LOST_CONNECTION:
                return False
            if self._fault is Fault.NO_REPLY:
                return True
        return super().send_request(writer, message)


async def test_a_read_returns_the_documents_that_a_cursor_returns(database: Database) -> None:
    items = database["items"]
    await items.insert_many({"n": n, "at": START + timedelta(hours=n)} for n in range(300))
    for count in (1, 150, 300, 400):
        found = await find_in_one_batch(items, {}, {"at": 1}, count, BY_NUMBER)
        assert found == await items.find({}, {"at": 1}, sort=[("n", 1)], limit=count).to_list()
        assert all(each["at"].tzinfo is UTC for each in found)
    pipeline: list[Document] = [{"$sort": BY_NUMBER}, {"$project": {"at": 1}}]
    assert (
        await aggregate_in_one_batch(items, pipeline, 300)
        == await items.find({}, {"at": 1}, sort=[("n", 1)]).to_list()
    )


async def test_a_result_larger_than_a_reply_is_complete(
    database: Database, servers: EmbeddedServers
) -> None:
    items = database["items"]
    for n in range(3):
        await items.insert_one({"n": n, "text": "x" * 7_000_000})
    found = await find_in_one_batch(items, {}, {"text": 1}, 3, BY_NUMBER)
    assert [len(each["text"]) for each in found] == [7_000_000] * 3
    with MongoClient[Document](servers.mongo_url) as client:
        idle = client.admin.aggregate(
            [{"$currentOp": {"idleCursors": True}}, {"$match": {"ns": f"{database.name}.items"}}]
        )
        assert not list(idle)


@pytest.mark.parametrize("kind", ["find", "aggregate"])
async def test_a_read_is_repeated_if_its_connection_is_lost(database: Database, kind: str) -> None:
    await database["items"].insert_one({"_id": 1})
    async with database_behind(database, partial(FaultyRoute, Fault.LOST_CONNECTION)) as (
        _,
        behind,
        route,
    ):
        if kind == "find":
            found = await find_in_one_batch(behind["items"], {}, {"_id": 1}, 1)
        else:
            found = await aggregate_in_one_batch(behind["items"], [], 1)
        assert found == [{"_id": 1}]
        assert route.read_count == 2


async def test_a_read_without_a_reply_fails_when_its_time_is_over(database: Database) -> None:
    async with database_behind(database, partial(FaultyRoute, Fault.NO_REPLY)) as (
        _,
        behind,
        route,
    ):
        await behind.command("ping")
        async with asyncio.timeout(20):
            with timeout(1), pytest.raises(PyMongoError) as error:
                await find_in_one_batch(behind["items"], {}, {"_id": 1}, 1)
        assert error.value.timeout
        assert route.read_count == 1


async def test_a_read_that_mongodb_rejects_is_not_repeated(
    recorded_commands: tuple[Database, CommandRecorder],
) -> None:
    database, recorder = recorded_commands
    with pytest.raises(OperationFailure):
        await find_in_one_batch(database["items"], {"$unknown": 1}, {"_id": 1}, 1)
    assert len(recorder.commands) == 1
