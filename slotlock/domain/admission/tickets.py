"""Tickets of the admission queue: the position of a request, and its outcome in the end."""

from datetime import datetime, timedelta

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import BookOutcome
from slotlock.domain.booking.booking_refusals import (
    BookingRefusal,
    KeyReused,
    OnBehalfRefusal,
    QueueFull,
)
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.shared.declare import SENT_ID, outcome, refusal, shown
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId

# How long a ticket can be read, and a queued request is still processed.
TICKET_TTL = timedelta(hours=24)
# How far the clock of the process that issued a ticket may be ahead.
MAX_TICKET_CLOCK_SKEW = timedelta(minutes=1)


class TicketStatus(DescribedEnum):
    """The progress of a ticket."""

    QUEUED = "queued", "The request waits in the queue."
    ANSWERED = "answered", "The request was processed and `outcome` is final."
    LOST = (
        "lost",
        "The queue lost the request before it was processed. Nothing was booked; the user may "
        "request the booking again with the same key or another one.",
    )
    FAILED = "failed", "The request could not be processed. Operators can return it to the queue."
    CANCELLED = (
        "cancelled",
        "The user cancelled the request before it was processed. Nothing was booked, and nothing "
        "will be.",
    )


@value_object
class TicketRef:
    """The request that a ticket is for: its slot, its user, its key and its time.

    `key_hash` and `request_hash` are hashes of the idempotency key and of the request.
    """

    slot_id: SlotId
    requested_by: UserId
    key_hash: str
    request_hash: str
    requested_at: datetime

    def is_known_at(self, now: datetime) -> bool:
        """Return whether the ticket can still be read."""
        return self.requested_at - MAX_TICKET_CLOCK_SKEW < now < self.requested_at + TICKET_TTL


@value_object
class Ticket:
    """The state of a ticket.

    `position` counts from 1; it is None if the request is not queued, or if Redis is unavailable.
    `sequence` grows with every request for the slot. `result` is set once the request is processed,
    and its outcome is final. `acts_for` has the user of the booking, if it is for somebody for whom
    the caller acts. `is_own` is false of a refusal if the request was for another user.
    """

    ref: TicketRef
    status: TicketStatus
    position: int | None = None
    sequence: int | None = None
    result: CommandResult[BookOutcome] | None = None
    acts_for: frozenset[UserId] = frozenset()
    is_own: bool = True

    @property
    def is_final(self) -> bool:
        """Whether the status stays, unless the user sends the request again."""
        return self.status in (TicketStatus.ANSWERED, TicketStatus.LOST, TicketStatus.CANCELLED)


@value_object
class RequestLost:
    """The request was lost before it was decided, and its key can be used again.

    Or its user cancelled it, which uses the key up. Versions that do not know `was_cancelled` read
    a cancelled request as lost. In either case, nothing is booked for the request.
    """

    was_cancelled: bool = False


@outcome
class TicketCancelled:
    """The request was cancelled: nothing was booked, and nothing will be.

    Cancelling it again gives the same result.
    """

    ticket: Ticket = shown("The cancelled ticket.")


@refusal(message="This request is no longer in the queue.")
class TicketNotQueued:
    """The request cannot be cancelled: it has an outcome, or the queue lost it."""

    ticket: Ticket = shown("The ticket in its final state. `cancelBooking` cancels what it booked.")


@refusal(message="This ticket does not exist.")
class TicketNotFound:
    """The caller has no such ticket, or it is older than 24 hours."""

    ref: TicketRef = shown(SENT_ID, name="ticket_id")


CancelTicketOutcome = TicketCancelled | TicketNotQueued | TicketNotFound


RequestBookingOutcome = Ticket | QueueFull | BookingRefusal | KeyReused | OnBehalfRefusal
