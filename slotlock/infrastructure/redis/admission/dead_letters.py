"""Requests of the admission queue that could not be served, for operators to look at and decide."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from slotlock.infrastructure.redis.admission.partitions import decode_fields, to_stream_entry
from slotlock.infrastructure.redis.admission.queue import REQUEST_HASH_CHARS, QueuedBooking
from slotlock.infrastructure.redis.admission.scripts import DISCARD, REQUEUE, keys
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline

PAGE_SIZE = 100


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A request that was set aside. `name` is what operators call it by."""

    partition: int
    id: str
    request: QueuedBooking | None
    requested_at: datetime
    reason: str

    @property
    def name(self) -> str:
        """The partition and the entry in it."""
        return f"{self.partition}/{self.id}"


class DeadLetterQueue:
    """What was set aside in all partitions. Errors of all methods: RedisAwayError."""

    def __init__(self, pipeline: AutoPipeline, partitions: int) -> None:
        self._pipeline = pipeline
        self._partitions = partitions

    async def find_all(self) -> AsyncIterator[DeadLetter]:
        """Everything, by partition, the oldest first."""
        for partition in range(self._partitions):
            since = "-"
            while found := await self._page(partition, since):
                for entry in found:
                    yield entry
                since = f"({found[-1].id}"

    async def _page(self, partition: int, after_id: str) -> list[DeadLetter]:
        answer = await self._pipeline.send(
            "XRANGE", keys(partition)[2], after_id, "+", "COUNT", PAGE_SIZE
        )
        return [
            _to_dead_letter(partition, id_.decode(), decode_fields(fields))
            for id_, fields in answer
        ]

    async def requeue(self, dead_letter: DeadLetter) -> bool:
        """Put a request back in line, behind all; False when it is none, or no longer there."""
        request = dead_letter.request
        if request is None:
            return False
        ms = str(round(dead_letter.requested_at.timestamp() * 1000))
        named = (request.slot_id, request.key_field, request.claim_field)
        question = request.request_hash[:REQUEST_HASH_CHARS]
        return await self._run_script(
            REQUEUE, 3, dead_letter, *named, question, ms, *request.flat_fields(), "ms", ms
        )

    async def discard(self, dead_letter: DeadLetter) -> bool:
        """Forget a request, so that its ticket is lost; False when it is no longer there."""
        field = dead_letter.request.key_field if dead_letter.request else ""
        return await self._run_script(DISCARD, 3, dead_letter, field)

    async def _run_script(
        self, script: str, key_count: int, dead_letter: DeadLetter, *arguments: str
    ) -> bool:
        named = keys(dead_letter.partition)[:key_count]
        return bool(
            await self._pipeline.send("EVAL", script, key_count, *named, dead_letter.id, *arguments)
        )


def _to_dead_letter(partition: int, id_: str, fields: dict[str, str]) -> DeadLetter:
    entry = to_stream_entry(id_, fields)
    reason = fields.get("reason", "")
    return DeadLetter(partition, id_, entry.request, entry.requested_at, reason)
