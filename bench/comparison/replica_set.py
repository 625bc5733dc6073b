"""A replica set of three: two more members for the embedded mongod, on the same machine."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from pymongo import MongoClient

from bench.comparison.targets.slots import Document
from slotlock.devserver.binaries import MONGOD, ServerStartError, find_binary
from slotlock.devserver.embedded import ServerProcess

JOIN_TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.05


@contextmanager
def additional_members(client: MongoClient[Document], folder: Path, count: int) -> Iterator[None]:
    """Run so many secondaries of the mongod of a client. It stays the primary.

    Raises:
        ServerStartError: a member cannot run or does not join.
    """
    with ExitStack() as stack:
        for number in range(1, count + 1):
            port = stack.enter_context(_member(folder, number))
            _join(client, number, port)
        try:
            yield
        finally:
            _remove_secondaries(client)


@contextmanager
def _member(folder: Path, number: int) -> Iterator[int]:
    """Run a mongod and yield its port."""
    name = f"mongod-{number}"
    # It cannot accept writes, so that a reply is all there is to wait for.
    binary = replace(
        MONGOD, name=name, data_dir_option=("--dbpath", name), is_ready=lambda _port, _pid: True
    )
    server = ServerProcess(binary, find_binary(MONGOD, None), folder)
    server.launch()
    try:
        server.wait_until_ready()
        yield server.port
    finally:
        if server.process is not None:
            server.process.kill()
            server.process.wait()


def _join(client: MongoClient[Document], number: int, port: int) -> None:
    """Add a member that is never elected, and wait until it has the data."""
    address, admin = f"127.0.0.1:{port}", client.admin
    config = admin.command("replSetGetConfig")["config"]
    config["version"] += 1
    config["members"].append({"_id": number, "host": address, "priority": 0})
    admin.command("replSetReconfig", config)
    deadline = time.monotonic() + JOIN_TIMEOUT_S
    while _state_of(client, address) != "SECONDARY":
        if time.monotonic() > deadline:
            raise ServerStartError(f"{address} does not join the replica set")
        time.sleep(POLL_INTERVAL_S)


def _remove_secondaries(client: MongoClient[Document]) -> None:
    """Leave the primary alone: it would wait for its members when it is stopped."""
    config = client.admin.command("replSetGetConfig")["config"]
    config["members"] = config["members"][:1]
    client.admin.command("replSetReconfig", config, force=True)


def _state_of(client: MongoClient[Document], address: str) -> str:
    status = client.admin.command("replSetGetStatus")
    states = {str(member["name"]): str(member["stateStr"]) for member in status["members"]}
    return states[address]
