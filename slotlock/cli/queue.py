"""Commands for the admission queue, which work on Redis without a running app."""

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slotlock.api.settings.settings import Settings
from slotlock.cli.commands.table import Row
from slotlock.cli.deployment import CommandError, confirm, settings_with_redis
from slotlock.infrastructure.redis.admission.admission_queue import AdmissionQueue
from slotlock.infrastructure.redis.admission.dead_letters import DeadLetter, DeadLetterQueue
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.keys import MAX_BUDGET_MS

NAME_HINT = "; `slotlock queue list` has them, like 0/1795313120145-0"


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


@asynccontextmanager
async def open_dead_letters(settings: Settings) -> AsyncIterator[DeadLetterQueue]:
    """Open the dead letters of all partitions; raises CommandError, also inside the context."""
    async with open_pipeline(settings) as pipeline:
        yield DeadLetterQueue(pipeline, settings.queue_partitions)


def show_queue(args: Namespace) -> list[Row]:
    """Return how many requests and dead letters each partition has."""

    async def find(settings: Settings) -> list[Row]:
        async with open_pipeline(settings) as pipeline:
            lengths = await AdmissionQueue(pipeline, settings.queue_partitions).lengths()
        return [(partition, *counts) for partition, counts in enumerate(lengths)]

    return asyncio.run(find(settings_with_redis()))


def list_dead_letters(args: Namespace) -> list[Row]:
    """Return all dead letters."""

    async def find(settings: Settings) -> list[Row]:
        async with open_dead_letters(settings) as dead_letters:
            return [_to_row(entry) async for entry in dead_letters.find_all()]

    return asyncio.run(find(settings_with_redis()))


def _to_row(entry: DeadLetter) -> Row:
    request = entry.request
    slot, user = (f"slot_{request.slot_id}", f"user_{request.user_id}") if request else (None, None)
    return entry.name, entry.requested_at, slot, user, entry.reason


def retry(args: Namespace) -> str:
    """Put a dead letter back into the queue, or all."""
    return asyncio.run(_retry(settings_with_redis(), args.entry))


def delete(args: Namespace) -> str:
    """Delete a dead letter, whose ticket is LOST then."""
    settings = settings_with_redis()
    if not args.yes:
        confirm(f"deleting {args.entry} loses its request for good", args.entry)
    return asyncio.run(_delete(settings, args.entry))


async def _retry(settings: Settings, name: str | None) -> str:
    async with open_dead_letters(settings) as dead_letters:
        chosen = [entry async for entry in dead_letters.find_all() if name in (None, entry.name)]
        queued = [entry.name for entry in chosen if await dead_letters.requeue(entry)]
    empty = [f"{entry.name} holds no request: delete it" for entry in chosen if not entry.request]
    if name is not None and not queued:
        raise CommandError("".join(empty) or f"{name} is not a dead letter{NAME_HINT}")
    return "\n".join([f"queued: {len(queued)}", *empty])


async def _delete(settings: Settings, name: str) -> str:
    async with open_dead_letters(settings) as dead_letters:
        for entry in [entry async for entry in dead_letters.find_all() if entry.name == name]:
            if await dead_letters.discard(entry):
                return f"deleted {name}"
    raise CommandError(f"{name} is not a dead letter{NAME_HINT}")
