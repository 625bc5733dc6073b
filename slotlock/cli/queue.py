"""Commands for the admission queue, which work on Redis without a running app."""

import asyncio
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slotlock.api.settings.settings import Settings
from slotlock.cli.deployment import CommandError, confirm, settings_with_redis
from slotlock.domain.shared.text import format_in_zone
from slotlock.infrastructure.redis.admission.admission_queue import AdmissionQueue
from slotlock.infrastructure.redis.admission.dead_letters import DeadLetter, DeadLetterQueue
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.keys import MAX_BUDGET_MS

NAME_HINT = "; `slotlock queue show` lists the names, like 0/1795313120145-0"


def define_queue(parser: ArgumentParser) -> None:
    """Add the actions of `slotlock queue`."""
    queue = parser.add_subparsers(required=True, metavar="ACTION", parser_class=ArgumentParser)
    queue.add_parser("show", help="print queue lengths and dead letters").set_defaults(
        run=_show_queue
    )

    requeuing = queue.add_parser("requeue", help="put dead letters back into the queue")
    requeuing.add_argument("entry", nargs="?", help="a name from `show`; default: all")
    requeuing.set_defaults(run=_requeue)

    discarding = queue.add_parser("discard", help="delete a dead letter; its ticket is LOST then")
    discarding.add_argument("entry", help="a name from `show`")
    discarding.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    discarding.set_defaults(run=_discard)


def _show_queue(args: Namespace) -> None:
    asyncio.run(show_queue(settings_with_redis()))


def _requeue(args: Namespace) -> None:
    print(asyncio.run(requeue(settings_with_redis(), args.entry)))


def _discard(args: Namespace) -> None:
    settings = settings_with_redis()
    if not args.yes:
        confirm(f"discarding {args.entry} loses its request for good", args.entry)
    print(asyncio.run(discard(settings, args.entry)))


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


async def show_queue(settings: Settings) -> None:
    """Print the lengths of each partition and all dead letters; raises CommandError."""
    async with open_pipeline(settings) as pipeline:
        lengths = await AdmissionQueue(pipeline, settings.queue_partitions).lengths()
        print("partition\twaiting\tdead letters")
        for partition, (waiting, dead_letters) in enumerate(lengths):
            print(f"{partition}\t{waiting}\t{dead_letters}")
        async for entry in DeadLetterQueue(pipeline, settings.queue_partitions).find_all():
            print(_format_dead_letter(entry))


async def requeue(settings: Settings, name: str | None) -> str:
    """Put a dead letter back into the queue, or all; raises CommandError."""
    async with open_pipeline(settings) as pipeline:
        dead_letters = DeadLetterQueue(pipeline, settings.queue_partitions)
        chosen = [entry async for entry in dead_letters.find_all() if name in (None, entry.name)]
        requeued = [entry.name for entry in chosen if await dead_letters.requeue(entry)]
    empty = [f"{entry.name} holds no request: discard it" for entry in chosen if not entry.request]
    if name is not None and not requeued:
        raise CommandError("".join(empty) or f"{name} is not a dead letter{NAME_HINT}")
    return "\n".join([f"requeued: {len(requeued)}", *empty])


async def discard(settings: Settings, name: str) -> str:
    """Delete a dead letter, whose ticket is LOST then; raises CommandError."""
    async with open_pipeline(settings) as pipeline:
        dead_letters = DeadLetterQueue(pipeline, settings.queue_partitions)
        for entry in [entry async for entry in dead_letters.find_all() if entry.name == name]:
            if await dead_letters.discard(entry):
                return f"discarded {name}"
    raise CommandError(f"{name} is not a dead letter{NAME_HINT}")


def _format_dead_letter(entry: DeadLetter) -> str:
    request = entry.request
    content = f"slot_{request.slot_id} for user_{request.user_id}" if request else "no request"
    return f"{entry.name}\t{format_in_zone(entry.requested_at)}\t{content}\t{entry.reason}"
