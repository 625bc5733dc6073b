"""The log of everything that happened: to bookings, in waiting lists, and by organisers' hands."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slotlock.domain.bookings import BookingId, SlotId
from slotlock.domain.people import UserId
from slotlock.domain.record import BookingStatus, Deed, Limit
from slotlock.domain.terms import CampaignId


class Happening(StrEnum):
    """What happened; to a booking it is the same as its `Deed`."""

    BOOKED = Deed.BOOKED.value
    HELD = Deed.HELD.value
    PROMOTED = Deed.PROMOTED.value
    OFFERED = Deed.OFFERED.value
    CONFIRMED = Deed.CONFIRMED.value
    EXTENDED = Deed.EXTENDED.value
    MOVED = Deed.MOVED.value
    CANCELLED = Deed.CANCELLED.value
    EXPIRED = Deed.EXPIRED.value
    WAITLIST_JOINED = "waitlist_joined"
    WAITLIST_LEFT = "waitlist_left"


@dataclass(frozen=True, slots=True)
class AuditPosition:
    """Where an entry stands: when it was, of what it tells, and which of its entries it is."""

    at: datetime
    id: str
    number: int


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that happened: where it stands, what, by whom, to whom and where.

    `by` is None for the waiting list and the clock. `before` and `after` are a booking's status.
    """

    position: AuditPosition
    what: Happening
    by: UserId | None
    user_id: UserId | None = None
    slot_id: SlotId | None = None
    booking_id: BookingId | None = None
    before: BookingStatus | None = None
    after: BookingStatus | None = None
    held_until: datetime | None = None
    overrode: tuple[Limit, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries; a field that is None asks for nothing. `since` is inclusive.

    `user_id` is whose booking it is, `by` who did it; `by_nobody` are the waiting list and the
    clock.
    """

    campaign_id: CampaignId | None = None
    slot_id: SlotId | None = None
    user_id: UserId | None = None
    by: UserId | None = None
    by_nobody: bool = False
    what: frozenset[Happening] | None = None
    since: datetime | None = None
    before: datetime | None = None

    @property
    def bounded(self) -> bool:
        """Whether it names something of which there is not too much to read."""
        return any((self.campaign_id, self.slot_id, self.user_id, self.by))


def newest(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """The entries in order, the newest first."""
    return sorted(entries, key=_place, reverse=True)


def _place(entry: AuditEntry) -> tuple[datetime, str, int]:
    return entry.position.at, entry.position.id, entry.position.number
