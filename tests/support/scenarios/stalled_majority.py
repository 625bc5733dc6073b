"""Writes without a majority: a failpoint of mongod stalls what majority reads return."""

from collections.abc import Iterator
from contextlib import contextmanager

from pymongo import MongoClient

from slotlock.infrastructure.mongo.client import Document

FAILPOINTS = ("--setParameter", "enableTestCommands=1")


@contextmanager
def stalled_majority(mongo_url: str) -> Iterator[None]:
    """Let the member of this URL not know of a majority for what is written in the block.

    It applies the writes, and majority reads do not return them. After the block, it is a primary.
    """
    point = {"configureFailPoint": "disableSnapshotting"}
    with MongoClient[Document](mongo_url, w="majority") as client:
        client.admin.command({**point, "mode": "alwaysOn"})
        try:
            yield
        finally:
            client.admin.command({**point, "mode": "off"})
            # MongoDB finds out at the next write.
            client.get_default_database()["ends"].insert_one({})
