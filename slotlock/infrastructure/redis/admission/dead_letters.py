"""Queued requests that could not be processed, for operators to requeue or discard."""

from collections.abc import AsyncIterator
from datetime import datetime

from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.redis.admission.admission_queue import (
    REQUEST_HASH_CHARS,
    QueuedBooking,
    to_milliseconds,
)
from slotlock.infrastructure.redis.admission.partitions import decode_fields, to_stream_entry
from slotlock.infrastructure.redis.admission.queue_scripts import DISCARD, REQUEUE
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.keys import queue_keys

PAGE_SIZE = 100


@value_object
class DeadLetter:
    """A request that could not be processed, or None if the entry was not a booking request."""

    partition: int
    id: str
    request: QueuedBooking | None
    requested_at: datetime
    reason: str

    @property
    def name(self) -> str:
        """The partition and the id of the entry, as operators type it."""
        return f"{self.partition}/{self.id}"


class DeadLetterQueue:
    """The dead letters of all partitions. Every method raises RedisUnavailableError."""

    def __init__(self, pipeline: AutoPipeline, partitions: int) -> None:
        self._pipeline = pipeline
        self._partitions = partitions

    async def find_all(self) -> AsyncIterator[DeadLetter]:
        """Yield all dead letters by partition, the oldest first."""
        for partition in range(self._partitions):
            start = "-"
            while page := await self._find_page(partition, start):
                for dead_letter in page:
                    yield dead_letter
                start = f"({page[-1].id}"

    async def _find_page(self, partition: int, start: str) -> list[DeadLetter]:
        stream = queue_keys(partition).dead_letters
        entries = await self._pipeline.send("XRANGE", stream, start, "+", "COUNT", PAGE_SIZE)
        return [
            _to_dead_letter(partition, id_.decode(), decode_fields(fields))
            for id_, fields in entries
        ]

    async def requeue(self, dead_letter: DeadLetter) -> bool:
        """Append a request to the queue again. False if it is not a request or no longer there."""
        request = dead_letter.request
        if request is None:
            return False
        requested_ms = str(to_milliseconds(dead_letter.requested_at))
        return await self._run_script(
            REQUEUE,
            dead_letter,
            request.slot_id,
            request.key_field,
            request.booking_field,
            request.request_hash[:REQUEST_HASH_CHARS],
            requested_ms,
            *request.flat_fields(),
            "ms",
            requested_ms,
        )

    async def discard(self, dead_letter: DeadLetter) -> bool:
        """Delete a request, so that its ticket is lost. False if it is no longer there."""
        field = dead_letter.request.key_field if dead_letter.request else ""
        return await self._run_script(DISCARD, dead_letter, field)

    async def _run_script(self, script: str, dead_letter: DeadLetter, *arguments: str) -> bool:
        keys = queue_keys(dead_letter.partition)
        return bool(await self._pipeline.run_script(script, keys, dead_letter.id, *arguments))


def _to_dead_letter(partition: int, id_: str, fields: dict[str, str]) -> DeadLetter:
    entry = to_stream_entry(id_, fields)
    reason = fields.get("reason", "")
    return DeadLetter(partition, id_, entry.request, entry.requested_at, reason)
