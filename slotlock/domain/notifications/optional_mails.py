"""Mails that users may refuse, and that wait for the end of quiet hours.

No change of a booking causes them, but the time, an organizer, or a team. What concerns a user's
own booking right now is none of them.
"""

from datetime import datetime, timedelta

from slotlock.domain.booking.booking import Booking, BookingStatus
from slotlock.domain.booking.slot import Slot
from slotlock.domain.campaigns.terms import CampaignTerms
from slotlock.domain.notifications.mail_kinds import (
    ANNOUNCEMENT,
    CAMPAIGN_OPENS,
    REMINDER,
    TEAM_INVITATION,
)
from slotlock.domain.notifications.outbox import Channel, OutboxEntry
from slotlock.domain.notifications.quiet_hours import QuietHours
from slotlock.domain.users.user import MailTopic, UserId

TOPICS = {
    REMINDER.name: MailTopic.REMINDERS,
    CAMPAIGN_OPENS.name: MailTopic.ANNOUNCEMENTS,
    ANNOUNCEMENT.name: MailTopic.ANNOUNCEMENTS,
    TEAM_INVITATION.name: MailTopic.ANNOUNCEMENTS,
}


def reminder_time(slot: Slot, quiet: QuietHours | None) -> datetime | None:
    """Return when a mail reminds of a slot; None if none does."""
    at = slot.reminder_at
    return at if at is None or quiet is None else quiet.planned(at, slot.start)


def opening_mail_time(terms: CampaignTerms, quiet: QuietHours | None) -> datetime | None:
    """Return when a mail says that a campaign will open; None if none does."""
    if not terms.opening_mail_hours:
        return None
    at = terms.opens_at - timedelta(hours=terms.opening_mail_hours)
    return at if quiet is None else quiet.planned(at, terms.opens_at)


def has_place_since(booking: Booking) -> datetime | None:
    """Return since when a booking has been confirmed; None if it is not."""
    since = None
    for entry in reversed(booking.history):
        if entry.status is not BookingStatus.CONFIRMED:
            break
        since = entry.at
    return since


def reminder(slot: Slot, booking: Booking, at: datetime, now: datetime) -> OutboxEntry:
    """Return the mail that reminds the user of a booking of the start of its slot.

    Another start is another mail.
    """
    return OutboxEntry(
        f"{REMINDER.name}:{booking.id}:{slot.start.isoformat()}",
        Channel.MAIL,
        REMINDER.name,
        at,
        now,
        booking.user_id,
        slot.id,
        booking.id,
        data={"start": slot.start.isoformat()},
        expires_at=slot.start,
    )


def opening_mail(terms: CampaignTerms, user_id: UserId, at: datetime, now: datetime) -> OutboxEntry:
    """Return the mail that says to a user when a campaign opens. Another time is another mail."""
    opens_at = terms.opens_at.isoformat()
    return OutboxEntry(
        f"{CAMPAIGN_OPENS.name}:{terms.campaign_id}:{opens_at}:{user_id}",
        Channel.MAIL,
        CAMPAIGN_OPENS.name,
        at,
        now,
        user_id,
        data={"campaign": terms.campaign_id, "opens_at": opens_at},
        expires_at=terms.opens_at,
    )
