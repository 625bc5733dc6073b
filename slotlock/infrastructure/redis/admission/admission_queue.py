"""The admission queue in Redis, as clients use it: enqueue a request, find its position.

Redis may lose queued requests, but no outcomes: the outcome of a request is stored in MongoDB
before the request leaves the queue.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from zlib import crc32

from slotlock.domain.admission.tickets import Ticket, TicketRef, TicketStatus
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.batching import Batcher
from slotlock.infrastructure.redis.admission.queue_scripts import (
    CANCEL,
    ENQUEUE,
    FIND,
    STATE_DEAD_LETTER,
)
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.redis.keys import MAX_QUEUE_LENGTH, PARTITIONS, queue_keys

# Redis executes nothing else meanwhile, and limits how many arguments a script accepts.
MAX_SCRIPT_REQUESTS = 200
# The part of a request hash that tells whether a key was reused with other arguments.
REQUEST_HASH_CHARS = 16
EPOCH = datetime.fromtimestamp(0, UTC)


@value_object
class QueuedBooking:
    """A queued request for a place in a slot, made by the user or on their behalf.

    `key` is the hash of the idempotency key, `request_hash` that of all arguments of the request.
    """

    slot_id: SlotId
    user_id: UserId
    requested_by: UserId
    hold: bool
    key: str
    request_hash: str
    # The trace of the request as a W3C header; empty without traces.
    traceparent: str = ""

    @property
    def key_field(self) -> str:
        """The field of the partition's tickets that describes this request."""
        return _key_field(self.requested_by, self.key)

    @property
    def booking_field(self) -> str:
        """The field of the partition's tickets that names the request for this booking."""
        return f"c{self.slot_id}{self.user_id}{self.requested_by}{int(self.hold)}"

    @property
    def fields(self) -> dict[str, str]:
        """The fields of its stream entry, except for the time of the request."""
        return {
            "slot": self.slot_id,
            "user": self.user_id,
            "by": self.requested_by,
            "hold": str(int(self.hold)),
            "key": self.key,
            "request_hash": self.request_hash,
            **({"traceparent": self.traceparent} if self.traceparent else {}),
        }

    @property
    def untraced(self) -> "QueuedBooking":
        """The request without its trace."""
        return replace(self, traceparent="") if self.traceparent else self

    def flat_fields(self) -> list[str]:
        """Return the fields and values of its stream entry, as Redis expects them."""
        return list(chain.from_iterable(self.fields.items()))

    def enqueue_arguments(self, requested_at: datetime) -> list[str]:
        """Return the arguments of this request for the script ENQUEUE."""
        return [
            self.slot_id,
            self.key_field,
            self.booking_field,
            self.request_hash[:REQUEST_HASH_CHARS],
            str(to_milliseconds(requested_at)),
            *self.flat_fields(),
        ]


# A request, and its time by the clock of MongoDB.
_TimedRequest = tuple[QueuedBooking, datetime]
# A slot, the k field, and the c field to find a request for the same booking, or an empty text.
_Search = tuple[SlotId, str, str]


@value_object
class QueuePosition:
    """The ticket of a queued request, its sequence, and how many requests have left the queue.

    `cancelled_ahead` requests between those and this one have left the queue as well.
    """

    ref: TicketRef
    sequence: int
    served_count: int
    cancelled_ahead: int
    is_dead_letter: bool

    def matches(self, key: str, short_request_hash: str) -> bool:
        """Return whether this is the request with this key and these arguments."""
        return (self.ref.key_hash, self.ref.request_hash) == (key, short_request_hash)

    @property
    def ticket(self) -> Ticket:
        """The ticket in its present state."""
        if self.is_dead_letter:
            return Ticket(self.ref, TicketStatus.FAILED)
        # Without the count (Redis lost it), the position is unknown.
        ahead = self.served_count + self.cancelled_ahead
        position = max(self.sequence - ahead, 1) if self.served_count else 1
        return Ticket(self.ref, TicketStatus.QUEUED, position, self.sequence)


