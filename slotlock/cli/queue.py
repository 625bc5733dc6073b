"""Commands for the admission queue, which work on Redis without a running app."""

from slotlock.api.settings.settings import Settings
from slotlock.cli.backends import CommandError, open_pipeline
from slotlock.infrastructure.redis.admission.dead_letters import DeadLetter, DeadLetterQueue
from slotlock.infrastructure.redis.admission.queue import AdmissionQueue

NAME_HINT = "; `slotlock queue show` lists the names, like 0/1795313120145-0"


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
    content = f"slot {request.slot_id} for {request.user_id}" if request else "no request"
    return f"{entry.name}\t{entry.requested_at:%Y-%m-%d %H:%M:%S}\t{content}\t{entry.reason}"
