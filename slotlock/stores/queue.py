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

from slotlock.domain.bookings import SlotId
from slotlock.domain.people import UserId
from slotlock.domain.tickets import Ticket, TicketRef, TicketStatus
from slotlock.stores.queue_scripts import ADD, FIND, keys
from slotlock.stores.redis import RedisLine

PARTITIONS = 5
LONGEST_LINE = 50_000
# Of the hash of a question, which tells a key sent with other arguments from the same again.
QUESTION_CHARS = 16


@dataclass(frozen=True, slots=True)
class QueuedRequest:
    """A place in a slot for somebody, asked for by themselves or by another.

    `key` is the hash of the idempotency key, `question` that of all that was asked under it.
    """

    slot_id: SlotId
    user_id: UserId
    asked_by: UserId
    hold: bool
    key: str
    question: str

    @property
    def key_field(self) -> str:
        """Where the partition keeps what is known of this key."""
        return _key_field(self.asked_by, self.key)

    @property
    def claim_field(self) -> str:
        """Where it keeps who stands in line for the same already."""
        return f"c{self.slot_id}{self.user_id}{self.asked_by}{int(self.hold)}"

    @property
    def fields(self) -> dict[str, str]:
        """The fields of its entry in the stream, besides when it was asked for."""
        return {
            "slot": self.slot_id,
            "user": self.user_id,
            "by": self.asked_by,
            "hold": str(int(self.hold)),
            "key": self.key,
            "question": self.question,
        }

    def entry(self) -> list[str]:
        """The fields and values of its entry, as Redis takes them."""
        return [part for pair in self.fields.items() for part in pair]


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a request stands: its ticket, its number, and how many have left the line by now."""

    ref: TicketRef
    number: int
    left: int
    set_aside: bool

    def is_for(self, key: str, question: str) -> bool:
        """Whether it is what was asked for under this key."""
        return (self.ref.key, self.ref.question) == (key, question)

    @property
    def ticket(self) -> Ticket:
        """The ticket as it stands."""
        if self.set_aside:
            return Ticket(self.ref, TicketStatus.SET_ASIDE)
        # Nothing is known of who left where the counts were lost.
        place = max(self.number - self.left, 1) if self.left else 1
        return Ticket(self.ref, TicketStatus.QUEUED, place, self.number)


class Queue:
    """The lines of all slots, in partitions by slot. Errors of all methods: RedisAwayError."""

    def __init__(
        self, line: RedisLine, partitions: int = PARTITIONS, longest: int = LONGEST_LINE
    ) -> None:
        self.line = line
        self.partitions = partitions
        self._longest = longest

    def partition_of(self, slot_id: SlotId) -> int:
        """The partition of a slot, in every process the same."""
        return crc32(slot_id.encode()) % self.partitions

    async def add(self, request: QueuedRequest) -> Standing | None:
        """Where the request stands now, or None when the line is full.

        A key that is in line already, or somebody who stands there for the same place, is not
        added again: the answer is where they stand.
        """
        arguments = (request.key_field, request.claim_field, request.question[:QUESTION_CHARS])
        more = (self._longest, request.slot_id, *request.entry())
        return await self._standing(ADD, request.slot_id, *arguments, *more)

    async def find(self, slot_id: SlotId, asked_by: UserId, key: str) -> Standing | None:
        """Where the request with this key stands; None when it is not in line."""
        return await self._standing(FIND, slot_id, slot_id, _key_field(asked_by, key))

    async def find_claim(self, request: QueuedRequest) -> Standing | None:
        """Where somebody stands already for what this request asks for; None when nowhere."""
        slot_id, fields = request.slot_id, (request.key_field, request.claim_field)
        return await self._standing(FIND, slot_id, slot_id, *fields)

    async def _standing(self, script: str, slot_id: SlotId, *arguments: Any) -> Standing | None:
        named = keys(self.partition_of(slot_id))
        answer = await self.line.send("EVAL", script, 3, *named, *arguments)
        if answer is None:
            return None
        known, left, field = answer
        return _standing(slot_id, field.decode(), known, left)

    async def left(self, slot_ids: Iterable[SlotId]) -> dict[SlotId, int]:
        """How many have left the lines of these slots; nothing where nobody stands in line."""
        wanted = list(slot_ids)
        counts = await asyncio.gather(*(self._left(slot_id) for slot_id in wanted))
        return {id_: int(count) for id_, count in zip(wanted, counts, strict=True) if count}

    def _left(self, slot_id: SlotId) -> "asyncio.Future[bytes | None]":
        _, tickets, _ = keys(self.partition_of(slot_id))
        return self.line.send("HGET", tickets, f"o{slot_id}")

    async def lengths(self) -> Sequence[tuple[int, int]]:
        """Of each partition, how many requests are in line and how many are set aside."""
        named = [keys(partition) for partition in range(self.partitions)]
        asked = [self.line.send("XLEN", name) for key in named for name in (key[0], key[2])]
        counts = await asyncio.gather(*asked)
        return list(zip(counts[::2], counts[1::2], strict=True))


def _key_field(asked_by: UserId, key: str) -> str:
    return f"k{asked_by}{key}"


def _standing(slot_id: SlotId, field: str, known: bytes, left: bytes) -> Standing:
    state, _, number, question, ms = known.decode().split(":")
    user_id, key = UserId(field[1:25]), field[25:]
    ref = TicketRef(slot_id, user_id, key, question, in_ms(int(ms)))
    return Standing(ref, int(number), int(left), state == "a")


def in_ms(ms: int) -> datetime:
    """The time that this many milliseconds stand for."""
    return datetime.fromtimestamp(ms // 1000, UTC).replace(microsecond=ms % 1000 * 1000)
