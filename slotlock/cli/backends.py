"""What commands check before they work on the servers without a running app."""

import sys

from pymongo import AsyncMongoClient

from slotlock.api.settings.settings import Settings
from slotlock.infrastructure.mongo.client import (
    OPERATION_TIMEOUT_MS,
    Document,
    supports_transactions,
)


class CommandError(Exception):
    """A command cannot do its work; the text is the reason, in one line or several."""


def confirm(loss: str, answer: str) -> None:
    """Ask to type an answer before something is lost for good.

    Only a terminal is asked; a script has to know what it does.
    Raises: CommandError without the answer.
    """
    if not sys.stdin.isatty():
        raise CommandError(f"{loss}. Nothing was changed; --yes confirms it")
    print(f"{loss}. Type {answer} to continue: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != answer:
        raise CommandError("not confirmed; nothing was changed. --yes does not ask")


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
