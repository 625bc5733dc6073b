"""The kinds of mail: which change causes each, and who gets it. Its templates have its name."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from hashlib import sha256

from slotlock.domain.audit.audit_log import NoteAction
from slotlock.domain.audit.audit_notes import edits_shown_with, merged_schedule_edits
from slotlock.domain.booking.booking import Booking, BookingAction, HistoryEntry, MadeAs, SlotId
from slotlock.domain.booking.booking_refusals import LimitRefusal, SlotCancelled, SlotFull
from slotlock.domain.booking.slot import Slot
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.notifications.outbox import Channel, OutboxEntry
from slotlock.domain.notifications.slot_changes import SlotChanges
from slotlock.domain.shared.declare import declarations
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import TeamId
from slotlock.domain.users.user import UserId

# The changes of a user's bookings within this time are one mail.
COLLECTED_FOR = timedelta(seconds=60)
# Who waited in the queue for longer may not watch it any more.
TICKET_PATIENCE = timedelta(minutes=1)


@value_object
class MailKind:
    """A kind of mail. The user of a booking gets it if one of these actions changed the booking."""

    name: str
    actions: tuple[BookingAction, ...] = ()


BOOKED = MailKind("booked", (BookingAction.BOOKED, BookingAction.CONFIRMED))
HELD = MailKind("held", (BookingAction.HELD,))
OFFERED = MailKind("offered", (BookingAction.OFFERED,))
PROMOTED = MailKind("promoted", (BookingAction.PROMOTED,))
MOVED = MailKind("moved", (BookingAction.MOVED,))
CANCELLED = MailKind("cancelled", (BookingAction.CANCELLED,))
EXPIRED = MailKind("expired", (BookingAction.EXPIRED,))
WAITLIST_ENDED = MailKind("waitlist_ended", (BookingAction.WAITLIST_LEFT,))
EDITED = MailKind("edited", (BookingAction.SLOT_EDITED,))
REMINDER = MailKind("reminder")

BOOKING_KINDS = (
    *(BOOKED, HELD, OFFERED, PROMOTED, MOVED, CANCELLED, EXPIRED),
    *(WAITLIST_ENDED, EDITED, REMINDER),
)
BOOKING_KIND_NAMES = frozenset(kind.name for kind in BOOKING_KINDS)
# Those about a place that its user keeps, with the note of the campaign, such as what to bring.
KINDS_WITH_NOTE = frozenset(kind.name for kind in (BOOKED, PROMOTED, MOVED, EDITED, REMINDER))
TEST = MailKind("test")
RESET_PASSWORD = MailKind("reset_password")
PASSWORD_CHANGED = MailKind("password_changed")
SIGN_IN_LINKED = MailKind("sign_in_linked")
SIGN_IN_UNLINKED = MailKind("sign_in_unlinked")
INVITATION = MailKind("invitation")
VERIFY_EMAIL = MailKind("verify_email")
EMAIL_CHANGED = MailKind("email_changed")
WEBHOOK_DISABLED = MailKind("webhook_disabled")
TICKET_DECIDED = MailKind("ticket_decided")
# Those that are inserted directly, and due at once.
DIRECT_KINDS = (
    *(TEST, RESET_PASSWORD, PASSWORD_CHANGED, INVITATION, VERIFY_EMAIL, EMAIL_CHANGED),
    *(SIGN_IN_LINKED, SIGN_IN_UNLINKED, WEBHOOK_DISABLED, TICKET_DECIDED),
)
CAMPAIGN_OPENS = MailKind("campaign_opens")
ANNOUNCEMENT = MailKind("announcement")
DRAW_RESULT = MailKind("draw_result")
TEAM_INVITATION = MailKind("team_invitation")
MAIL_KINDS = (
    *(*BOOKING_KINDS, *DIRECT_KINDS),
    *(CAMPAIGN_OPENS, ANNOUNCEMENT, DRAW_RESULT, TEAM_INVITATION),
)
_KIND_OF = {action: kind for kind in BOOKING_KINDS for action in kind.actions}


def mails_about(changes: SlotChanges) -> Iterator[OutboxEntry]:
    """Yield an entry for each change of a booking of which its user gets a mail."""
    slot = changes.state.slot
    for booking in changes.bookings:
        for index, entry in enumerate(booking.history):
            if entry.at >= changes.since and not _has_moved_on(booking, index):
                yield from _mail(booking, entry, index)
    for ended in changes.ended_entries:
        booking = ended.to_booking()
        yield from _mail(booking, booking.history[0], 0)
    if slot.cancellation is not None and slot.cancellation.at >= changes.since:
        entry = slot.cancellation.to_history_entry()
        for booking in changes.state.bookings:
            yield from _mail(booking, entry, len(booking.history))
    yield from _mails_about_edits(changes)


def first_mail(booking: Booking) -> OutboxEntry | None:
    """Return the entry by which the user first hears of a booking; None if there is none."""
    return next(_mail(booking, booking.history[0], 0), None)


def newest_mail(slot: Slot, booking: Booking) -> OutboxEntry | None:
    """Return the entry about the latest change of a booking; None if another booking has it."""
    if slot.cancellation is not None and booking.status.is_live:
        entry = slot.cancellation.to_history_entry()
        return next(_mail(booking, entry, len(booking.history)), None)
    for index in reversed(range(len(booking.history))):
        if _has_moved_on(booking, index):
            return None
        for mail in _mail(booking, booking.history[index], index):
            return mail
    return None


def _has_moved_on(booking: Booking, index: int) -> bool:
    """Return whether the entry ends a booking that goes on in another slot, which has a mail."""
    return booking.moved_to is not None and index == len(booking.history) - 1


def _mails_about_edits(changes: SlotChanges) -> Iterator[OutboxEntry]:
    """Yield the mails about a new time, place or staff, to all who had a booking before."""
    for note in changes.notes:
        edits = merged_schedule_edits(note.edits)
        if note.action is not NoteAction.SLOT_EDITED or not edits:
            continue
        position = note.position
        for booking in changes.state.bookings:
            shown = edits_shown_with(booking, edits)
            data = {"edits": json.dumps([[each.field, each.before, each.after] for each in shown])}
            if shown and booking.created_at <= position.at:
                yield booking_mail(EDITED, booking, position.at, position.id, note.by, data)


def _mail(booking: Booking, entry: HistoryEntry, index: int) -> Iterator[OutboxEntry]:
    kind = _KIND_OF.get(entry.action)
    if kind is not None:
        data = {"held_until": entry.held_until.isoformat()} if entry.held_until else {}
        is_drawn = booking.made_as is MadeAs.DRAW and index == 0
        by = None if is_drawn else entry.by
        yield booking_mail(kind, booking, entry.at, str(index), by, data)


def booking_mail(
    kind: MailKind,
    booking: Booking,
    at: datetime,
    version: str,
    by: UserId | None,
    data: dict[str, str],
) -> OutboxEntry:
    """Return the entry of a mail to the user of a booking about its change at this time."""
    return OutboxEntry(
        f"{kind.name}:{booking.id}:{version}",
        Channel.MAIL,
        kind.name,
        at,
        at + COLLECTED_FOR,
        booking.user_id,
        booking.slot_id,
        booking.id,
        group=f"user:{booking.user_id}",
        data={**data, **({"by": by} if by else {})},
    )


def direct_mail(
    kind: MailKind,
    subject: str,
    version: str,
    now: datetime,
    *,
    user_id: UserId | None = None,
    recipient: str | None = None,
    data: dict[str, str] | None = None,
    expires_at: datetime | None = None,
) -> OutboxEntry:
    """Return the entry of a mail that is due at once, such as a reset link.

    It goes to the address of the user, or to `recipient` if that is another one. `data` is what
    its template shows; it is deleted once the mail was sent.
    """
    return OutboxEntry(
        f"{kind.name}:{subject}:{version}",
        Channel.MAIL,
        kind.name,
        now,
        now,
        user_id,
        data=data or {},
        is_confidential=True,
        expires_at=expires_at,
        recipient=recipient,
    )


def ticket_mail(
    slot_id: SlotId,
    user_id: UserId,
    key: str,
    requested_at: datetime,
    outcome: object,
    now: datetime,
    by: UserId,
) -> OutboxEntry | None:
    """Return the mail to who waited in the queue for long, and got no place; None without one.

    `key` is that of the request, which `by` made. A place is a mail by itself.
    """
    waited = now - requested_at
    if waited < TICKET_PATIENCE or not isinstance(outcome, SlotFull | LimitRefusal | SlotCancelled):
        return None
    return OutboxEntry(
        f"{TICKET_DECIDED.name}:{user_id}:{key}",
        Channel.MAIL,
        TICKET_DECIDED.name,
        now,
        now,
        user_id,
        slot_id,
        data={"reason": declarations[type(outcome)].code, "by": by},
    )


def draw_result_mail(
    campaign_id: CampaignId, draw_id: str, user_id: UserId, now: datetime
) -> OutboxEntry:
    """Return the mail that says to a user what they got in a draw."""
    return OutboxEntry(
        f"{DRAW_RESULT.name}:{draw_id}:{user_id}",
        Channel.MAIL,
        DRAW_RESULT.name,
        now,
        now,
        user_id,
        data={"campaign": campaign_id, "draw": draw_id},
    )


def team_invitation_mail(
    team_id: TeamId, login_name: str, by: UserId, now: datetime
) -> OutboxEntry | None:
    """Return the mail to the user of an address whom a team invites; None for a user name.

    Whether the address has an account is found when the mail is sent, as no response may tell it.
    Each member causes one mail to an address a day, however often they invite and withdraw.
    """
    if "@" not in login_name:
        return None
    subject = sha256(f"{by} {login_name}".encode()).hexdigest()[:32]
    data = {"team": team_id, "to": login_name}
    return direct_mail(TEAM_INVITATION, subject, now.date().isoformat(), now, data=data)