class AdmissionQueue:
    """The queues of all slots, partitioned by slot. Methods raise RedisUnavailableError."""

    def __init__(
        self,
        pipeline: AutoPipeline,
        partitions: int = PARTITIONS,
        max_length: int = MAX_QUEUE_LENGTH,
    ) -> None:
        self.pipeline = pipeline
        self.partitions = partitions
        self._max_length = max_length
        # By partition: a script runs on the keys of one, and its error concerns no other.
        self._enqueue_batchers = [
            Batcher(partial(self._enqueue_batch, partition), MAX_SCRIPT_REQUESTS)
            for partition in range(partitions)
        ]
        self._find_batchers = [
            Batcher(partial(self._run, partition, FIND, ()), MAX_SCRIPT_REQUESTS)
            for partition in range(partitions)
        ]

    def partition_of(self, slot_id: SlotId) -> int:
        """Return the partition of a slot, which is the same in every process."""
        return crc32(slot_id.encode()) % self.partitions

    async def enqueue(self, request: QueuedBooking, now: datetime) -> QueuePosition | None:
        """Enqueue a request and return its position, or None if the queue is full.

        If the key or a request for the same booking is queued already, its position is returned.
        """
        batcher = self._enqueue_batchers[self.partition_of(request.slot_id)]
        return await batcher.submit((request, now))

    async def _enqueue_batch(
        self, partition: int, requests: list[_TimedRequest]
    ) -> list[QueuePosition | None]:
        arguments = _enqueue_arguments(requests)
        header = (self._max_length, len(arguments[0]))
        return await self._run(partition, ENQUEUE, header, arguments)

    async def find(self, slot_id: SlotId, requested_by: UserId, key: str) -> QueuePosition | None:
        """Return the position of the request with this key, or None if it is not queued."""
        return await self._find((slot_id, _key_field(requested_by, key), ""))

    async def find_by_booking(self, request: QueuedBooking) -> QueuePosition | None:
        """Return the position of a queued request for the same booking, or None."""
        return await self._find((request.slot_id, request.key_field, request.booking_field))

    async def _find(self, search: _Search) -> QueuePosition | None:
        return await self._find_batchers[self.partition_of(search[0])].submit(search)

    async def _run(
        self,
        partition: int,
        script: str,
        header: Sequence[int],
        requests: Sequence[Sequence[str]],
    ) -> list[QueuePosition | None]:
        """Run a script for requests, whose first argument is the slot. Return their positions."""
        arguments = chain.from_iterable(requests)
        keys = queue_keys(partition)
        replies = await self.pipeline.run_script(script, keys, *header, *arguments)
        return [
            _to_position(SlotId(request[0]), reply)
            for request, reply in zip(requests, replies, strict=True)
        ]

    async def remove_cancelled(self, ref: TicketRef) -> None:
        """Remove a cancelled request, as soon as Redis is available. Those behind it move up."""
        keys = queue_keys(self.partition_of(ref.slot_id))
        key_field = _key_field(ref.requested_by, ref.key_hash)
        command = ("EVAL", CANCEL, len(keys), *keys, ref.slot_id, key_field, ref.request_hash)
        try:
            await self.pipeline.send(*command)
        except RedisUnavailableError:
            self.pipeline.send_after_recovery(*command)

    async def served_counts(self, slot_ids: Iterable[SlotId]) -> dict[SlotId, int]:
        """Return how many requests have left each queue. Empty queues are left out."""
        wanted = list(slot_ids)
        counts = await asyncio.gather(*(self._served_count(slot_id) for slot_id in wanted))
        return {id_: int(count) for id_, count in zip(wanted, counts, strict=True) if count}

    def _served_count(self, slot_id: SlotId) -> "asyncio.Future[bytes | None]":
        tickets = queue_keys(self.partition_of(slot_id)).tickets
        return self.pipeline.send("HGET", tickets, f"o{slot_id}")

    async def lengths(self) -> Sequence[tuple[int, int]]:
        """Return, for each partition, how many requests are queued and how many dead letters."""
        streams = []
        for partition in range(self.partitions):
            keys = queue_keys(partition)
            streams += [keys.requests, keys.dead_letters]
        lengths = await asyncio.gather(*(self.pipeline.send("XLEN", key) for key in streams))
        return list(zip(lengths[::2], lengths[1::2], strict=True))


def _enqueue_arguments(requests: Sequence[_TimedRequest]) -> list[list[str]]:
    """Return the arguments of each request, as many for each: a trace is left out if one has none.

    Requests have no trace if they came in over a connection whose span had ended already.
    """
    has_traces = all(request.traceparent for request, _ in requests)
    return [
        (request if has_traces else request.untraced).enqueue_arguments(requested_at)
        for request, requested_at in requests
    ]


def _key_field(requested_by: UserId, key: str) -> str:
    return f"k{requested_by}{key}"


def _to_position(
    slot_id: SlotId, reply: tuple[bytes, bytes, bytes, int] | None
) -> QueuePosition | None:
    """Return the position that a script found for a request; None if it found none."""
    if reply is None:
        return None
    ticket, served_count, key_field, cancelled_ahead = reply
    state, _, sequence, request_hash, ms = ticket.decode().split(":")
    user_id, key = UserId(key_field[1:25].decode()), key_field[25:].decode()
    ref = TicketRef(slot_id, user_id, key, request_hash, from_milliseconds(int(ms)))
    is_dead_letter = state == STATE_DEAD_LETTER
    return QueuePosition(ref, int(sequence), int(served_count), cancelled_ahead, is_dead_letter)


def from_milliseconds(ms: int) -> datetime:
    """Convert a Unix time in milliseconds, exactly."""
    return EPOCH + timedelta(milliseconds=ms)


def to_milliseconds(at: datetime) -> int:
    """Convert to a Unix time in milliseconds."""
    return round(at.timestamp() * 1000)
