"""The audit log: everything that happened to bookings, waiting lists, slots and users."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from slotlock.domain.booking.booking import (
    BookingAction,
    BookingId,
    BookingLimit,
    BookingStatus,
    SlotId,
)
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId


class AuditAction(StrEnum):
    """The action of an entry; actions on bookings have the same value as their `BookingAction`."""

    BOOKED = BookingAction.BOOKED.value
    HELD = BookingAction.HELD.value
    PROMOTED = BookingAction.PROMOTED.value
    OFFERED = BookingAction.OFFERED.value
    CONFIRMED = BookingAction.CONFIRMED.value
    EXTENDED = BookingAction.EXTENDED.value
    MOVED = BookingAction.MOVED.value
    CANCELLED = BookingAction.CANCELLED.value
    EXPIRED = BookingAction.EXPIRED.value
    CHECKED_IN = BookingAction.CHECKED_IN.value
    CHECK_IN_UNDONE = BookingAction.CHECK_IN_UNDONE.value
    NO_SHOW = BookingAction.NO_SHOW.value
    NO_SHOW_UNDONE = BookingAction.NO_SHOW_UNDONE.value
    OTHER = BookingAction.OTHER.value
    WAITLIST_JOINED = "waitlist_joined"
    WAITLIST_LEFT = "waitlist_left"
    SLOT_CREATED = "slot_created"
    SLOT_EDITED = "slot_edited"
    SLOT_PUBLISHED = "slot_published"
    SLOT_CANCELLED = "slot_cancelled"
    SLOT_DELETED = "slot_deleted"
    CAMPAIGN_CREATED = "campaign_created"
    CAMPAIGN_EDITED = "campaign_edited"
    CAMPAIGN_PUBLISHED = "campaign_published"
    CAMPAIGN_UNPUBLISHED = "campaign_unpublished"
    CAMPAIGN_DELETED = "campaign_deleted"
    GROUPS_SET = "groups_set"
    ROLE_SET = "role_set"
    BANNED = "banned"
    UNBANNED = "unbanned"
    RESOURCE_CREATED = "resource_created"
    RESOURCE_EDITED = "resource_edited"
    RESOURCE_DELETED = "resource_deleted"
    HOLIDAY_LIST_CREATED = "holiday_list_created"
    HOLIDAY_LIST_EDITED = "holiday_list_edited"
    HOLIDAY_LIST_DELETED = "holiday_list_deleted"
    WEBHOOK_CREATED = "webhook_created"
    WEBHOOK_EDITED = "webhook_edited"
    WEBHOOK_ROTATED = "webhook_rotated"
    WEBHOOK_DELETED = "webhook_deleted"
    USERS_IMPORTED = "users_imported"
    USERS_INVITED = "users_invited"
    USER_CREATED = "user_created"
    USER_EDITED = "user_edited"
    USER_ERASED = "user_erased"
    CLAIMED = "claimed"
    VOUCHED_FOR = "vouched_for"
    SESSIONS_ENDED = "sessions_ended"
    PASSWORD_SET = "password_set"  # noqa: S105
    ANNOUNCEMENT_SENT = "announcement_sent"
    DRAW_CONFIGURED = "draw_configured"
    DRAW_CLOSED = "draw_closed"
    DRAW_RUN = "draw_run"
    DRAW_PUBLISHED = "draw_published"
    DRAW_SUPERSEDED = "draw_superseded"
    PASSWORD_RESET_CREATED = "password_reset_created"  # noqa: S105
    SIGN_IN_LINKED = "sign_in_linked"
    SIGN_IN_UNLINKED = "sign_in_unlinked"
    CALENDAR_FEED_CREATED = "calendar_feed_created"


BOOKING_ACTIONS = frozenset(
    {
        *(AuditAction(action.value) for action in BookingAction),
        AuditAction.WAITLIST_JOINED,
    }
    - {AuditAction.SLOT_EDITED}
)


@value_object
class FieldEdit:
    """One changed field, before and after as text; `user_id` is set if many users changed."""

    field: str
    before: str | None
    after: str | None
    user_id: UserId | None = None


@value_object
class AuditPosition:
    """The order of an entry in the log: by time, then by document and index within it."""

    at: datetime
    id: str
    entry_index: int


@value_object
class AuditEntry:
    """One entry of the log.

    `by` is None for waiting lists, expiry and the command line. `before` and `after` are the
    booking's status; `edits` are the fields that an organizer changed; `resource` is a name;
    `meeting_start` is the meeting whose attendance changed, of several. `holiday_list` is a name,
    and `webhook` the server of one.
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
    resource: str | None = None
    edits: tuple[FieldEdit, ...] = ()
    meeting_start: datetime | None = None
    holiday_list: str | None = None
    webhook: str | None = None

    @property
    def at(self) -> datetime:
        """When the action happened."""
        return self.position.at


@value_object
class AuditFilter:
    """The entries to list; a field that is None does not restrict the list.

    `user_id` is the user whose booking or account changed, `by` the user who changed it.
    `system_only` selects waiting lists, expiry and the command line. `since` is inclusive.
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
        """Return whether few enough entries match to sort them; notes are stored in order."""
        has_subject = any((self.campaign_id, self.slot_id, self.user_id, self.by))
        return has_subject or not self.includes_bookings

    @property
    def includes_bookings(self) -> bool:
        """Return whether actions on bookings and waiting lists match."""
        return self.actions is None or bool(self.actions & BOOKING_ACTIONS)


def newest_first(entries: Iterable[AuditEntry]) -> list[AuditEntry]:
    """Return the entries sorted by position, newest first."""
    return sorted(entries, key=_sort_key, reverse=True)


def _sort_key(entry: AuditEntry) -> tuple[datetime, str, int]:
    return entry.position.at, entry.position.id, entry.position.entry_index
