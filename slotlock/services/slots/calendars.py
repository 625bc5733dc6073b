"""The events of calendars: the bookings of a user, or the published slots, with descriptions."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from slotlock.domain.booking.availability import is_visible
from slotlock.domain.booking.booking import Booking, BookingId, SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.reports.calendar_events import (
    CANCELLED_SHOWN,
    HISTORY_SHOWN,
    MAX_EVENTS,
    PUBLISHED_SHOWN,
    CalendarEvent,
    events_of_booking,
    events_of_slot,
    events_of_user,
)
from slotlock.domain.shared.pagination import Position
from slotlock.domain.users.user import User, UserId
from slotlock.infrastructure.batching import chunked
from slotlock.infrastructure.mail.mail_texts import language_of
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.container import Services

ENDED_PAGE_SIZE = 100
CREATED_BATCH_SIZE = 100
# An organizer's calendar does not look for slots that were created earlier.
CREATED_SHOWN = 2 * HISTORY_SHOWN
# A feed repeats the description of a slot at each of its meetings.
DESCRIPTION_SHOWN = 1_000
# What stands before the page of a slot, where its user finds the booking.
BOOKING_PAGE = {
    "en": "Your booking, also to give it back:",
    "de": "Die Buchung, auch zum Zurückgeben:",
    "zh": "你的预约，也可以在此取消：",  # noqa: RUF001
}


async def with_descriptions(
    services: Services, events: Sequence[CalendarEvent], board_url: str, language: str | None = None
) -> list[CalendarEvent]:
    """Return the events with the beginning of their slots' texts, their links and their pages.

    A page is on the board, and missing without the address of one. With a language, the events are
    those of bookings.
    """
    slot_ids = list({event.slot_id for event in events})
    texts = await services.descriptions.find_of_slots(slot_ids, DESCRIPTION_SHOWN + 1)
    before = f"{BOOKING_PAGE[language]}\n" if language else ""

    def describe(event: CalendarEvent) -> str:
        text = texts.get(event.slot_id, "").strip()
        if len(text) > DESCRIPTION_SHOWN:
            text = f"{text[:DESCRIPTION_SHOWN].rstrip()} …"
        page = f"{before}{board_url}#/slot/slot_{event.slot_id}" if board_url else ""
        return "\n\n".join(filter(None, (text, event.link, page)))

    return [replace(event, description=describe(event)) for event in events]


async def user_calendar(services: Services, user: User, board_url: str) -> Sequence[CalendarEvent]:
    """Return a user's bookings since last year and their recent cancellations.

    Those of dependents are named for them. If there are too many meetings, the feed leaves out the
    slots that start first.
    """
    found = _EventCollector()
    await _collect_bookings(services, user.id, "", found)
    for dependent in await services.users.find_dependents([user.id]):
        await _collect_bookings(services, dependent.id, dependent.given_name, found)
    site = await services.site.load()
    events, language = found.sorted_events(), language_of(user.locale, site.locale)
    return await with_descriptions(services, events, board_url, language)


async def _collect_bookings(
    services: Services, user_id: UserId, child: str, found: "_EventCollector"
) -> None:
    now, find_by_user = services.now(), services.calendar_slots.find_by_user
    async for slot in _iterate_slots(
        lambda after: find_by_user(user_id, now - HISTORY_SHOWN, now, after), found
    ):
        found.add(event.named_for(child) for event in events_of_user(slot, user_id, now))
    # Live bookings first: a booking that is cancelled meanwhile is found twice.
    async for booking, slot in _recently_ended(services, user_id):
        found.add(event.named_for(child) for event in events_of_booking(slot.slot, booking, now))


async def booking_calendar(
    services: Services,
    slot_id: SlotId,
    booking_id: BookingId,
    board_url: str,
    guardian_id: UserId | None = None,
) -> Sequence[CalendarEvent] | None:
    """Return the meetings of one booking, as its user or a guardian reads them.

    Return None if there is no such booking any more, or if it is not for this reader any more.
    """
    now = services.now()
    state = await services.slots.find(SlotQuery(slot_id, now, [], [booking_id]))
    if state is None:
        return None
    booking = state.booking_by_id(booking_id)
    if booking is not None:
        events = list(events_of_user(state, booking.user_id, now))
    else:
        booking = await services.ended_bookings.find(booking_id)
        if booking is None or booking.slot_id != slot_id or not is_visible(state.slot, None):
            return None
        events = list(events_of_booking(state.slot, booking, now))
    reader_id = guardian_id or booking.user_id
    users = await services.users.find_many({booking.user_id, reader_id})
    user, reader = users.get(booking.user_id), users.get(reader_id)
    if user is None or reader is None or reader.banned:
        return None
    if guardian_id is not None:
        if guardian_id not in user.guardians:
            return None
        events = [event.named_for(user.given_name) for event in events]
    site = await services.site.load()
    language = language_of(reader.locale, site.locale)
    return await with_descriptions(services, events, board_url, language)


async def published_calendar(
    services: Services, campaign_id: CampaignId | None, board_url: str
) -> Sequence[CalendarEvent]:
    """Return the published slots, or those of one campaign, without those over for 30 days.

    If there are too many, the feed leaves out past slots first, the oldest first, and then the
    slots that end last (of a campaign: start last).
    """
    now, found, slots = services.now(), _EventCollector(), services.calendar_slots
    since = now - PUBLISHED_SHOWN
    async for slot in _iterate_slots(
        lambda after: slots.find_upcoming(campaign_id, now, after), found
    ):
        found.add(events_of_slot(slot, now))
    async for slot in _iterate_slots(
        lambda after: slots.find_past(campaign_id, since, now, after), found
    ):
        found.add(events_of_slot(slot, now))
    return await with_descriptions(services, found.sorted_events(), board_url)


async def organizer_calendar(
    services: Services, user_id: UserId, board_url: str
) -> Sequence[CalendarEvent]:
    """Return the published slots that an organizer created, without those over for 30 days.

    If there are too many, the feed leaves out those that were created first.
    """
    now, found, slots = services.now(), _EventCollector(), services.calendar_slots
    created = await slots.find_created_by(user_id, now - CREATED_SHOWN, MAX_EVENTS)
    for slot_ids in chunked(created, CREATED_BATCH_SIZE):
        for slot in await slots.find_visible(slot_ids, now - PUBLISHED_SHOWN, now):
            found.add(events_of_slot(slot, now, has_link=True))
    return await with_descriptions(services, found.sorted_events(), board_url)


async def resource_calendar(
    services: Services, name: str, board_url: str
) -> Sequence[CalendarEvent]:
    """Return the published slots of a resource, without those over for 30 days.

    If there are too many meetings, the feed leaves out the slots that start first.
    """
    now, found = services.now(), _EventCollector()
    since, find_of_resource = now - PUBLISHED_SHOWN, services.calendar_slots.find_of_resource
    async for slot in _iterate_slots(
        lambda after: find_of_resource(name, since, now, after), found
    ):
        found.add(events_of_slot(slot, now))
    return await with_descriptions(services, found.sorted_events(), board_url)


class _EventCollector:
    """The events found so far, each once, up to the size of a feed."""

    def __init__(self) -> None:
        self._events: dict[str, CalendarEvent] = {}

    @property
    def is_full(self) -> bool:
        return len(self._events) >= MAX_EVENTS

    def add(self, events: Iterable[CalendarEvent]) -> None:
        for event in events:
            if event.uid in self._events or not self.is_full:
                self._events[event.uid] = event

    def sorted_events(self) -> Sequence[CalendarEvent]:
        return sorted(self._events.values(), key=lambda event: (event.meetings[0].start, event.uid))


async def _iterate_slots(
    load_page: Callable[[SlotState | None], Awaitable[Sequence[SlotState]]],
    collector: _EventCollector,
) -> AsyncIterator[SlotState]:
    after: SlotState | None = None
    while not collector.is_full and (slots := await load_page(after)):
        for slot in slots:
            yield slot
        after = slots[-1]


async def _recently_ended(
    services: Services, user_id: UserId
) -> AsyncIterator[tuple[Booking, SlotState]]:
    """Yield a user's recently ended bookings with their slots, if these are visible."""
    now, after = services.now(), None
    for _ in range(MAX_EVENTS // ENDED_PAGE_SIZE):
        page = await services.ended_bookings.page_of_user(user_id, ENDED_PAGE_SIZE, after)
        recent = [b for b in page.items if b.ended_at and b.ended_at >= now - CANCELLED_SHOWN]
        slots = await _load_visible_slots(services, {booking.slot_id for booking in recent})
        for booking in recent:
            if slot := slots.get(booking.slot_id):
                yield booking, slot
        if not page.has_more or len(recent) < len(page.items):
            return
        last = recent[-1]
        after = Position(last.ended_at or now, last.id)


async def _load_visible_slots(
    services: Services, slot_ids: Iterable[SlotId]
) -> dict[SlotId, SlotState]:
    now = services.now()
    found = await asyncio.gather(
        *(services.slots.find(SlotQuery(slot_id, now)) for slot_id in slot_ids)
    )
    return {slot.id: slot for slot in found if slot and is_visible(slot.slot, None)}
