"""The log of everything that happened: to bookings, in waiting lists, and by organisers' hands."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.history import BookingAction, BookingLimit, BookingStatus
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.users.user import UserId


class AuditAction(StrEnum):
    """What happened; to a booking it is the same as its `Deed`."""

    BOOKED = BookingAction.BOOKED.value
    HELD = BookingAction.HELD.value
    PROMOTED = BookingAction.PROMOTED.value
    OFFERED = BookingAction.OFFERED.value
    CONFIRMED = BookingAction.CONFIRMED.value
    EXTENDED = BookingAction.EXTENDED.value
    MOVED = BookingAction.MOVED.value
    CANCELLED = BookingAction.CANCELLED.value
    EXPIRED = BookingAction.EXPIRED.value
    WAITLIST_JOINED = "waitlist_joined"
    WAITLIST_LEFT = "waitlist_left"
    SLOT_CREATED = "slot_created"
    SLOT_EDITED = "slot_edited"
    SLOT_PUBLISHED = "slot_published"
    SLOT_CANCELLED = "slot_cancelled"
    CAMPAIGN_CREATED = "campaign_created"
    CAMPAIGN_EDITED = "campaign_edited"
    CAMPAIGN_PUBLISHED = "campaign_published"
    CAMPAIGN_UNPUBLISHED = "campaign_unpublished"
    GROUPS_SET = "groups_set"
    ROLE_SET = "role_set"
    BANNED = "banned"
    UNBANNED = "unbanned"
    USERS_IMPORTED = "users_imported"
    USERS_INVITED = "users_invited"

    @property
    def is_note(self) -> bool:
        """Whether it is an organiser's act, of which there is a note, and not on a roster."""
        return self not in BOOKING_ACTIONS


BOOKING_ACTIONS = frozenset(
    {
        *(AuditAction(action.value) for action in BookingAction),
        AuditAction.WAITLIST_JOINED,
        AuditAction.WAITLIST_LEFT,
    }
)


@dataclass(frozen=True, slots=True)
class FieldEdit:
    """A field before and after, as text; of many people at once, whose it is."""

    field: str
    before: str | None
    after: str | None
    user_id: UserId | None = None


@dataclass(frozen=True, slots=True)
class AuditPosition:
    """Where an entry stands: when it was, of what it tells, and which of its entries it is."""

    at: datetime
    id: str
    entry_index: int


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that happened: where it stands, what, by whom, to whom and where.

    `by` is None for the waiting list, the clock and the command line. `before` and `after` are a
    booking's status, `edits` the fields that an organiser changed.
    """

    position: AuditPosition
    action: AuditAction
    by: UserId | None
    user_id: UserId | None = None
    slot_id: SlotId | None = None
    booking_id: BookingId | None = None
    before: BookingStatus | None = None
    after: BookingStatus | None = None
    held_until: datetime | None = None
    overridden_limits: tuple[BookingLimit, ...] = ()
    campaign_id: CampaignId | None = None
    edits: tuple[FieldEdit, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries; a field that is None asks for nothing. `since` is inclusive.

    `user_id` is whose booking it is or to whom it was done, `by` who did it; `by_nobody` are the
    waiting list, the clock and the command line.
    """

    campaign_id: CampaignId | None = None
    slot_id: SlotId | None = None
    user_id: UserId | None = None
    by: UserId | None = None
    system_only: bool = False
    actions: frozenset[AuditAction] | None = None
    since: datetime | None = None
    before: datetime | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether it names something of which there is not too much to read; notes are in order."""
        named = any((self.campaign_id, self.slot_id, self.user_id, self.by))
        return named or not self.includes_bookings

    @property
    def includes_bookings(self) -> bool:
        """Whether what happened on rosters and in waiting lists is asked for."""
        return self.actions is None or bool(self.actions & BOOKING_ACTIONS)


def newest_first(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """The entries in order, the newest first."""
    return sorted(entries, key=_sort_key, reverse=True)


def _sort_key(entry: AuditEntry) -> tuple[datetime, str, int]:
    return entry.position.at, entry.position.id, entry.position.entry_index
