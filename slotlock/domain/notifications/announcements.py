"""Announcements: messages to all who have a place in a slot or in a campaign."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import KeyReused, SlotNotFound
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.notifications.mail_kinds import ANNOUNCEMENT
from slotlock.domain.notifications.outbox import Channel, OutboxEntry
from slotlock.domain.shared.declare import RETRY_AFTER_MS, outcome, refusal, shown
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.text import is_blank, validate_line, validate_text
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId

MAX_SUBJECT_LENGTH = 200
MAX_TEXT_LENGTH = 5_000
# How many announcements one organizer, one leader of slots, and all together begin within an hour.
RATE_PERIOD = timedelta(hours=1)
MAX_PER_ORGANIZER = 30
MAX_PER_LEADER = 5
MAX_PER_SITE = 120
# Nobody needs it later, such as after an outage of the mail server.
MAX_AGE = timedelta(days=3)


@value_object
class Audience:
    """All who have a place in a slot or in the published slots of a campaign.

    `with_waiting` adds those who are on a waiting list or hold a place. `unplaced` are instead
    those without a place in the campaign. Exactly one of the ids is set.
    """

    slot_id: SlotId | None
    campaign_id: CampaignId | None
    with_waiting: bool = False
    unplaced: bool = False


@value_object
class Announcement:
    """A message. `about` is the title of the slot or the name of the campaign.

    `recipient_count` is None until all of its mails are in the outbox.
    """

    id: str
    request_hash: str
    at: datetime
    by: UserId
    audience: Audience
    about: str
    subject: str
    text: str
    recipient_count: int | None = None


@outcome
class AnnouncementSent:
    """The announcement will be sent."""

    recipient_count: int = shown("How many users get it by mail.")


@refusal(message="There were too many announcements within an hour. Please try again later.")
class TooManyAnnouncements:
    """The user, or all users together, sent too many announcements within an hour."""

    retry_after_ms: int = shown(RETRY_AFTER_MS)


AnnouncementOutcome = (
    AnnouncementSent
    | SlotNotFound
    | CampaignNotFound
    | InvalidInput
    | KeyReused
    | TooManyAnnouncements
)


def validate_announcement(subject: str, text: str) -> InvalidInput | None:
    """Return the problems of an announcement, or None."""
    is_empty = all(map(is_blank, text.splitlines()))
    problems = (
        ("subject", validate_line(subject, MAX_SUBJECT_LENGTH)),
        ("subject", ProblemCode.SUBJECT_MISSING.problem() if is_blank(subject) else None),
        ("text", validate_text(text, MAX_TEXT_LENGTH)),
        ("text", ProblemCode.TEXT_MISSING.problem() if is_empty else None),
    )
    found = tuple(FieldProblem(field, problem) for field, problem in problems if problem)
    return InvalidInput(found) if found else None


def announcement_mail(
    announcement: Announcement, user_id: UserId, dependents: Sequence[UserId], now: datetime
) -> OutboxEntry:
    """Return the mail of an announcement to a user, who gets one even with several places.

    `dependents` are those for whom a guardian gets it who is no recipient as a user.
    """
    return OutboxEntry(
        f"{ANNOUNCEMENT.name}:{announcement.id}:{user_id}",
        Channel.MAIL,
        ANNOUNCEMENT.name,
        announcement.at,
        now,
        user_id,
        announcement.audience.slot_id,
        data={"announcement": announcement.id, "by": announcement.by},
        expires_at=announcement.at + MAX_AGE,
        dependents=tuple(dependents),
    )
