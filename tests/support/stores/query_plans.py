"""Records the commands that a database receives, and asks MongoDB for their plans."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from pymongo import AsyncMongoClient, monitoring

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.mongo.client import Database, Document
from tests.support.stores.empty_database import empty_database

EXPLAINABLE_COMMANDS = ("find", "update", "delete", "findAndModify", "aggregate", "distinct")
# Fields of a command that `explain` does not accept.
SESSION_FIELDS = {
    *("lsid", "txnNumber", "$clusterTime", "$db", "writeConcern", "autocommit"),
    *("startTransaction", "maxTimeMS", "readConcern", "$readPreference"),
}


class CommandRecorder(monitoring.CommandListener):
    """Records each command that can be explained."""

    def __init__(self) -> None:
        self.commands: list[Document] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name in EXPLAINABLE_COMMANDS:
            self.commands += split_updates(dict(event.command))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        """Ignore the reply."""

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        """Ignore the failure."""


def split_updates(command: Document) -> list[Document]:
    """Return one command for each of its writes, because MongoDB explains one at a time."""
    writes = command.get("updates", ())
    return [{**command, "updates": [write]} for write in writes] or [command]


@pytest.fixture
async def recorded_commands(
    servers: EmbeddedServers,
) -> AsyncIterator[tuple[Database, CommandRecorder]]:
    """Yield an empty database, and the recorder of its commands."""
    recorder = CommandRecorder()
    with empty_database(servers) as url:
        client: AsyncMongoClient[Document] = AsyncMongoClient(
            url, tz_aware=True, w="majority", event_listeners=[recorder]
        )
        async with client:
            yield client.get_default_database(), recorder


def values_of(name: str, plan: Any) -> Iterator[str]:
    """Yield the values of all fields of this name in a plan."""
    if isinstance(plan, dict):
        if name in plan:
            yield plan[name]
        for part in plan.values():
            yield from values_of(name, part)
    elif isinstance(plan, list):
        for part in plan:
            yield from values_of(name, part)


async def query_plan(database: Database, command: Document) -> Document:
    """Return the plan that MongoDB chose for a command, with the plans that it rejected."""
    plain = {name: value for name, value in command.items() if name not in SESSION_FIELDS}
    reply = await database.command("explain", plain, verbosity="queryPlanner")
    # The plan of a pipeline that MongoDB does not push down is in its first stage.
    plans: Document = reply if "queryPlanner" in reply else reply["stages"][0]["$cursor"]
    return dict(plans["queryPlanner"])


async def plan_stages(database: Database, command: Document) -> set[str]:
    """Return the stages of the plan that MongoDB chose for a command."""
    return set(values_of("stage", (await query_plan(database, command))["winningPlan"]))


async def plan_indexes(database: Database, command: Document) -> set[str]:
    """Return the indexes that MongoDB can use for a command."""
    return set(values_of("indexName", await query_plan(database, command)))
