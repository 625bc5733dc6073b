"""Queries for slots and bookings that return only what their viewer may see."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.availability import is_visible, sees_hidden
from slotlock.domain.booking.booking import Booking, BookingId, SlotId
from slotlock.domain.booking.rules.expiry import as_of, without_expired
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.schedule.meetings import MAX_MEETINGS, Meeting
from slotlock.domain.shared.pagination import Page, Position, SearchedPage, TimeFilter, TimePage
from slotlock.domain.slots.listing import (
    VISIBILITY_FACTS,
    SlotFilter,
    SlotOrder,
    SlotPosition,
    SlotSelection,
)
from slotlock.domain.slots.selected_slot import ReadableSlot, SelectedSlot
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.slots.reads.selected_slots import SlotReadRequest
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.booking.eligibility import check_eligibility
from slotlock.services.booking.permissions import with_dependents, with_led_slots
from slotlock.services.container import Services

EVERYTHING = SlotSelection()
# A page of the slots that a user may book searches at most so many batches of so many slots.
MAX_BATCHES = 4
MIN_BATCH_SIZE = 50
# The facts that decide the position of a slot in a list by time.
TIMES = frozenset({"start", "end"})
ONLY_TIMES = SlotSelection(False, False, False, False, False, TIMES)
# The facts that end the bookings of a slot.
CANCELLATION_FACTS = frozenset({"status", "cancellation"})
MEETING_FACTS = frozenset({"start", "end", "meetings"})


async def find_slot(
    services: Services,
    slot_id: SlotId,
    viewer: Caller | None,
    selection: SlotSelection = EVERYTHING,
    dependents: Sequence[UserId] = (),
) -> ReadableSlot | None:
    """Return what is selected of a slot; None if the viewer sees no such slot.

    The bookings and waitlist entries of these dependents are read, too.
    """
    # The repository combines the reads of concurrent requests.
    selection = selection.visible_to(viewer, VISIBILITY_FACTS)
    now, user_ids = services.now(), _user_ids(viewer, dependents)
    slot = await services.slots.read(SlotReadRequest(slot_id, now, selection, user_ids))
    if slot is None or not is_visible(slot.slot, viewer):
        return None
    return _as_of(slot, selection, now)


async def find_slots(
    services: Services,
    slot_ids: Iterable[SlotId],
    viewer: Caller | None,
    selection: SlotSelection = EVERYTHING,
) -> dict[SlotId, ReadableSlot]:
    """Return what is selected of those of the slots that the viewer may see."""
    found = await _find_all(services, slot_ids, viewer, selection.with_facts(VISIBILITY_FACTS))
    return {slot_id: slot for slot_id, slot in found.items() if is_visible(slot.slot, viewer)}


async def _find_all(
    services: Services,
    slot_ids: Iterable[SlotId],
    viewer: Caller | None,
    selection: SlotSelection,
) -> dict[SlotId, ReadableSlot]:
    # One read per slot: the repository batches those of concurrent requests.
    now, user_ids, selection = services.now(), _user_ids(viewer), selection.visible_to(viewer)
    reads = (SlotReadRequest(slot_id, now, selection, user_ids) for slot_id in slot_ids)
    found = await asyncio.gather(*map(services.slots.read, reads))
    return {slot.id: _as_of(slot, selection, now) for slot in found if slot}


async def list_slots(
    services: Services,
    slot_filter: SlotFilter,
    order: SlotOrder,
    first: int,
    after: SlotPosition | None,
    viewer: Caller | None,
    selection: SlotSelection = EVERYTHING,
    dependents: Sequence[UserId] = (),
) -> Page[ReadableSlot]:
    """Return what is selected of a page of the slots that match a filter, and their positions.

    The bookings and waitlist entries of these dependents are read, too.
    """
    now, selection = services.now(), selection.visible_to(viewer, order.facts)
    users = _user_ids(viewer, dependents)
    page = await services.slots.page(slot_filter, order, first, after, now, selection, users)
    return _page_as_of(page, selection, now)


async def list_bookable_slots(
    services: Services,
    slot_filter: SlotFilter,
    order: SlotOrder,
    first: int,
    after: SlotPosition | None,
    caller: Caller,
    selection: SlotSelection = EVERYTHING,
) -> SearchedPage[ReadableSlot, SlotPosition]:
    """Return at most `first` of the slots that match a filter and that the caller may book now.

    A page ends when it is full, or has searched enough. It may then have fewer slots, or none.
    """
    slot_filter = replace(slot_filter, bookable_only=True)
    batch_size, found = max(first, MIN_BATCH_SIZE), list[ReadableSlot]()
    for _ in range(MAX_BATCHES):
        page = await list_slots(services, slot_filter, order, batch_size, after, caller, selection)
        checked = await asyncio.gather(
            *(check_eligibility(services, caller, slot.id) for slot in page.items)
        )
        for slot, eligibility in zip(page.items, checked, strict=True):
            after = order.position_of(slot.slot)
            if eligibility.refusal is None:
                found.append(slot)
            if len(found) == first:
                has_more = page.has_more or slot is not page.items[-1]
                return SearchedPage(tuple(found), has_more, after)
        if not page.has_more:
            return SearchedPage(tuple(found), False, after)
    return SearchedPage(tuple(found), True, after)


async def list_bookings(
    services: Services,
    caller: Caller,
    page: TimePage,
    selection: SlotSelection = EVERYTHING,
) -> Page[ReadableSlot]:
    """Return a page of the slots in which the caller has a live booking, with that booking."""
    now = services.now()
    selection = replace(selection.visible_to(caller, TIMES), my_booking=True)
    found = await services.slots.page_of_user(caller.user_id, page, now, selection)
    return _page_as_of(found, selection, now)


async def list_bookings_of(
    services: Services,
    user_id: UserId,
    page: TimePage,
    viewer: Caller,
    selection: SlotSelection,
) -> tuple[Page[ReadableSlot], dict[SlotId, ReadableSlot]]:
    """Return a page of the slots in which any user has a live booking, with that booking.

    The slots beside the page are what the viewer selected, with the viewer's own booking.
    """
    now, wanted = services.now(), replace(ONLY_TIMES, my_booking=True)
    found = _page_as_of(await services.slots.page_of_user(user_id, page, now, wanted), wanted, now)
    selection = selection.with_facts(CANCELLATION_FACTS)
    return found, await _find_all(services, (slot.id for slot in found.items), viewer, selection)


async def list_waitlist_entries_of(
    services: Services,
    user_id: UserId,
    page: TimePage,
    viewer: Caller,
    selection: SlotSelection,
) -> tuple[Page[ReadableSlot], dict[SlotId, ReadableSlot]]:
    """Return a page of the slots for which any user waits, as `list_bookings_of` does."""
    now, wanted = services.now(), replace(ONLY_TIMES, my_waitlist_entry=True)
    found = await services.slots.page_of_waiting_user(user_id, page, now, wanted)
    return found, await _find_all(services, (slot.id for slot in found.items), viewer, selection)


async def list_series(
    services: Services,
    series_id: SeriesId,
    page: TimePage,
    viewer: Caller | None,
    selection: SlotSelection = EVERYTHING,
) -> Page[ReadableSlot]:
    """Return what is selected of a page of the slots of a series that the viewer may see."""
    now, selection = services.now(), selection.visible_to(viewer, TIMES)
    users, include_hidden = _user_ids(viewer), sees_hidden(viewer)
    found = await services.slots.page_of_series(
        series_id, page, now, selection, users, include_hidden=include_hidden
    )
    return _page_as_of(found, selection, now)


async def count_series(
    services: Services,
    series_id: SeriesId,
    wanted: TimeFilter,
    as_of: datetime,
    viewer: Caller | None,
) -> int | None:
    """Return how many slots `list_series` lists; None for more than `MAX_COUNT`."""
    include_hidden = sees_hidden(viewer)
    return await services.slots.count_of_series(
        series_id, wanted, as_of, include_hidden=include_hidden
    )


async def list_waitlist_entries(
    services: Services,
    caller: Caller,
    page: TimePage,
    selection: SlotSelection = EVERYTHING,
) -> Page[ReadableSlot]:
    """Return a page of the slots on whose waitlists the caller is, with that entry."""
    now = services.now()
    selection = replace(selection.visible_to(caller, TIMES), my_waitlist_entry=True)
    found = await services.slots.page_of_waiting_user(caller.user_id, page, now, selection)
    return _page_as_of(found, selection, now)


async def list_meetings(
    services: Services, caller: Caller, period: Meeting, selection: SlotSelection = EVERYTHING
) -> list[tuple[Meeting, ReadableSlot]]:
    """Return the meetings in a period of what the caller booked or waits for, by start.

    At most `MAX_MEETINGS` of the slots that start first.
    """
    now, selection = services.now(), selection.visible_to(caller)
    selection = replace(selection, my_booking=True, my_waitlist_entry=True)
    selection = selection.with_facts(SlotOrder.START_ASC.facts | MEETING_FACTS)
    found = await services.slots.find_of_user(caller.user_id, period, MAX_MEETINGS, now, selection)
    slots = [_as_of(slot, selection, now) for slot in found]
    meetings = [
        (meeting, slot)
        for slot in slots
        if slot.booking_of(caller.user_id) or slot.waitlist_entry_of(caller.user_id)
        for meeting in slot.slot.all_meetings
        if meeting.start < period.end and meeting.end > period.start
    ]
    return sorted(meetings, key=lambda found: (found[0].start, found[1].id))[:MAX_MEETINGS]


def _page_as_of(
    page: Page[ReadableSlot], selection: SlotSelection, now: datetime
) -> Page[ReadableSlot]:
    if not (selection.remaining or selection.shows_bookings):
        return page  # what was read does not change with time
    return Page(tuple([_as_of(slot, selection, now) for slot in page.items]), page.has_more)


def _as_of(slot: ReadableSlot, selection: SlotSelection, now: datetime) -> ReadableSlot:
    if not isinstance(slot, SelectedSlot):
        return as_of(slot, now)
    return slot.without_expired(now) if selection.shows_bookings else slot


async def slot_roster(
    services: Services, slot_id: SlotId, first: int, after: BookingId | None
) -> tuple[SlotState, Page[Booking]] | None:
    """Return a page of the live bookings of a slot, the oldest first; None without a slot."""
    slot = await services.slots.find_with_roster(slot_id)
    if slot is None:
        return None
    slot = as_of(slot, services.now())
    # Booking ids grow with time only within one process, so the position in the roster counts. If
    # the booking at the cursor was cancelled meanwhile, the page begins after its id.
    ids = [booking.id for booking in slot.bookings]
    begin = 0
    if after is not None:
        begin = ids.index(after) + 1 if after in ids else sum(id_ <= after for id_ in ids)
    items = slot.bookings[begin : begin + first]
    return replace(slot, bookings=()), Page(items, len(slot.bookings) > begin + first)


async def count_roster(services: Services, slot_id: SlotId) -> int | None:
    """Return how many live bookings a slot has; None without a slot."""
    now = services.now()
    slot = await services.slots.find(SlotQuery(slot_id, now))
    return None if slot is None else without_expired(slot, now).booked_count


async def find_booking(
    services: Services, slot_id: SlotId, booking_id: BookingId, viewer: Caller
) -> tuple[Booking, SlotState, Caller] | None:
    """Return a live or ended booking with its slot, for those who manage it, and who reads it.

    Guardians read it as their dependent, and leaders what they booked in a slot that they lead.
    """
    found = await _find_managed(services, slot_id, booking_id, viewer)
    if viewer.is_organizer or (found is not None and found[0].user_id == viewer.user_id):
        return (*found, viewer) if found else None
    related = await with_dependents(services, viewer)
    if found is None:
        related = await with_led_slots(services, related, [slot_id])
    if found is None and related is not viewer:
        found = await _find_managed(services, slot_id, booking_id, related)
    if found is None:
        return None
    user_id = found[0].user_id
    return (*found, viewer.as_dependent(user_id) if user_id in related.acts_for else related)


async def _find_managed(
    services: Services, slot_id: SlotId, booking_id: BookingId, viewer: Caller
) -> tuple[Booking, SlotState] | None:
    now, users = services.now(), [viewer.user_id, *viewer.acts_for]
    slot = await services.slots.find(SlotQuery(slot_id, now, users, [booking_id]))
    if slot is None:
        return None
    slot = as_of(slot, now)
    expired = next((b for b in slot.change.ended if b.id == booking_id), None)
    booking = slot.booking_by_id(booking_id) or expired
    if booking is None or not booking.is_managed_by(viewer):
        # Also for bookings of others: the response time must not reveal whether one exists.
        booking = await services.ended_bookings.find(booking_id)
    if booking is None or booking.slot_id != slot_id or not booking.is_managed_by(viewer):
        return None
    return booking, slot


async def slot_history(
    services: Services, slot_id: SlotId, first: int, after: Position | None
) -> tuple[SlotState, Page[Booking]] | None:
    """Return a page of the ended bookings of a slot, the first end first; None without a slot."""
    now = services.now()
    slot = await services.slots.find(SlotQuery(slot_id, now))
    if slot is None:
        return None
    return as_of(slot, now), await services.ended_bookings.page_of_slot(slot_id, first, after)


async def list_ended_bookings(
    services: Services,
    caller: Caller,
    first: int,
    after: Position | None,
    selection: SlotSelection = EVERYTHING,
) -> tuple[Page[Booking], dict[SlotId, ReadableSlot]]:
    """Return a page of the caller's ended bookings, the latest first, and their slots."""
    page = await services.ended_bookings.page_of_user(caller.user_id, first, after)
    slot_ids = {booking.slot_id for booking in page.items}
    return page, await _find_all(services, slot_ids, caller, selection)


def _user_ids(viewer: Caller | None, dependents: Sequence[UserId] = ()) -> tuple[UserId, ...]:
    return (viewer.user_id, *dependents) if viewer else ()
