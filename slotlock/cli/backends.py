"""Opens MongoDB and Redis for commands that work without a running app."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pymongo import AsyncMongoClient

from slotlock.api.settings.settings import Settings
from slotlock.auth.container import Auth, build_auth
from slotlock.auth.login_throttle import NoLoginThrottle
from slotlock.auth.passwords import PasswordHasher
from slotlock.auth.tokens import MIN_SECRET_BYTES, TokenSigner
from slotlock.infrastructure.mongo.client import (
    OPERATION_TIMEOUT_MS,
    Document,
    connect,
    supports_transactions,
)
from slotlock.infrastructure.mongo.clock import mongo_clock
from slotlock.infrastructure.mongo.repositories import repositories_on
from slotlock.infrastructure.redis.auto_pipeline import (
    MAX_BUDGET_MS,
    AutoPipeline,
    RedisUnavailableError,
)
from slotlock.infrastructure.redis.client import redis_client


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


@asynccontextmanager
async def open_auth(settings: Settings) -> AsyncIterator[Auth]:
    """Open the accounts in MongoDB, with their indexes."""
    client, database = connect(settings.mongo_url or "")
    passwords = PasswordHasher()
    try:
        repositories = repositories_on(database)
        await repositories.indexes.create_on_empty()
        # No command opens a session, so this key never signs a token.
        tokens = TokenSigner(["-" * MIN_SECRET_BYTES])
        async with mongo_clock(database, settings.max_clock_skew_s) as clock:
            yield build_auth(repositories, passwords, tokens, clock.now, NoLoginThrottle())
    finally:
        passwords.close()
        await client.close()


@asynccontextmanager
async def open_pipeline(settings: Settings) -> AsyncIterator[AutoPipeline]:
    """Open Redis; raises CommandError if it is unavailable, also inside the context."""
    pipeline = AutoPipeline(redis_client(settings.redis_url or ""), MAX_BUDGET_MS)
    try:
        yield pipeline
    except RedisUnavailableError as error:
        raise CommandError(f"Redis (SLOTLOCK_REDIS_URL) is unavailable: {error}") from None
    finally:
        await pipeline.close()
