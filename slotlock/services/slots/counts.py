"""How many items a connection has, up to `MAX_COUNT`: a larger number is None."""

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.rules.expiry import without_expired
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.shared.pagination import MAX_COUNT, exact_count
from slotlock.domain.slots.listing import SlotFilter
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.services.container import Services


async def count_slots(services: Services, slot_filter: SlotFilter) -> int | None:
    """Return how many slots match a filter; None for more than `MAX_COUNT`."""
    return exact_count(await services.slots.count(slot_filter, services.now(), MAX_COUNT + 1))


async def count_bookings(services: Services, caller: Caller) -> int | None:
    """Return how many slots `queries.list_bookings` lists; None for more than `MAX_COUNT`."""
    return exact_count(await services.slots.count_of_user(caller.user_id, MAX_COUNT + 1))


async def count_waitlist_entries(services: Services, caller: Caller) -> int | None:
    """Return how many waiting list entries the caller has; None for more than `MAX_COUNT`."""
    return exact_count(await services.slots.count_of_waiting_user(caller.user_id, MAX_COUNT + 1))


async def count_series(
    services: Services, series_id: SeriesId, viewer: Caller | None
) -> int | None:
    """Return how many slots `queries.list_series` lists; None for more than `MAX_COUNT`."""
    count = await services.slots.count_of_series(
        series_id, MAX_COUNT + 1, include_hidden=sees_hidden(viewer)
    )
    return exact_count(count)


async def count_ended_bookings(services: Services, caller: Caller) -> int | None:
    """Return how many ended bookings the caller has; None for more than `MAX_COUNT`."""
    count = await services.ended_bookings.count_of_user(caller.user_id, MAX_COUNT + 1)
    return exact_count(count)


async def count_roster(services: Services, slot_id: SlotId) -> int | None:
    """Return how many live bookings a slot has; None without a slot."""
    now = services.now()
    slot = await services.slots.find(SlotQuery(slot_id, now))
    return None if slot is None else without_expired(slot, now).booked_count


async def count_history(services: Services, slot_id: SlotId) -> int | None:
    """Return how many bookings of a slot ended; None for more than `MAX_COUNT`."""
    return exact_count(await services.ended_bookings.count_of_slot(slot_id, MAX_COUNT + 1))


def sees_hidden(viewer: Caller | None) -> bool:
    """Return whether the viewer sees drafts and the slots of unpublished campaigns in a series."""
    return viewer is not None and viewer.is_organizer
