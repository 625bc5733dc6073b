"""A ticket: somebody's place in the line in front of a slot, and what came of it in the end."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.outcomes import BookOutcome
from slotlock.domain.booking.refusals import BookingRefusal, KeyReused, OnBehalfRefusal, QueueFull
from slotlock.domain.users.user import UserId

# For so long a ticket can be looked at, and a request in line is still worth serving.
TICKET_TTL = timedelta(hours=24)
# By so much the clock that a ticket was given by may be ahead.
MAX_TICKET_CLOCK_SKEW = timedelta(minutes=1)


class TicketStatus(StrEnum):
    """Where a ticket is on its way."""

    QUEUED = "queued"
    ANSWERED = "answered"
    LOST = "lost"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class TicketRef:
    """Which request a ticket is for: whose, under which key, and what was asked and when.

    `key` and `question` are hashes, of the idempotency key and of what was asked under it.
    """

    slot_id: SlotId
    requested_by: UserId
    key_hash: str
    request_hash: str
    requested_at: datetime

    def is_known_at(self, now: datetime) -> bool:
        """Whether it is still told what came of it."""
        return self.requested_at - MAX_TICKET_CLOCK_SKEW < now < self.requested_at + TICKET_TTL


@dataclass(frozen=True, slots=True)
class Ticket:
    """A ticket as it stands.

    `place` counts from 1 and is None when it is not in line, or when the line cannot be asked;
    `number` grows with those who come for the slot. `outcome` is there once it is answered, and
    stays as it is.
    """

    ref: TicketRef
    status: TicketStatus
    position: int | None = None
    sequence: int | None = None
    outcome: BookOutcome | None = None

    @property
    def is_final(self) -> bool:
        """Whether nothing more comes of it unless its person asks again."""
        return self.status in (TicketStatus.ANSWERED, TicketStatus.LOST)


@dataclass(frozen=True, slots=True)
class RequestLost:
    """The request was lost before anybody decided on it. Its key may be used again."""


@dataclass(frozen=True, slots=True)
class CurrentSlotPlaceholder:
    """Stands for a slot in a kept answer that tells of the slot as it is when it is read."""

    slot_id: SlotId


RequestBookingOutcome = Ticket | QueueFull | KeyReused | BookingRefusal | OnBehalfRefusal
