"""What each kind of mail would say, with a real course or an example; nothing is sent."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotKind, SlotStatus
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.notifications.mail_kinds import (
    ANNOUNCEMENT,
    CANCELLED,
    INVITATION,
    KINDS_WITH_NOTE,
    MAIL_KINDS,
    MOVED,
    WEBHOOK_DISABLED,
    MailKind,
)
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.schedule.schedule_texts import format_time
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import User
from slotlock.infrastructure.mail.mail_texts import MailText, language_of, render
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.container import Services
from slotlock.services.notifications.booking_mails import old_values, slot_values

# The title and the place of a course, in each language.
EXAMPLES = {"en": ("Chess", "Room 12"), "de": ("Schach", "Raum 12"), "zh": ("国际象棋", "12 教室")}
DAY = timedelta(days=1)


@value_object
class MailPreview:
    """A kind of mail, and what a mail of this kind would say."""

    kind: str
    content: MailText


async def preview_mails(
    services: Services,
    board_url: str,
    organizer: User,
    locale: str | None = None,
    *,
    slot_id: SlotId | None = None,
    campaign_id: CampaignId | None = None,
    changes: Mapping[str, str] | None = None,
) -> list[MailPreview] | None:
    """Return a preview of each kind of mail, as if the organizer got it.

    It is about the slot, or the next slot of the campaign; without one, about an example. Return
    None if there is no such slot or campaign. The language is that of the organizer by default, or
    else of the site, as it would be with changes of its own values; an invitation goes to users who
    have chosen none.
    """
    own = replace(await services.site_values.find(), **(changes or {}))
    site = own.over(services.site.defaults)
    language = language_of(locale, organizer.locale, site.locale)
    campaign = await services.campaigns.find(campaign_id) if campaign_id else None
    if campaign_id is not None:
        if campaign is None:
            return None
        ids = await services.campaigns.find_slot_ids(
            campaign_id, None, ends_after=services.now(), limit=1, include_hidden=True
        )
        slot_id = next(iter(ids), None)
    slot = replace(
        _example_slot(services, language, site.time_zone),
        terms=campaign.terms if campaign else None,
    )
    if slot_id is not None:
        state = await services.slots.find(SlotQuery(slot_id, services.now()))
        if state is None:
            return None
        slot = state.slot
    values = await _values(services, board_url, organizer, slot, language)
    shared: dict[str, object] = {
        "name": organizer.name,
        "site_name": site.name,
        "board_url": board_url,
    }
    shared |= {"closing": site.mail_closing, "formal": site.is_formal}
    by_organizer = {"by": organizer.name}
    own_values: Mapping[str, Mapping[str, str]] = {
        CANCELLED.name: by_organizer,
        MOVED.name: by_organizer,
        ANNOUNCEMENT.name: by_organizer,
        WEBHOOK_DISABLED.name: {"url": "https://example.org/webhook", "reason": "500"},
    }

    def note_of(kind: MailKind) -> Mapping[str, object]:
        return {} if kind.name in KINDS_WITH_NOTE else {"note": ""}

    invited = language_of(locale, site.locale, organizer.locale)
    return [
        MailPreview(
            kind.name,
            render(
                invited if kind is INVITATION else language,
                [(kind.name, {**values, **own_values.get(kind.name, {}), **note_of(kind)})],
                **shared,
            ),
        )
        for kind in MAIL_KINDS
    ]


def _example_slot(services: Services, language: str, time_zone: str) -> Slot:
    title, place = EXAMPLES[language]
    local = (services.now() + 7 * DAY).astimezone(ZoneInfo(time_zone))
    start = local.replace(hour=14, minute=0, second=0, microsecond=0).astimezone(UTC)
    return Slot(
        title,
        time_zone,
        1,
        place,
        SlotKind.COURSE,
        id=SlotId("0" * 24),
        start=start,
        end=start + timedelta(hours=1),
        status=SlotStatus.PUBLISHED,
    )


async def _values(
    services: Services, board_url: str, organizer: User, slot: Slot, language: str
) -> Mapping[str, object]:
    """Return a value for everything that a template shows."""
    meetings = tuple(Meeting(each.start - DAY, each.end - DAY) for each in slot.all_meetings)
    start, end = meetings[0].start, meetings[-1].end
    before = replace(slot, start=start, end=end, meetings=meetings if slot.meetings else ())
    return {
        **await slot_values(services, slot, language, board_url, slot.meeting_url),
        **old_values(before, language),
        "changed": {"time"},
        "deadline": format_time(services.now() + DAY, slot.time_zone, language),
        "by": None,
        "by_user": False,
        "slot_cancelled": False,
        "cancel_reason": None,
        "has_others": False,
        "address": organizer.email or "alex@example.org",
        "token": "example",
        "reason": "SLOT_FULL",
        "code": "example",
        "provider": "Example",
        "about": slot.title,
        "announced_subject": slot.title,
        "text": "…",
        "granted": [slot.title],
        "wish_count": 3,
        "number": 17,
    }
