"""Requests of the admission queue that could not be served, for operators to look at and decide."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime

from slotlock.stores.queue import QUESTION_CHARS, QueuedRequest
from slotlock.stores.queue_partitions import decoded, read_entry
from slotlock.stores.queue_scripts import DISCARD, REPLAY, keys
from slotlock.stores.redis import RedisLine

PAGE = 100


@dataclass(frozen=True, slots=True)
class AsideEntry:
    """A request that was set aside. `name` is what operators call it by."""

    partition: int
    id: str
    request: QueuedRequest | None
    asked_at: datetime
    reason: str

    @property
    def name(self) -> str:
        """The partition and the entry in it."""
        return f"{self.partition}/{self.id}"


class SetAside:
    """What was set aside in all partitions. Errors of all methods: RedisAwayError."""

    def __init__(self, line: RedisLine, partitions: int) -> None:
        self._line = line
        self._partitions = partitions

    async def all(self) -> AsyncIterator[AsideEntry]:
        """Everything, by partition, the oldest first."""
        for partition in range(self._partitions):
            since = "-"
            while found := await self._page(partition, since):
                for entry in found:
                    yield entry
                since = f"({found[-1].id}"

    async def _page(self, partition: int, since: str) -> list[AsideEntry]:
        answer = await self._line.send("XRANGE", keys(partition)[2], since, "+", "COUNT", PAGE)
        return [_aside(partition, id_.decode(), decoded(fields)) for id_, fields in answer]

    async def replay(self, entry: AsideEntry) -> bool:
        """Put a request back in line, behind all; False when it is none, or no longer there."""
        request = entry.request
        if request is None:
            return False
        ms = str(round(entry.asked_at.timestamp() * 1000))
        named = (request.slot_id, request.key_field, request.claim_field)
        question = request.question[:QUESTION_CHARS]
        return await self._done(REPLAY, 3, entry, *named, question, ms, *request.entry(), "ms", ms)

    async def discard(self, entry: AsideEntry) -> bool:
        """Forget a request, so that its ticket is lost; False when it is no longer there."""
        field = entry.request.key_field if entry.request else ""
        return await self._done(DISCARD, 3, entry, field)

    async def _done(self, script: str, count: int, entry: AsideEntry, *arguments: str) -> bool:
        named = keys(entry.partition)[:count]
        return bool(await self._line.send("EVAL", script, count, *named, entry.id, *arguments))


def _aside(partition: int, id_: str, fields: dict[str, str]) -> AsideEntry:
    entry = read_entry(id_, fields)
    reason = fields.get("reason", "")
    return AsideEntry(partition, id_, entry.request, entry.asked_at, reason)
