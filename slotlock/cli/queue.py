"""What operators do about the admission queue from the command line, straight on Redis."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slotlock.api.settings.settings import Settings
from slotlock.cli.users import CommandError
from slotlock.infrastructure.redis.admission.dead_letters import DeadLetter, DeadLetterQueue
from slotlock.infrastructure.redis.admission.queue import AdmissionQueue
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.redis.client import redis_client

NAME_HINT = "; `slotlock queue show` names what is, like 0/1795313120145-0"


@asynccontextmanager
async def _open_pipeline(settings: Settings) -> AsyncIterator[AutoPipeline]:
    line = AutoPipeline(redis_client(settings.redis_url or ""))
    try:
        yield line
    except RedisUnavailableError as error:
        raise CommandError(f"Redis (SLOTLOCK_REDIS_URL) does not answer: {error}") from None
    finally:
        await line.close()


async def show_queue(settings: Settings) -> None:
    """Print how many are in line in each partition, and what was set aside. Errors:
    OperatorError.
    """
    async with _open_pipeline(settings) as line:
        lengths = await AdmissionQueue(line, settings.queue_partitions).lengths()
        print("partition\tin line\tset aside")
        for partition, (waiting, aside) in enumerate(lengths):
            print(f"{partition}\t{waiting}\t{aside}")
        async for entry in DeadLetterQueue(line, settings.queue_partitions).find_all():
            print(_format_dead_letter(entry))


async def requeue(settings: Settings, name: str | None) -> str:
    """Put one request that was set aside back in line, or all. Errors: OperatorError."""
    async with _open_pipeline(settings) as line:
        aside = DeadLetterQueue(line, settings.queue_partitions)
        chosen = [entry async for entry in aside.find_all() if name in (None, entry.name)]
        done = [entry.name for entry in chosen if await aside.requeue(entry)]
    empty = [f"{entry.name} holds no request: discard it" for entry in chosen if not entry.request]
    if name is not None and not done:
        raise CommandError("".join(empty) or f"{name} is not set aside{NAME_HINT}")
    return "\n".join([f"put back in line: {len(done)}", *empty])


async def discard(settings: Settings, name: str) -> str:
    """Forget a request that was set aside; its ticket is lost. Errors: OperatorError."""
    async with _open_pipeline(settings) as line:
        aside = DeadLetterQueue(line, settings.queue_partitions)
        for entry in [entry async for entry in aside.find_all() if entry.name == name]:
            if await aside.discard(entry):
                return f"discarded {name}"
    raise CommandError(f"{name} is not set aside{NAME_HINT}")


def _format_dead_letter(entry: DeadLetter) -> str:
    request = entry.request
    whose = f"slot {request.slot_id} for {request.user_id}" if request else "no request"
    return f"{entry.name}\t{entry.requested_at:%Y-%m-%d %H:%M:%S}\t{whose}\t{entry.reason}"
