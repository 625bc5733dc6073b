"""Use cases of announcements: count who would get one, and send it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from slotlock.domain.audit.audit_log import FieldEdit, NoteAction
from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.domain.booking.booking_refusals import KeyReused, SlotNotFound
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.notifications.announcements import (
    MAX_AGE,
    MAX_PER_LEADER,
    MAX_PER_ORGANIZER,
    MAX_PER_SITE,
    RATE_PERIOD,
    Announcement,
    AnnouncementOutcome,
    AnnouncementSent,
    Audience,
    TooManyAnnouncements,
    announcement_mail,
    validate_announcement,
)
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.users.user import Caller, MailTopic, User, UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey

BATCH_SIZE = 1000
# No request takes that long.
INTERRUPTED_AFTER = timedelta(minutes=1)


async def find_recipients(
    services: Services, audience: Audience
) -> Mapping[UserId, Sequence[UserId]]:
    """Return the users of an audience who can get a mail, and want it.

    These are also guardians of users of the audience, with the ids of those users.
    """
    if audience.unplaced:
        user_ids = await _find_unplaced(services, audience.campaign_id)
    else:
        user_ids = await services.announcements.find_users(audience, services.now())
    recipients: dict[UserId, Sequence[UserId]] = {}
    dependents: defaultdict[UserId, list[UserId]] = defaultdict(list)
    for batch in chunked(user_ids, BATCH_SIZE):
        for user in (await services.users.find_many(batch)).values():
            recipients |= {user.id: ()} if _gets_announcements(user) else {}
            for guardian_id in user.guardians:
                dependents[guardian_id].append(user.id)
    for batch in chunked(sorted(dependents.keys() - recipients.keys()), BATCH_SIZE):
        for user in (await services.users.find_many(batch)).values():
            gets_it = _gets_announcements(user) and not user.banned
            recipients |= {user.id: dependents[user.id]} if gets_it else {}
    return recipients


def _gets_announcements(user: User) -> bool:
    return bool(user.email) and not user.erased and user.wants(MailTopic.ANNOUNCEMENTS)


async def _find_unplaced(services: Services, campaign_id: CampaignId | None) -> list[UserId]:
    campaign = await services.campaigns.find(campaign_id) if campaign_id else None
    found: list[UserId] = []
    after: str | None = None
    while campaign is not None:
        page = await services.unplaced_users.page(campaign, None, BATCH_SIZE, after, services.now())
        found += [each.user.id for each in page.items if not each.user.banned]
        if not page.has_more:
            break
        after = page.searched_until
    return found


async def send_announcement(
    services: Services,
    sender: Caller,
    audience: Audience,
    subject: str,
    text: str,
    key_text: str,
) -> AnnouncementOutcome:
    """Insert the mails of an announcement; those that are missing, if the request is repeated.

    Once all were inserted, a request with the same key sends nothing.
    """
    subject, text = normalize_line(subject), "\n".join(text.splitlines())
    if problems := validate_announcement(subject, text):
        return problems
    key = IdempotencyKey.for_request(
        sender.user_id,
        f"sendAnnouncement {key_text}",
        audience.slot_id,
        audience.campaign_id,
        audience.with_waiting,
        audience.unplaced,
        subject,
        text,
    )
    found = await services.announcements.find(key.record_id)
    if found is None:
        now = services.now()
        about = await _find_title(services, audience)
        if not isinstance(about, str):
            return about
        if wait := await _find_limit(services, sender, now):
            return wait
        found = Announcement(
            key.record_id, key.request_hash, now, sender.user_id, audience, about, subject, text
        )
        if not await services.announcements.insert(found):
            found = await services.announcements.find(key.record_id) or found
    if found.request_hash != key.request_hash:
        return KeyReused(key_text)
    if found.recipient_count is not None:
        return AnnouncementSent(found.recipient_count)
    return await _insert_mails(services, found)


async def finish_interrupted(services: Services) -> None:
    """Insert the missing mails of announcements whose requests died. Raises: PyMongoError."""
    now = services.now()
    for each in await services.announcements.find_unfinished(
        now - MAX_AGE, now - INTERRUPTED_AFTER
    ):
        await _insert_mails(services, each)


async def _insert_mails(services: Services, announcement: Announcement) -> AnnouncementSent:
    recipients = await find_recipients(services, announcement.audience)
    now = services.now()
    for batch in chunked(list(recipients.items()), BATCH_SIZE):
        mails = [announcement_mail(announcement, *each, now) for each in batch]
        await services.outbox.insert(mails, now)
    count = len(recipients)
    note = AuditNote(
        now,
        announcement.by,
        NoteAction.ANNOUNCEMENT_SENT,
        (
            FieldEdit("subject", None, announcement.subject),
            FieldEdit("recipientCount", None, str(count)),
        ),
        announcement.audience.slot_id,
        announcement.audience.campaign_id,
    )
    await services.announcements.finish(announcement, count, note)
    return AnnouncementSent(count)


async def _find_title(
    services: Services, audience: Audience
) -> str | SlotNotFound | CampaignNotFound:
    if audience.slot_id is not None:
        state = await services.slots.find(SlotQuery(audience.slot_id, services.now()))
        return SlotNotFound(audience.slot_id) if state is None else state.slot.title
    campaign_id = audience.campaign_id or CampaignId("")
    campaign = await services.campaigns.find(campaign_id)
    return CampaignNotFound(campaign_id) if campaign is None else campaign.name


async def _find_limit(
    services: Services, sender: Caller, now: datetime
) -> TooManyAnnouncements | None:
    """Return the limit that one more announcement would exceed."""
    since = now - RATE_PERIOD
    own_most = MAX_PER_ORGANIZER if sender.is_organizer else MAX_PER_LEADER
    for by, most in ((sender.user_id, own_most), (None, MAX_PER_SITE)):
        first = await services.announcements.find_nth_newest(by, since, most)
        if first is not None:
            return TooManyAnnouncements((first - since) // timedelta(milliseconds=1))
    return None
