"""Rules applied to slots, for tests that need the slot after a decision as well."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import AllBooked, MoveOutcome, NoneBooked
from slotlock.domain.booking.decision import (
    BookingChangeRequest,
    BookingRule,
    Decision,
    LoadedState,
)
from slotlock.domain.booking.rules.book import BookingRequest, SlotClaim, book, book_all
from slotlock.domain.booking.rules.booking_changes import (
    move,
)
from slotlock.domain.booking.rules.expiry import without_expired
from slotlock.domain.booking.rules.next_version import next_version
from slotlock.domain.booking.rules.promotion import promote_waitlist
from slotlock.domain.booking.rules.waitlist import join
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS, UserContexts

Outcome = TypeVar("Outcome")

RULES_WITH_USERS: tuple[Callable[..., object], ...] = (book, join)


def decide(
    rule: Callable[..., Decision[Outcome]] | BookingRule[..., Outcome],
    state: SlotState,
    *args: Any,
    users: UserContexts = NO_CONTEXTS,
    **arguments: Any,
) -> tuple[SlotState, Outcome]:
    """Return the slot after a rule was applied to it, and the outcome."""
    if isinstance(rule, BookingRule):
        decision = rule.decide(state, users, *args, **arguments)
    elif rule in RULES_WITH_USERS:
        decision = rule(state, users, *args)
    else:
        decision = rule(state, *args)
    (after,) = decision.changed_slots or (state,)
    return after, decision.outcome


def decide_move(
    old: SlotState,
    new: SlotState,
    change: BookingChangeRequest,
    request: BookingRequest,
    now: datetime,
    users: UserContexts = NO_CONTEXTS,
) -> tuple[SlotState, SlotState, MoveOutcome]:
    """Return both slots after a move was applied to them, and the outcome."""
    decision = move(old, new, users, change, request, now)
    old_after, new_after = decision.changed_slots or (old, new)
    return old_after, new_after, decision.outcome


def decide_all(
    loaded: LoadedState, claims: Sequence[SlotClaim], now: datetime
) -> tuple[dict[SlotId, SlotState], AllBooked | NoneBooked]:
    """Return the slots after several bookings were applied to them, and the outcome."""
    decision = book_all(loaded, claims, now)
    changed = {state.id: state for state in decision.changed_slots}
    return {**loaded.slots, **changed}, decision.outcome


def expire_and_promote(
    state: SlotState, now: datetime, users: UserContexts = NO_CONTEXTS
) -> SlotState:
    """Return the slot as every decision begins: without expired holds, with freed places filled."""
    return promote_waitlist(without_expired(state, now), users, now)


def as_written(
    before: SlotState, after: SlotState, now: datetime, users: UserContexts = NO_CONTEXTS
) -> SlotState:
    """Return the changed slot with the version and times that its write gives it."""
    return next_version(before, after, users, now)
