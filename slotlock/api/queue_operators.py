"""What operators do about the admission queue from the command line, straight on Redis."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slotlock.api.operators import OperatorError
from slotlock.api.settings import Settings
from slotlock.stores.queue import Queue
from slotlock.stores.redis import RedisAwayError, RedisLine, redis_client
from slotlock.stores.set_aside import AsideEntry, SetAside

NAMED_LIKE = "; `slotlock queue show` names what is, like 0/1795313120145-0"


@asynccontextmanager
async def _line(settings: Settings) -> AsyncIterator[RedisLine]:
    line = RedisLine(redis_client(settings.redis_url or ""))
    try:
        yield line
    except RedisAwayError as error:
        raise OperatorError(f"Redis (SLOTLOCK_REDIS_URL) does not answer: {error}") from None
    finally:
        await line.close()


async def print_queue(settings: Settings) -> None:
    """Print how many are in line in each partition, and what was set aside. Errors:
    OperatorError.
    """
    async with _line(settings) as line:
        lengths = await Queue(line, settings.queue_partitions).lengths()
        print("partition\tin line\tset aside")
        for partition, (waiting, aside) in enumerate(lengths):
            print(f"{partition}\t{waiting}\t{aside}")
        async for entry in SetAside(line, settings.queue_partitions).all():
            print(_described(entry))


async def replay(settings: Settings, name: str | None) -> str:
    """Put one request that was set aside back in line, or all. Errors: OperatorError."""
    async with _line(settings) as line:
        aside = SetAside(line, settings.queue_partitions)
        chosen = [entry async for entry in aside.all() if name in (None, entry.name)]
        done = [entry.name for entry in chosen if await aside.replay(entry)]
    empty = [f"{entry.name} holds no request: discard it" for entry in chosen if not entry.request]
    if name is not None and not done:
        raise OperatorError("".join(empty) or f"{name} is not set aside{NAMED_LIKE}")
    return "\n".join([f"put back in line: {len(done)}", *empty])


async def discard(settings: Settings, name: str) -> str:
    """Forget a request that was set aside; its ticket is lost. Errors: OperatorError."""
    async with _line(settings) as line:
        aside = SetAside(line, settings.queue_partitions)
        for entry in [entry async for entry in aside.all() if entry.name == name]:
            if await aside.discard(entry):
                return f"discarded {name}"
    raise OperatorError(f"{name} is not set aside{NAMED_LIKE}")


def _described(entry: AsideEntry) -> str:
    request = entry.request
    whose = f"slot {request.slot_id} for {request.user_id}" if request else "no request"
    return f"{entry.name}\t{entry.asked_at:%Y-%m-%d %H:%M:%S}\t{whose}\t{entry.reason}"
