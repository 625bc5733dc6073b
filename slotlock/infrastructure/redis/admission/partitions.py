"""The admission queue from the side of who serves it: taking requests, and seeing them off."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from redis.exceptions import RedisError, ResponseError

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.redis.admission.queue import (
    REQUEST_HASH_CHARS,
    QueuedBooking,
    from_milliseconds,
)
from slotlock.infrastructure.redis.admission.scripts import (
    ACKNOWLEDGE,
    CONSUMER_GROUP,
    DEAD_LETTER,
    keys,
)
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError

MAX_READ = 1000
# Shorter than the client waits for any answer.
BLOCK_MS = 500
# What was taken so often and never seen off is taken alone: it may be what kills its servers.
ISOLATE_AFTER_DELIVERIES = 3
CONSUMER = "desk"
MAX_FIELDS = 100

_OID = re.compile(r"[0-9a-f]{24}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{32,64}", re.ASCII)
# As many digits as any time that a date can be made of.
_MS = re.compile(r"[0-9]{1,14}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """A request in line, or something else that is there; `deliveries` counts this one too."""

    id: str
    fields: dict[str, str]
    request: QueuedBooking | None
    requested_at: datetime
    deliveries: int = 1


class QueuePartition:
    """One partition, served by one process at a time. Errors of all methods: RedisAwayError."""

    def __init__(self, pipeline: AutoPipeline, number: int) -> None:
        self._pipeline = pipeline
        self._keys = keys(number)

    async def read_pending(self) -> list[StreamEntry]:
        """What was taken before and not seen off, the oldest first; a part of it if it is much."""
        client, stream = self._pipeline.client, self._keys[0]
        listed = ("-", "+", MAX_READ, CONSUMER)
        while pending := await self._execute(
            lambda: client.xpending_range(stream, CONSUMER_GROUP, *listed)
        ):
            # Each time that it is read counts as a delivery, that of this read included.
            counts = {one["message_id"].decode(): one["times_delivered"] + 1 for one in pending}
            most = 1 if max(counts.values()) > ISOLATE_AFTER_DELIVERIES else MAX_READ
            found = await self._read("0", most)
            there = [
                to_stream_entry(id_, fields, counts.get(id_, 1)) for id_, fields in found if fields
            ]
            if len(there) < len(found):
                await self._acknowledge_missing([id_ for id_, fields in found if not fields])
            if there or not found:
                return there
        return []

    async def _acknowledge_missing(self, ids: Sequence[str]) -> None:
        """See off what is no longer there, so that what was taken after it is not behind it."""
        await self._execute(lambda: self._pipeline.client.xack(self._keys[0], CONSUMER_GROUP, *ids))

    async def read_new(self) -> list[StreamEntry]:
        """The next requests in order of arrival, none when none came for a while."""
        return [to_stream_entry(*one) for one in await self._read(">", MAX_READ, BLOCK_MS)]

    async def _read(
        self, after_id: str, limit: int, block_ms: int | None = None
    ) -> list[tuple[str, dict[str, str]]]:
        client, streams = self._pipeline.client, dict[Any, Any]({self._keys[0]: after_id})
        answer = await self._execute(
            lambda: client.xreadgroup(
                CONSUMER_GROUP, CONSUMER, streams, count=limit, block=block_ms
            )
        )
        entries = (entry for _, found in answer or () for entry in found)
        return [(id_.decode(), decode_fields(fields)) for id_, fields in entries]

    async def _execute(self, command: Callable[[], Awaitable[Any]]) -> Any:
        # Not on the line: whoever waits for requests keeps nobody else waiting.
        try:
            try:
                return await command()
            except ResponseError as error:
                if not str(error).startswith("NOGROUP"):
                    raise
                await self._create_group()
                return await command()
        except (RedisError, OSError, TimeoutError) as error:
            raise RedisUnavailableError(str(error)) from error
        finally:
            # The client can swallow a cancellation while it connects.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError

    async def _create_group(self) -> None:
        # From the first entry on: what came before the group is served, too.
        try:
            await self._pipeline.client.xgroup_create(
                self._keys[0], CONSUMER_GROUP, "0", mkstream=True
            )
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    async def acknowledge(self, slot_id: SlotId, entries: Sequence[StreamEntry]) -> None:
        """See off requests for a slot whose outcomes are written: they leave the line."""
        if not entries:
            return
        done = [part for entry in entries for part in _entry_arguments(entry)]
        await self._pipeline.send("EVAL", ACKNOWLEDGE, 2, *self._keys[:2], slot_id, *done)

    async def dead_letter(self, entry: StreamEntry, reason: str) -> None:
        """Take a request that cannot be served out of the line, and keep it with the reason."""
        request = entry.request
        question = request.request_hash[:REQUEST_HASH_CHARS] if request else ""
        ms = str(round(entry.requested_at.timestamp() * 1000))
        # What it is worth to look at: Redis does not take all that a script could be given.
        fields = request.fields if request else dict(islice(entry.fields.items(), MAX_FIELDS))
        kept = {**fields, "ms": ms, "reason": reason}
        pairs = [part for pair in kept.items() for part in pair]
        slot_id = request.slot_id if request else ""
        named = (slot_id, *_entry_arguments(entry), question, ms, *pairs)
        await self._pipeline.send("EVAL", DEAD_LETTER, 3, *self._keys, *named)


def _entry_arguments(entry: StreamEntry) -> tuple[str, str, str]:
    request = entry.request
    return (entry.id, request.key_field, request.claim_field) if request else (entry.id, "", "")


def decode_fields(fields: Any) -> dict[str, str]:
    """The fields of an entry, whatever is in them."""
    return {
        k.decode(errors="replace"): v.decode(errors="replace") for k, v in (fields or {}).items()
    }


def to_stream_entry(id_: str, fields: dict[str, str], deliveries: int = 1) -> StreamEntry:
    """The entry with these fields."""
    times = (fields.get("ms", ""), id_.split("-")[0], "0")
    asked_at = from_milliseconds(int(next(filter(_MS.fullmatch, times))))
    return StreamEntry(id_, fields, to_queued_booking(fields), asked_at, deliveries)


def to_queued_booking(fields: dict[str, str]) -> QueuedBooking | None:
    """The request in an entry; None when it is none of ours."""
    oids = [fields.get(name, "") for name in ("slot", "user", "by")]
    hashes = [fields.get(name, "") for name in ("key", "question")]
    if not all(map(_OID.fullmatch, oids)) or not all(map(_HASH.fullmatch, hashes)):
        return None
    slot, user, by = oids
    held = fields.get("hold") == "1"
    return QueuedBooking(SlotId(slot), UserId(user), UserId(by), held, *hashes)
