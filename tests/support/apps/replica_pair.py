"""A replica set of two members, of which the second can be paused.

While it is paused the first member applies writes and does not acknowledge them: `w: majority`
needs both. The first member stays primary for a minute.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pymongo import MongoClient

from tests.support.apps.restartable_servers import RestartableServer, restartable_server
from tests.support.polling import wait_until

PRIMARY_TIMEOUT_MS = 60_000


@dataclass
class ReplicaPair:
    """The primary, and the member that has to confirm its writes."""

    primary: RestartableServer
    secondary: RestartableServer


@contextmanager
def replica_pair(
    directory: Path, *, can_succeed: bool = False, options: Sequence[str] = ()
) -> Iterator[ReplicaPair]:
    """Run a replica set in which both members have to confirm each write.

    With `can_succeed`, the second member may become the primary.
    """
    with restartable_server(directory / "primary", "mongod", options) as primary:
        secondary = RestartableServer(directory / "secondary", "mongod", options)
        secondary.launch()
        try:
            _add_member(primary, secondary, priority=int(can_succeed))
            yield ReplicaPair(primary, secondary)
        finally:
            primary.kill()
            secondary.kill()


def _add_member(primary: RestartableServer, secondary: RestartableServer, priority: int) -> None:
    with MongoClient[dict[str, Any]](primary.url) as client:
        config = client.admin.command("replSetGetConfig")["config"]
        member = {"_id": 1, "host": f"127.0.0.1:{secondary.port}", "priority": priority}
        config["version"] += 1
        config["members"].append(member)
        config["settings"]["electionTimeoutMillis"] = PRIMARY_TIMEOUT_MS
        client.admin.command("replSetReconfig", config)

        def is_secondary_ready() -> bool:
            members = client.admin.command("replSetGetStatus")["members"]
            return [each["stateStr"] for each in members] == ["PRIMARY", "SECONDARY"]

        wait_until(is_secondary_ready, "the second member follows the first", 60)
