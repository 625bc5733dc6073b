"""The servers that all targets share, and a folder for logs and token files."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pymongo import MongoClient
from redis import Redis

from bench.comparison.cpu import ServerPids
from bench.comparison.replica_set import additional_members
from bench.comparison.targets.slots import Document
from slotlock.devserver.embedded import EmbeddedServers, embedded_servers


@dataclass(frozen=True, slots=True)
class BenchmarkServers:
    """MongoDB and Valkey with their processes and a client of each."""

    embedded: EmbeddedServers
    pids: ServerPids
    client: MongoClient[Document]
    redis: "Redis"
    folder: Path


@contextmanager
def running_servers(mongo_nodes: int = 1) -> Iterator[BenchmarkServers]:
    """Run new servers, with so many members of the replica set; raises ServerStartError."""
    with (
        tempfile.TemporaryDirectory(prefix="slotlock-bench-") as folder,
        embedded_servers(Path(folder, "data")) as embedded,
        MongoClient[Document](embedded.mongo_url) as client,
        Redis.from_url(embedded.redis_url) as redis,
        additional_members(client, Path(folder, "data"), mongo_nodes - 1),
    ):
        pids = ServerPids.read(Path(folder, "data"))
        yield BenchmarkServers(embedded, pids, client, redis, Path(folder))
