"""The admission queue in Redis, from the side of those who ask: standing in line, finding a place.

What is in line may be lost with Redis, and nothing else: outcomes are in MongoDB before a request
leaves the line.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.tickets import Ticket, TicketRef, TicketStatus
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.redis.admission.scripts import ENQUEUE, FIND, keys
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline

PARTITIONS = 5
MAX_QUEUE_LENGTH = 50_000
# Of the hash of a question, which tells a key sent with other arguments from the same again.
REQUEST_HASH_CHARS = 16


@dataclass(frozen=True, slots=True)
class QueuedBooking:
    """A place in a slot for somebody, asked for by themselves or by another.

    `key` is the hash of the idempotency key, `question` that of all that was asked under it.
    """

    slot_id: SlotId
    user_id: UserId
    requested_by: UserId
    hold: bool
    key: str
    request_hash: str

    @property
    def key_field(self) -> str:
        """Where the partition keeps what is known of this key."""
        return _key_field(self.requested_by, self.key)

    @property
    def claim_field(self) -> str:
        """Where it keeps who stands in line for the same already."""
        return f"c{self.slot_id}{self.user_id}{self.requested_by}{int(self.hold)}"

    @property
    def fields(self) -> dict[str, str]:
        """The fields of its entry in the stream, besides when it was asked for."""
        return {
            "slot": self.slot_id,
            "user": self.user_id,
            "by": self.requested_by,
            "hold": str(int(self.hold)),
            "key": self.key,
            "question": self.request_hash,
        }

    def flat_fields(self) -> list[str]:
        """The fields and values of its entry, as Redis takes them."""
        return [part for pair in self.fields.items() for part in pair]


@dataclass(frozen=True, slots=True)
class QueuePosition:
    """Where a request stands: its ticket, its number, and how many have left the line by now."""

    ref: TicketRef
    sequence: int
    served_count: int
    is_dead_letter: bool

    def matches(self, key: str, short_request_hash: str) -> bool:
        """Whether it is what was asked for under this key."""
        return (self.ref.key_hash, self.ref.request_hash) == (key, short_request_hash)

    @property
    def ticket(self) -> Ticket:
        """The ticket as it stands."""
        if self.is_dead_letter:
            return Ticket(self.ref, TicketStatus.FAILED)
        # Nothing is known of who left where the counts were lost.
        place = max(self.sequence - self.served_count, 1) if self.served_count else 1
        return Ticket(self.ref, TicketStatus.QUEUED, place, self.sequence)


class AdmissionQueue:
    """The lines of all slots, in partitions by slot. Errors of all methods: RedisAwayError."""

    def __init__(
        self,
        pipeline: AutoPipeline,
        partitions: int = PARTITIONS,
        max_length: int = MAX_QUEUE_LENGTH,
    ) -> None:
        self.pipeline = pipeline
        self.partitions = partitions
        self._max_length = max_length

    def partition_of(self, slot_id: SlotId) -> int:
        """The partition of a slot, in every process the same."""
        return crc32(slot_id.encode()) % self.partitions

    async def enqueue(self, request: QueuedBooking) -> QueuePosition | None:
        """Where the request stands now, or None when the line is full.

        A key that is in line already, or somebody who stands there for the same place, is not
        added again: the answer is where they stand.
        """
        arguments = (
            request.key_field,
            request.claim_field,
            request.request_hash[:REQUEST_HASH_CHARS],
        )
        more = (self._max_length, request.slot_id, *request.flat_fields())
        return await self._find_position(ENQUEUE, request.slot_id, *arguments, *more)

    async def find(self, slot_id: SlotId, requested_by: UserId, key: str) -> QueuePosition | None:
        """Where the request with this key stands; None when it is not in line."""
        return await self._find_position(FIND, slot_id, slot_id, _key_field(requested_by, key))

    async def find_by_claim(self, request: QueuedBooking) -> QueuePosition | None:
        """Where somebody stands already for what this request asks for; None when nowhere."""
        slot_id, fields = request.slot_id, (request.key_field, request.claim_field)
        return await self._find_position(FIND, slot_id, slot_id, *fields)

    async def _find_position(
        self, script: str, slot_id: SlotId, *arguments: Any
    ) -> QueuePosition | None:
        named = keys(self.partition_of(slot_id))
        answer = await self.pipeline.send("EVAL", script, 3, *named, *arguments)
        if answer is None:
            return None
        known, left, field = answer
        return _to_position(slot_id, field.decode(), known, left)

    async def served_counts(self, slot_ids: Iterable[SlotId]) -> dict[SlotId, int]:
        """How many have left the lines of these slots; nothing where nobody stands in line."""
        wanted = list(slot_ids)
        counts = await asyncio.gather(*(self._served_count(slot_id) for slot_id in wanted))
        return {id_: int(count) for id_, count in zip(wanted, counts, strict=True) if count}

    def _served_count(self, slot_id: SlotId) -> "asyncio.Future[bytes | None]":
        _, tickets, _ = keys(self.partition_of(slot_id))
        return self.pipeline.send("HGET", tickets, f"o{slot_id}")

    async def lengths(self) -> Sequence[tuple[int, int]]:
        """Of each partition, how many requests are in line and how many are set aside."""
        named = [keys(partition) for partition in range(self.partitions)]
        asked = [self.pipeline.send("XLEN", name) for key in named for name in (key[0], key[2])]
        counts = await asyncio.gather(*asked)
        return list(zip(counts[::2], counts[1::2], strict=True))


def _key_field(requested_by: UserId, key: str) -> str:
    return f"k{requested_by}{key}"


def _to_position(slot_id: SlotId, field: str, encoded: bytes, served_count: bytes) -> QueuePosition:
    state, _, number, question, ms = encoded.decode().split(":")
    user_id, key = UserId(field[1:25]), field[25:]
    ref = TicketRef(slot_id, user_id, key, question, from_milliseconds(int(ms)))
    return QueuePosition(ref, int(number), int(served_count), state == "a")


def from_milliseconds(ms: int) -> datetime:
    """The time that this many milliseconds stand for."""
    return datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)
