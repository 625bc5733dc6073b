"""A ticket: somebody's place in the line in front of a slot, and what came of it in the end."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from slotlock.domain.bookings import SlotId
from slotlock.domain.outcomes import BookOutcome
from slotlock.domain.people import UserId
from slotlock.domain.refusals import KeyReused, PartyRefusal, PlaceRefusal, QueueFull

# For so long a ticket can be looked at, and a request in line is still worth serving.
KNOWN_FOR = timedelta(hours=24)
# By so much the clock that a ticket was given by may be ahead.
CLOCKS_APART = timedelta(minutes=1)


class TicketStatus(StrEnum):
    """Where a ticket is on its way."""

    QUEUED = "queued"
    ANSWERED = "answered"
    LOST = "lost"
    SET_ASIDE = "set aside"


@dataclass(frozen=True, slots=True)
class TicketRef:
    """Which request a ticket is for: whose, under which key, and what was asked and when.

    `key` and `question` are hashes, of the idempotency key and of what was asked under it.
    """

    slot_id: SlotId
    asked_by: UserId
    key: str
    question: str
    asked_at: datetime

    def known_at(self, now: datetime) -> bool:
        """Whether it is still told what came of it."""
        return self.asked_at - CLOCKS_APART < now < self.asked_at + KNOWN_FOR


@dataclass(frozen=True, slots=True)
class Ticket:
    """A ticket as it stands.

    `place` counts from 1 and is None when it is not in line, or when the line cannot be asked;
    `number` grows with those who come for the slot. `outcome` is there once it is answered, and
    stays as it is.
    """

    ref: TicketRef
    status: TicketStatus
    place: int | None = None
    number: int | None = None
    outcome: BookOutcome | None = None

    @property
    def final(self) -> bool:
        """Whether nothing more comes of it unless its person asks again."""
        return self.status in (TicketStatus.ANSWERED, TicketStatus.LOST)


@dataclass(frozen=True, slots=True)
class RequestLost:
    """The request was lost before anybody decided on it. Its key may be used again."""


@dataclass(frozen=True, slots=True)
class SlotAsItIs:
    """Stands for a slot in a kept answer that tells of the slot as it is when it is read."""

    slot_id: SlotId


RequestOutcome = Ticket | QueueFull | KeyReused | PlaceRefusal | PartyRefusal
