"""Looking up what calendars show: a person's bookings, or what is published."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

from slotlock.domain.booking.availability import is_visible
from slotlock.domain.booking.booking import Booking, SlotId
from slotlock.domain.booking.slot import Slot
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
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.container import Services

ENDED_PAGE_SIZE = 100


async def user_calendar(services: Services, user_id: UserId) -> Sequence[CalendarEvent]:
    """A person's bookings of the last year and all to come, and what was cancelled lately.

    Where there are too many meetings, those of the slots that begin first are left out.
    """
    now, found = services.now(), _EventCollector()
    look = services.slots.calendar_queries.find_by_user
    async for slot in _iterate_slots(
        lambda after: look(user_id, now - HISTORY_SHOWN, now, after), found
    ):
        found.add(events_of_user(slot, user_id, now))
    # The live ones first: one that is cancelled meanwhile is found twice, and its end is kept.
    async for booking, slot in _recently_ended(services, user_id):
        found.add(events_of_booking(slot, booking, now))
    return found.sorted_events()


async def published_calendar(
    services: Services, campaign_id: CampaignId | None
) -> Sequence[CalendarEvent]:
    """The slots that everybody may see, or those of a campaign that its reader may see.

    Those that are over for 30 days are left out; of too many, first those that are over, the
    oldest first, then those that end last (of a campaign: begin).
    """
    now, found, slots = services.now(), _EventCollector(), services.slots.calendar_queries
    since = now - PUBLISHED_SHOWN
    async for slot in _iterate_slots(
        lambda after: slots.find_upcoming(campaign_id, now, after), found
    ):
        found.add(events_of_slot(slot, now))
    async for slot in _iterate_slots(
        lambda after: slots.find_past(campaign_id, since, now, after), found
    ):
        found.add(events_of_slot(slot, now))
    return found.sorted_events()


class _EventCollector:
    """The events so far, each once, as many as a calendar has."""

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
        return sorted(self._events.values(), key=lambda event: (event.meeting.start, event.uid))


async def _iterate_slots(
    load_page: Callable[[Slot | None], Awaitable[Sequence[Slot]]], collector: _EventCollector
) -> AsyncIterator[Slot]:
    after: Slot | None = None
    while not collector.is_full and (slots := await load_page(after)):
        for slot in slots:
            yield slot
        after = slots[-1]


async def _recently_ended(
    services: Services, user_id: UserId
) -> AsyncIterator[tuple[Booking, Slot]]:
    """A person's bookings that ended lately, with their slots as far as these are shown."""
    now, after = services.now(), None
    for _ in range(MAX_EVENTS // ENDED_PAGE_SIZE):
        page = await services.slots.ended_bookings.page_of_user(user_id, ENDED_PAGE_SIZE, after)
        lately = [b for b in page.items if b.ended_at and b.ended_at >= now - CANCELLED_SHOWN]
        slots = await _load_visible_slots(services, {booking.slot_id for booking in lately})
        for booking in lately:
            if slot := slots.get(booking.slot_id):
                yield booking, slot
        if not page.has_more or len(lately) < len(page.items):
            return
        last = lately[-1]
        after = Position(last.ended_at or now, last.id)


async def _load_visible_slots(services: Services, slot_ids: Iterable[SlotId]) -> dict[SlotId, Slot]:
    now = services.now()
    found = await asyncio.gather(
        *(services.slots.find(SlotQuery(slot_id, now)) for slot_id in slot_ids)
    )
    return {slot.id: slot for slot in found if slot and is_visible(slot, None)}
