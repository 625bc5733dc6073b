"""The outbox: what is to be sent because of a change, and what became of it.

An entry is sent at least once: an attempt that does not end within its lease is made again, with
the same id.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.shared.declare import outcome, shown
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId

# Longer than any attempt takes.
LEASE = timedelta(minutes=2)
# How many entries one request sends again.
MAX_RETRIED = 1000
OUTAGE_DELAY = timedelta(minutes=1)
MAX_NOTE_CHARS = 500
# Why a mail was suppressed that can be sent again, once its address works.
UNDELIVERABLE = "the address is undeliverable"


class Channel(DescribedEnum):
    """How an entry of the outbox is sent."""

    MAIL = "mail", "As a mail."
    WEBHOOK = "webhook", "As a call of a webhook."


class OutboxState(DescribedEnum):
    """What became of an entry of the outbox."""

    # Only QUEUED and SENDING are followed by another state.
    QUEUED = "queued", "It waits for its time, or for the next attempt."
    SENDING = "sending", "It is being sent."
    SENT = "sent", "The other server has taken it."
    FAILED = "failed", "The other server rejected it, or the last attempt failed."
    SUPPRESSED = (
        "suppressed",
        "It was not sent, because there was no address or no reason any more.",
    )


# The delays before the attempts that follow a first one without success.
RETRY_DELAYS = {
    Channel.MAIL: tuple(timedelta(minutes=each) for each in (1, 5, 30, 120, 480, 1440)),
    Channel.WEBHOOK: (
        timedelta(seconds=5),
        timedelta(minutes=5),
        *(timedelta(minutes=each) for each in (30, 120, 300, 600, 840, 1200, 1440)),
    ),
}


@value_object
class OutboxEntry:
    """One mail or call that is to be sent at `due_at`, because of what happened at `at`.

    The id is `kind:subject:version`, for a webhook followed by `:endpoint`, so that the same change
    never becomes two entries. Mails of one group that are queued together are sent as one.
    `data` is what the sender needs besides; that of a confidential entry is deleted once the entry
    is sent or failed. After `expires_at` it is not sent any more.

    `due_at` of an entry that is being sent is the end of its lease. `lead_id` is the entry with
    which this one is sent. With `dependents`, the entry is about these users, and goes to `user_id`
    as a guardian: its id is that of the change, followed by the guardian.
    """

    id: str
    channel: Channel
    kind: str
    at: datetime
    due_at: datetime
    user_id: UserId | None = None
    slot_id: SlotId | None = None
    booking_id: BookingId | None = None
    group: str | None = None
    data: Mapping[str, str] = field(default_factory=dict)
    is_confidential: bool = False
    expires_at: datetime | None = None
    state: OutboxState = OutboxState.QUEUED
    attempts: int = 0
    lead_id: str | None = None
    recipient: str | None = None
    note: str | None = None
    done_at: datetime | None = None
    dependents: tuple[UserId, ...] = ()

    @property
    def dependent_id(self) -> UserId | None:
        """The only user for whom a guardian gets it; an announcement may be for several."""
        return self.dependents[0] if len(self.dependents) == 1 else None

    @property
    def about_id(self) -> UserId | None:
        """The user whom it is about."""
        return self.dependent_id or self.user_id

    @property
    def change_id(self) -> str:
        """The id without the guardian: the same change has it for all recipients."""
        return self.id.removesuffix(f":{self.user_id}") if self.dependent_id else self.id

    @property
    def can_retry(self) -> bool:
        """Whether it failed, or waits after an attempt, and what it says is there."""
        if self.state is OutboxState.FAILED or self.is_suppressed_by_mark:
            return not self.is_confidential
        return self.state is OutboxState.QUEUED and self.attempts > 0

    @property
    def is_suppressed_by_mark(self) -> bool:
        """Whether it was not sent because its address was undeliverable."""
        return self.state is OutboxState.SUPPRESSED and self.note == UNDELIVERABLE


@outcome
class OutboxEntryQueued:
    """An entry that was not sent, or waited for its next attempt, is sent at once."""

    entry: OutboxEntry = shown("The entry; others that are one mail with it are sent with it.")


@outcome
class OutboxEntriesQueued:
    """Entries that were not sent are sent again."""

    count: int = shown("How many, at most 1000.")


@value_object
class Delivery:
    """What an attempt led to.

    `QUEUED` means that it is to be made again: after the next delay of the channel, and not before
    `retry_after`. An outage is not the fault of the entry, which is tried again every minute, or
    after `retry_after`.
    `note` is a reason, or the response to a success. A recipient who is undeliverable
    gets no more mail until the address changes.
    """

    state: OutboxState
    note: str
    recipient: str | None = None
    retry_after: timedelta | None = None
    is_outage: bool = False
    is_undeliverable: bool = False


def next_delay(entry: OutboxEntry, delivery: Delivery) -> timedelta | None:
    """Return how long to wait before the next attempt; None if there is none.

    `attempts` of the entry includes the one of this delivery.
    """
    if delivery.state is not OutboxState.QUEUED:
        return None
    if delivery.is_outage:
        return max(OUTAGE_DELAY, delivery.retry_after or timedelta())
    delays = RETRY_DELAYS[entry.channel]
    if entry.attempts > len(delays):
        return None
    return max(delays[max(entry.attempts, 1) - 1], delivery.retry_after or timedelta())


def to_note(text: str) -> str:
    """Return what a server said as one line that every terminal and page can show.

    A response may contain any bytes: control characters and lone surrogates become `?`.
    """
    shown = (c if c.isprintable() else " " if c.isspace() else "?" for c in text[:MAX_NOTE_CHARS])
    return " ".join("".join(shown).split())
