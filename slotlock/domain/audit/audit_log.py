"""The audit log: everything that happened to bookings, waiting lists, slots and users."""

from collections.abc import Iterable, Sequence, Set
from datetime import datetime

from slotlock.domain.booking.booking import (
    BookingAction,
    BookingId,
    BookingLimit,
    BookingStatus,
    SlotId,
)
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId


class NoteAction(DescribedEnum):
    """The action that an entry of the audit log records, unless it is one on a booking."""

    WAITLIST_JOINED = "waitlist_joined", "A user joined a waiting list."
    WAITLIST_LEFT = "waitlist_left", "A waiting list entry ended without a booking."
    SLOT_CREATED = "slot_created", "A slot was created."
    SLOT_EDITED = "slot_edited", "A slot was changed."
    SLOT_PUBLISHED = "slot_published", "A draft slot was published."
    SLOT_CANCELLED = "slot_cancelled", "A slot was cancelled."
    SLOT_DELETED = "slot_deleted", "A slot was deleted. The entry has the fields that it had."
    CAMPAIGN_CREATED = "campaign_created", "A campaign was created."
    CAMPAIGN_EDITED = "campaign_edited", "A campaign was changed."
    CAMPAIGN_PUBLISHED = "campaign_published", "A campaign was published."
    CAMPAIGN_UNPUBLISHED = "campaign_unpublished", "A campaign was unpublished."
    CAMPAIGN_DELETED = (
        "campaign_deleted",
        "A campaign was deleted. The entry has the fields that it had.",
    )
    GROUPS_SET = "groups_set", "The groups of a user were changed."
    ROLE_SET = "role_set", "A user was given a role, or an account above member was created."
    BANNED = "banned", "A user was banned, or the reason for a ban was changed."
    UNBANNED = "unbanned", "A ban was lifted."
    RESOURCE_CREATED = "resource_created", "A resource was created, by itself or by an import."
    RESOURCE_EDITED = (
        "resource_edited",
        "The name, the kind or the leader of a resource was changed.",
    )
    RESOURCE_DELETED = (
        "resource_deleted",
        "A resource was deleted. The entry has the fields that it had.",
    )
    HOLIDAY_LIST_CREATED = "holiday_list_created", "A list of holidays was created."
    HOLIDAY_LIST_EDITED = "holiday_list_edited", "A list of holidays was changed."
    HOLIDAY_LIST_DELETED = (
        "holiday_list_deleted",
        "A list of holidays was deleted. The entry has the fields that it had.",
    )
    PERIODS_EDITED = "periods_edited", "The periods of a school day were changed."
    WEBHOOK_CREATED = "webhook_created", "A webhook was created."
    WEBHOOK_EDITED = (
        "webhook_edited",
        "The URL or the events of a webhook changed, or it was disabled or enabled.",
    )
    WEBHOOK_ROTATED = "webhook_rotated", "A webhook got a new secret."
    WEBHOOK_DELETED = (
        "webhook_deleted",
        "A webhook was deleted. The entry has the fields that it had.",
    )
    USERS_IMPORTED = (
        "users_imported",
        "A file created or changed users. One entry covers at most 500 of them.",
    )
    USERS_INVITED = (
        "users_invited",
        "Users were invited to set a first password. One entry covers at most 500.",
    )
    USER_CREATED = "user_created", "A user was created and invited to set a first password."
    USER_EDITED = "user_edited", "The name or the e-mail address of a user was changed."
    USER_ERASED = "user_erased", "A user was erased. Their past bookings stay, without a name."
    CLAIMED = (
        "claimed",
        "An admin claimed an account that somebody had registered, and invited its user.",
    )
    VOUCHED_FOR = "vouched_for", "An organizer vouched for a user who had registered."
    SESSIONS_ENDED = "sessions_ended", "All sessions of a user were ended by somebody else."
    PASSWORD_SET = (
        "password_set",
        "An operator set a user's password, which ended all sessions of the user.",
    )
    ANNOUNCEMENT_SENT = "announcement_sent", "An organizer wrote a mail to all who have a place."
    DRAW_CONFIGURED = "draw_configured", "A draw was opened, or its settings were changed."
    DRAW_CLOSED = "draw_closed", "The wishes of a draw were closed, and its root is public."
    DRAW_RUN = "draw_run", "The seed of a draw was fixed."
    DRAW_PUBLISHED = "draw_published", "The result of a draw was published."
    DRAW_SUPERSEDED = "draw_superseded", "A draw was replaced by another one."
    DRAW_CANCELLED = "draw_cancelled", "A draw was called off."
    PASSWORD_RESET_CREATED = (
        "password_reset_created",
        "An operator or admin created a token that replaces a password.",
    )
    SIGN_IN_LINKED = "sign_in_linked", "A sign-in at a provider was linked to an account."
    SIGN_IN_UNLINKED = "sign_in_unlinked", "A sign-in at a provider was unlinked from an account."
    SITE_EDITED = "site_edited", "An admin changed what the site shows of itself."
    CALENDAR_FEED_CREATED = (
        "calendar_feed_created",
        "A user created a private calendar feed, which replaced the one before.",
    )


AuditAction = BookingAction | NoteAction
# All that entries record. Two actions on bookings are only live, and the log has its own of them.
AUDIT_ACTIONS: Sequence[AuditAction] = (
    *(each for each in BookingAction if each.name not in NoteAction.__members__),
    *NoteAction,
)
BOOKING_ACTIONS: Set[AuditAction] = {
    *(each for each in AUDIT_ACTIONS if isinstance(each, BookingAction)),
    NoteAction.WAITLIST_JOINED,
    NoteAction.WAITLIST_LEFT,
}


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
    `for_others` selects actions on bookings and waiting lists that somebody else than their user
    carried out.
    """

    campaign_id: CampaignId | None = None
    slot_id: SlotId | None = None
    user_id: UserId | None = None
    by: UserId | None = None
    system_only: bool = False
    actions: frozenset[AuditAction] | None = None
    for_others: bool = False
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
