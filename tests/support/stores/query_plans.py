"""Which plans MongoDB makes for the commands that are sent to a database."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from pymongo import AsyncMongoClient, monitoring

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import Database, Document
from tests.support.apps.processes import database_url

EXPLAINABLE_COMMANDS = ("find", "update", "delete", "findAndModify", "aggregate")


class CommandRecorder(monitoring.CommandListener):
    """Every command that is sent."""

    def __init__(self) -> None:
        self.commands: list[Document] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name in EXPLAINABLE_COMMANDS:
            self.commands += split_updates(dict(event.command))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Of no interest."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Of no interest."""


def split_updates(command: Document) -> list[Document]:
    """The command for each of its writes alone: MongoDB explains no more than one."""
    writes = command.get("updates", ())
    return [{**command, "updates": [write]} for write in writes] or [command]


@pytest.fixture
async def recorded_commands(
    servers: EmbeddedServers,
) -> AsyncIterator[tuple[Database, CommandRecorder]]:
    """A database whose commands are heard."""
    heard = CommandRecorder()
    url = database_url(servers, "plans")
    client: AsyncMongoClient[Document] = AsyncMongoClient(
        url, tz_aware=True, w="majority", event_listeners=[heard]
    )
    try:
        yield client.get_default_database(), heard
    finally:
        await client.close()


def values_named(name: str, plan: Any) -> Iterator[str]:
    """All that is called so in a plan."""
    if isinstance(plan, dict):
        if name in plan:
            yield plan[name]
        for part in plan.values():
            yield from values_named(name, part)
    elif isinstance(plan, list):
        for part in plan:
            yield from values_named(name, part)


async def query_plan(database: Database, command: Document) -> Document:
    """The plan that MongoDB chose for a command, and those that it thought of besides."""
    sent = {"lsid", "txnNumber", "$clusterTime", "$db", "writeConcern", "autocommit"}
    sent |= {"startTransaction", "maxTimeMS", "readConcern", "$readPreference"}
    plain = {name: value for name, value in command.items() if name not in sent}
    answer = await database.command("explain", plain, verbosity="queryPlanner")
    # What MongoDB does not push down is a pipeline that begins with the plan.
    plans: Document = answer if "queryPlanner" in answer else answer["stages"][0]["$cursor"]
    return dict(plans["queryPlanner"])


async def plan_stages(database: Database, command: Document) -> set[str]:
    """The stages of the plan that MongoDB chose for a command."""
    return set(values_named("stage", (await query_plan(database, command))["winningPlan"]))


async def plan_indexes(database: Database, command: Document) -> set[str]:
    """The indexes that MongoDB can use for a command."""
    return set(values_named("indexName", await query_plan(database, command)))
