"""The admission queue in Redis, for queue workers: read requests, acknowledge, dead-letter."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice

from redis.exceptions import RedisClusterException, RedisError, ResponseError
from redis.typing import KeyT, StreamIdT

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.redis.admission.admission_queue import (
    REQUEST_HASH_CHARS,
    QueuedBooking,
    from_milliseconds,
    to_milliseconds,
)
from slotlock.infrastructure.redis.admission.queue_scripts import (
    ACKNOWLEDGE,
    CONSUMER_GROUP,
    DEAD_LETTER,
)
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError, Reply
from slotlock.infrastructure.redis.keys import queue_keys

MAX_READ = 1000
# Half the socket timeout of the client.
BLOCK_MS = 1_000
# A request that was delivered more often without being acknowledged is read alone from then on,
# since it may crash the queue workers.
ISOLATE_AFTER_DELIVERIES = 3
CONSUMER = "admission-worker"
# The length of a W3C header of version 00.
MAX_TRACEPARENT_LENGTH = 55
# Redis limits how many arguments a script accepts.
MAX_DEAD_LETTER_FIELDS = 100

# The slot, the user, the user who made the request, the key and the request hash. One pattern for
# all costs a third of one for each, and a queue worker parses thousands of requests a second.
_REQUEST = re.compile(r"(?:[0-9a-f]{24} ){3}[0-9a-f]{32,64} [0-9a-f]{32,64}", re.ASCII)
# At most as many digits as a datetime can represent.
_MILLISECONDS = re.compile(r"[0-9]{1,14}", re.ASCII)


@value_object
class StreamEntry:
    """An entry of the stream. `request` is None if it is not a booking request.

    `deliveries` says how often it was read by a queue worker, this time included.
    """

    id: str
    fields: dict[str, str]
    request: QueuedBooking | None
    requested_at: datetime
    deliveries: int = 1


class QueuePartition:
    """One partition, for one queue worker at a time. Methods raise RedisUnavailableError."""

    def __init__(self, pipeline: AutoPipeline, number: int) -> None:
        self._pipeline = pipeline
        self._keys = queue_keys(number)

    async def read_pending(self) -> list[StreamEntry]:
        """Return requests that were read before but not acknowledged, the oldest first.

        At most MAX_READ, or a single one if it was delivered too often.
        """
        client, stream = self._pipeline.client, self._keys.requests
        query = ("-", "+", MAX_READ, CONSUMER)
        while pending := await self._execute(
            lambda: client.xpending_range(stream, CONSUMER_GROUP, *query)
        ):
            # Redis counts each read as a delivery, including the one below.
            deliveries = {
                entry["message_id"].decode(): entry["times_delivered"] + 1 for entry in pending
            }
            limit = 1 if max(deliveries.values()) > ISOLATE_AFTER_DELIVERIES else MAX_READ
            read = await self._read("0", limit)
            entries = [
                to_stream_entry(id_, fields, deliveries.get(id_, 1))
                for id_, fields in read
                if fields
            ]
            if len(entries) < len(read):
                await self._acknowledge_deleted([id_ for id_, fields in read if not fields])
            if entries or not read:
                return entries
        return []

    async def _acknowledge_deleted(self, ids: Sequence[str]) -> None:
        # Otherwise a limited read would return nothing but deleted entries.
        stream = self._keys.requests
        await self._execute(lambda: self._pipeline.client.xack(stream, CONSUMER_GROUP, *ids))

    async def read_new(self) -> list[StreamEntry]:
        """Wait up to BLOCK_MS for new requests and return them in order of arrival."""
        return [to_stream_entry(*entry) for entry in await self._read(">", MAX_READ, BLOCK_MS)]

    async def _read(
        self, after_id: str, limit: int, block_ms: int | None = None
    ) -> list[tuple[str, dict[str, str]]]:
        client = self._pipeline.client
        streams: dict[KeyT, StreamIdT] = {self._keys.requests: after_id}
        reply = await self._execute(
            lambda: client.xreadgroup(
                CONSUMER_GROUP, CONSUMER, streams, count=limit, block=block_ms
            )
        )
        entries = (entry for _, entries in reply or () for entry in entries)
        return [(id_.decode(), decode_fields(fields)) for id_, fields in entries]

    async def _execute(self, command: Callable[[], Awaitable[object]]) -> Reply:
        # Not in the shared pipeline, since a blocking read would delay all other commands.
        try:
            try:
                return await command()
            except ResponseError as error:
                if not str(error).startswith("NOGROUP"):
                    raise
                await self._create_group()
                return await command()
        except (RedisError, RedisClusterException, OSError, TimeoutError) as error:
            raise RedisUnavailableError(str(error)) from error
        finally:
            # The client can swallow a cancellation while it connects.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise asyncio.CancelledError

    async def _create_group(self) -> None:
        # From id 0: requests that were enqueued before the group exists are processed, too.
        try:
            await self._pipeline.client.xgroup_create(
                self._keys.requests, CONSUMER_GROUP, "0", mkstream=True
            )
        except ResponseError as error:
            if not str(error).startswith("BUSYGROUP"):
                raise

    async def acknowledge(self, slot_id: SlotId, entries: Sequence[StreamEntry]) -> None:
        """Remove requests for a slot from the queue, once their outcomes are stored."""
        if not entries:
            return
        arguments = [part for entry in entries for part in _entry_arguments(entry)]
        await self._pipeline.run_script(ACKNOWLEDGE, self._keys, slot_id, *arguments)

    async def dead_letter(self, entry: StreamEntry, reason: str) -> None:
        """Move an entry to the dead letters, together with the reason."""
        request = entry.request
        requested_ms = str(to_milliseconds(entry.requested_at))
        fields = (
            request.fields
            if request
            else dict(islice(entry.fields.items(), MAX_DEAD_LETTER_FIELDS))
        )
        stored = {**fields, "ms": requested_ms, "reason": reason}
        await self._pipeline.run_script(
            DEAD_LETTER,
            self._keys,
            request.slot_id if request else "",
            *_entry_arguments(entry),
            request.request_hash[:REQUEST_HASH_CHARS] if request else "",
            requested_ms,
            *(part for pair in stored.items() for part in pair),
        )


def _entry_arguments(entry: StreamEntry) -> tuple[str, str, str]:
    request = entry.request
    return (entry.id, request.key_field, request.booking_field) if request else (entry.id, "", "")


def decode_fields(fields: Mapping[bytes, bytes] | None) -> dict[str, str]:
    """Decode the fields of an entry, which may be any bytes or missing."""
    found = fields or {}
    try:
        return {name.decode(): value.decode() for name, value in found.items()}
    except UnicodeDecodeError:
        return {_decode(name): _decode(value) for name, value in found.items()}


def _decode(text: bytes) -> str:
    return text.decode(errors="replace")


def to_stream_entry(id_: str, fields: dict[str, str], deliveries: int = 1) -> StreamEntry:
    """Parse an entry. Its time is that of its fields or, if they have none, that of its id."""
    milliseconds = fields.get("ms", "")
    if not _MILLISECONDS.fullmatch(milliseconds):
        from_id = _MILLISECONDS.fullmatch(id_.split("-")[0])
        milliseconds = from_id[0] if from_id else "0"
    requested_at = from_milliseconds(int(milliseconds))
    return StreamEntry(id_, fields, to_queued_booking(fields), requested_at, deliveries)


def to_queued_booking(fields: dict[str, str]) -> QueuedBooking | None:
    """Parse a booking request, or return None if the fields are not one."""
    find = fields.get
    slot_id, user_id, requested_by = find("slot", ""), find("user", ""), find("by", "")
    key, request_hash = find("key", ""), find("request_hash", "")
    # A field that contains a space does not match, since the pattern has as many as are added.
    if not _REQUEST.fullmatch(f"{slot_id} {user_id} {requested_by} {key} {request_hash}"):
        return None
    return QueuedBooking(
        SlotId(slot_id),
        UserId(user_id),
        UserId(requested_by),
        find("hold") == "1",
        key,
        request_hash,
        find("traceparent", "")[:MAX_TRACEPARENT_LENGTH],
    )
