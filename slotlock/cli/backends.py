"""What commands check before they work on the servers without a running app."""

from pymongo import AsyncMongoClient

from slotlock.api.settings.settings import Settings
from slotlock.infrastructure.mongo.client import (
    OPERATION_TIMEOUT_MS,
    Document,
    supports_transactions,
)


class CommandError(Exception):
    """A command cannot do its work; the text is the reason, in one line or several."""


async def check_mongodb(settings: Settings) -> None:
    """Check that MongoDB responds, and has transactions. Raises CommandError and PyMongoError."""
    # The client of `connect` would reject a server that has not joined a replica set.
    url, timeout_ms = settings.mongo_url or "", OPERATION_TIMEOUT_MS
    async with AsyncMongoClient[Document](url, timeoutMS=timeout_ms) as client:
        hello = await client.admin.command("hello")
    if not supports_transactions(hello):
        raise CommandError(
            "MongoDB is not a replica set, so it has no transactions; "
            "start it with --replSet rs0 and run rs.initiate() once"
        )
