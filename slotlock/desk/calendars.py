"""Looking up what calendars show: a person's bookings, or what is published."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

from slotlock.desk.desk import Desk
from slotlock.domain.availability import visible
from slotlock.domain.bookings import Booking, SlotId
from slotlock.domain.calendars import (
    CANCELLED_FOR,
    MOST_EVENTS,
    OWN_FOR,
    PUBLISHED_FOR,
    Event,
    events_of_booking,
    events_of_person,
    events_of_slot,
)
from slotlock.domain.listing import Position
from slotlock.domain.people import UserId
from slotlock.domain.slots import Slot
from slotlock.domain.terms import CampaignId
from slotlock.stores.slots import Look

ENDED_AT_ONCE = 100


async def of_person(desk: Desk, user_id: UserId) -> Sequence[Event]:
    """A person's bookings of the last year and all to come, and what was cancelled lately.

    Where there are too many meetings, those of the slots that begin first are left out.
    """
    now, found = desk.now(), _Found()
    look = desk.slots.calendars.of_person
    async for slot in _all(lambda after: look(user_id, now - OWN_FOR, now, after), found):
        found.add(events_of_person(slot, user_id, now))
    # The live ones first: one that is cancelled meanwhile is found twice, and its end is kept.
    async for booking, slot in _ended(desk, user_id):
        found.add(events_of_booking(slot, booking, now))
    return found.in_order()


async def published(desk: Desk, campaign_id: CampaignId | None) -> Sequence[Event]:
    """The slots that everybody may see, or those of a campaign that its reader may see.

    Those that are over for 30 days are left out; of too many, first those that are over, the
    oldest first, then those that end last (of a campaign: begin).
    """
    now, found, slots = desk.now(), _Found(), desk.slots.calendars
    since = now - PUBLISHED_FOR
    async for slot in _all(lambda after: slots.to_come(campaign_id, now, after), found):
        found.add(events_of_slot(slot, now))
    async for slot in _all(lambda after: slots.over(campaign_id, since, now, after), found):
        found.add(events_of_slot(slot, now))
    return found.in_order()


class _Found:
    """The events so far, each once, as many as a calendar has."""

    def __init__(self) -> None:
        self._events: dict[str, Event] = {}

    @property
    def full(self) -> bool:
        return len(self._events) >= MOST_EVENTS

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.uid in self._events or not self.full:
                self._events[event.uid] = event

    def in_order(self) -> Sequence[Event]:
        return sorted(self._events.values(), key=lambda event: (event.meeting.start, event.uid))


async def _all(
    look: Callable[[Slot | None], Awaitable[Sequence[Slot]]], found: _Found
) -> AsyncIterator[Slot]:
    after: Slot | None = None
    while not found.full and (slots := await look(after)):
        for slot in slots:
            yield slot
        after = slots[-1]


async def _ended(desk: Desk, user_id: UserId) -> AsyncIterator[tuple[Booking, Slot]]:
    """A person's bookings that ended lately, with their slots as far as these are shown."""
    now, after = desk.now(), None
    for _ in range(MOST_EVENTS // ENDED_AT_ONCE):
        page = await desk.slots.past.of_person(user_id, ENDED_AT_ONCE, after)
        lately = [b for b in page.items if b.ended_at and b.ended_at >= now - CANCELLED_FOR]
        slots = await _slots(desk, {booking.slot_id for booking in lately})
        for booking in lately:
            if slot := slots.get(booking.slot_id):
                yield booking, slot
        if not page.more or len(lately) < len(page.items):
            return
        last = lately[-1]
        after = Position(last.ended_at or now, last.id)


async def _slots(desk: Desk, slot_ids: Iterable[SlotId]) -> dict[SlotId, Slot]:
    now = desk.now()
    found = await asyncio.gather(*(desk.slots.look(Look(slot_id, now)) for slot_id in slot_ids))
    return {slot.id: slot for slot in found if slot and visible(slot, None)}
