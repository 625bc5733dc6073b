"""Finds and cancels the places that an account holds or waits for."""

from collections.abc import Sequence

from slotlock.domain.admission.tickets import TICKET_TTL, Ticket, TicketStatus
from slotlock.domain.booking.decision import BookingChangeRequest
from slotlock.domain.booking.rules.booking_changes import cancel
from slotlock.domain.users.account_admin_rules import HeldPlaces
from slotlock.domain.users.user import Caller, UserId
from slotlock.services.admission import tickets
from slotlock.services.booking import waitlist
from slotlock.services.booking.booking_changes import change_booking
from slotlock.services.booking.waitlist import REMOVAL_TIMEOUT_S
from slotlock.services.container import Services
from slotlock.services.draws import wishes


async def find(services: Services, user_id: UserId) -> HeldPlaces:
    """Return what a user holds of slots that have not started, and waits for.

    Raises:
        RedisUnavailableError: the tickets of the user cannot be read.
    """
    queued = await _find_queued(services, user_id)
    waited_for = await services.waitlists.find_waiting([user_id])
    booked = await services.erasures.find_cancellable(user_id, services.now())
    wished_in = await wishes.find_changeable(services, user_id)
    return HeldPlaces(len(booked), len(waited_for), len(queued), len(wished_in))


async def cancel_all(services: Services, user_id: UserId, actor: Caller) -> HeldPlaces:
    """Cancel what `find` returns. A request that is no ticket, and still waits, is not cancelled.

    Raises:
        RedisUnavailableError: the tickets of the user cannot be read.
    """
    queued = await _find_queued(services, user_id)
    for ticket in queued:
        await tickets.cancel_ticket(services, ticket.ref, _as_requester(user_id, actor))
    wished_in = await wishes.find_changeable(services, user_id)
    await services.wishes.remove_user(user_id, wished_in)
    bookings, waitlist_entries = await cancel_places(services, user_id, actor)
    return HeldPlaces(bookings, waitlist_entries, len(queued), len(wished_in))


async def cancel_places(services: Services, user_id: UserId, actor: Caller) -> tuple[int, int]:
    """Cancel the bookings of a user in slots that have not started, and leave the waiting lists.

    Return how many there were of each.
    """
    waited_for = await services.waitlists.find_waiting([user_id])
    for slot_id, _ in waited_for:
        await waitlist.remove(services, slot_id, user_id, actor.user_id)
    booked = await services.erasures.find_cancellable(user_id, services.now())
    for slot_id, booking_id in booked:
        request = BookingChangeRequest(slot_id, booking_id, actor, REMOVAL_TIMEOUT_S)
        await change_booking(services, cancel, request)
    return len(booked), len(waited_for)


async def _find_queued(services: Services, user_id: UserId) -> Sequence[Ticket]:
    refs = await services.ticket_index.find(user_id, services.now() - TICKET_TTL)
    found = await tickets.load_tickets(services, refs)
    if errors := [each for each in found if isinstance(each, BaseException)]:
        raise errors[0]
    loaded = [each for each in found if isinstance(each, Ticket)]
    return [each for each in loaded if each.status is TicketStatus.QUEUED]


def _as_requester(user_id: UserId, actor: Caller) -> Caller:
    return Caller(user_id, actor.role, actor.session_id, actor.expires_at)
