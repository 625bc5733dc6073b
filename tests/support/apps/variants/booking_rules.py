"""Guards of the booking rules, and the worker that expires holds.

D1 to D5 are the five published designs that docs/defects.md compares.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from slotlock.domain.booking.booking import Booking
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.booking_refusals import SlotFull
from slotlock.domain.booking.decision import Decision, accept
from slotlock.domain.booking.rules import book, promotion
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.users.user import Caller
from slotlock.services.booking import permissions
from slotlock.services.booking.book import BookingOptions
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.workers import hold_sweeper
from tests.support.apps.pause_points import replace_everywhere

original_book, original_promote_waitlist, original_promote = (
    book.book,
    promotion.promote_waitlist,
    promotion._promote,
)


def _return_true(*_: Any) -> bool:
    return True


def _return_false(*_: Any) -> bool:
    return False


def _return_none(*_: Any) -> None:
    return None


def _unchanged_slot(slot: SlotState, *_: Any) -> SlotState:
    return slot


def ignore_booking_owner() -> None:
    """Let every user change a booking whose id they know (D5)."""
    Booking.is_managed_by = _return_true  # type: ignore[method-assign,assignment]


async def _lead_all(_: Any, caller: Caller, slot_ids: Any) -> Caller:
    return replace(caller, leads=frozenset(slot_ids))


def lead_every_slot() -> None:
    """Let every user lead each slot that they name."""
    replace_everywhere(permissions.with_led_slots, _lead_all)


async def _true(*_: Any) -> bool:
    return True


def read_for_everybody() -> None:
    """Let every user read what another user reads."""
    replace_everywhere(permissions.is_guardian, _true)


class _Everybody(frozenset[Any]):
    def __contains__(self, _: object) -> bool:
        return True


def _act_for_all(caller: Caller, _: Any) -> Caller:
    return replace(caller, acts_for=_Everybody())


def act_for_everybody() -> None:
    """Let every user be the guardian of all others."""
    replace_everywhere(permissions.with_known_dependents, _act_for_all)


def record_attendance_everywhere() -> None:
    """Let a leader of some slot record the attendance of each booking."""
    Booking.is_led_by = _return_true  # type: ignore[method-assign,assignment]


def ignore_hold_expiry() -> None:
    """Treat no hold as expired (D5)."""
    Booking.is_expired_at = _return_false  # type: ignore[method-assign,assignment]


def disable_sweeper() -> None:
    """Expire no hold in the background. Commands on the slot still expire holds."""

    async def sweep_nothing(services: Any, ahead: timedelta) -> Sequence[datetime]:
        return ()

    replace_everywhere(hold_sweeper.sweep, sweep_nothing)


def sweep_one_hold_a_second() -> None:
    """Expire one hold per sweep and sweep once a second (D5)."""
    hold_sweeper.MAX_DUE_SLOTS, hold_sweeper.IDLE_INTERVAL_S = 1, (1.0, 1.0)
    sweep = hold_sweeper.sweep

    async def sweep_and_sleep(services: Any, ahead: timedelta) -> Sequence[datetime]:
        await sweep(services)
        return ()

    replace_everywhere(sweep, sweep_and_sleep)


def ignore_idempotency_keys() -> None:
    """Treat every retry as a new request (D5)."""
    BookingOptions.to_idempotency_key = IdempotencyKey.for_change = _return_none  # type: ignore[method-assign,assignment]


def _book_even_if_full(
    slot: SlotState, users: UserContexts, request: Any, now: datetime
) -> Decision[Any]:
    decision = original_book(slot, users, request, now)
    if isinstance(decision.outcome, SlotFull):
        entry = book._created_entry(slot, users, request, now)
        booking = Booking(request.booking_id, slot.id, request.user_id, (entry,))
        return accept(Booked(slot.id, booking))
    return decision


def report_success_when_full() -> None:
    """Return Booked although the slot is full (D5)."""
    replace_everywhere(original_book, _book_even_if_full)


def _book_ignoring_waitlist(
    slot: SlotState, users: UserContexts, request: Any, now: datetime
) -> Decision[Any]:
    decision = original_book(replace(slot, waitlist_length=0), users, request, now)
    changed = (replace(s, waitlist_length=slot.waitlist_length) for s in decision.changed_slots)
    return replace(decision, changed_slots=tuple(changed))


def ignore_waitlist() -> None:
    """Give a freed place to the next user who books, not to the waitlist."""
    replace_everywhere(original_promote_waitlist, _unchanged_slot)
    replace_everywhere(original_book, _book_ignoring_waitlist)


def promote_last_in_first_out() -> None:
    """Promote the newest waitlist entry first."""

    def promote_from_end(slot: SlotState, users: UserContexts, now: datetime) -> SlotState:
        waitlist = slot.waitlist
        promoted = original_promote_waitlist(
            replace(slot, waitlist=waitlist[::-1], loaded_waitlist=len(waitlist)), users, now
        )
        return replace(promoted, waitlist=promoted.waitlist[::-1])

    replace_everywhere(original_promote_waitlist, promote_from_end)


def _promote_without_place(
    slot: SlotState, users: UserContexts, entry: Any, now: datetime
) -> SlotState:
    after = original_promote(slot, users, entry, now)
    is_offered = slot.slot.waitlist_offer_minutes is not None
    return replace(after, booked_count=slot.booked_count) if is_offered else after


def offer_without_holding() -> None:
    """Leave an offered place free until the user accepts the offer."""

    def promote_one(slot: SlotState, users: UserContexts, now: datetime) -> SlotState:
        return (
            _promote_without_place(slot, users, slot.waitlist[0], now)
            if slot.waitlist and slot.remaining
            else slot
        )

    replace_everywhere(original_promote_waitlist, promote_one)


GUARDS = {
    "owner-of-booking": ignore_booking_owner,
    "led-slots": lead_every_slot,
    "guardians": act_for_everybody,
    "reads-of-guardians": read_for_everybody,
    "attendance-of-own-slots": record_attendance_everywhere,
    "hold-expiry": ignore_hold_expiry,
    "sweeper": disable_sweeper,
    "full-sweep": sweep_one_hold_a_second,
    "idempotency-keys": ignore_idempotency_keys,
    "refusals": report_success_when_full,
    "waitlist-order": ignore_waitlist,
    "first-in-first-out": promote_last_in_first_out,
    "offers": offer_without_holding,
}
