"""Rules for booking or holding places: one, several at once, or those of a series."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Self

from slotlock.domain.booking.availability import is_visible
from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingId,
    BookingLimit,
    BookingStatus,
    HistoryEntry,
    MadeAs,
    SlotId,
)
from slotlock.domain.booking.booking_outcomes import AllBooked, Booked, NoneBooked, SeriesBooked
from slotlock.domain.booking.booking_refusals import (
    AlreadyBooked,
    BookingRefusal,
    DrawOnly,
    HoldCooldown,
    LimitReached,
    NothingToBook,
    QueueOnly,
    SeriesNotFound,
    SeriesRefusal,
    SeriesTooLong,
    SlotCancelled,
    SlotFull,
    SlotNotFound,
    TimeConflict,
)
from slotlock.domain.booking.decision import Decision, LoadedState, accept, refuse
from slotlock.domain.booking.rules.limits import (
    LimitViolation,
    group_violations,
    time_violations,
    user_violations,
)
from slotlock.domain.booking.rules.promotion import promotable_count
from slotlock.domain.booking.slot import SeriesId, Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.campaigns.terms import SlotAdmission
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, UserId


@value_object
class BookingRequest:
    """A booking to create: for whom, requested by whom, and the id that it will have.

    `made_as` is `ORGANIZER` when an organizer books for another user, of whom they are no guardian.
    Limits do not apply then, and the history names those that were overridden.

    It is `DRAW` for a place that a draw gave. The basis of the draw has judged the limits, and what
    changed since takes no place away: neither limits nor the waiting list apply.

    `admission` is `QUEUE_ONLY` for the requests of the admission queue, and `DRAW` for those of
    organizers and of draws, which pass the queue as well.
    """

    user_id: UserId
    booking_id: BookingId
    requested_by: UserId
    hold: bool = False
    admission: SlotAdmission = SlotAdmission.ANY
    made_as: MadeAs | None = None

    def made_by(self, caller: Caller, *, leads: bool = False) -> Self:
        """Return the request as what its caller makes it; `leads` if they may as a leader only.

        The first relation counts: the user, a guardian, an organizer, a teammate, a leader. So
        organizers book for their own children by the rules, as for themselves.
        """
        if self.user_id == caller.user_id:
            return self
        if self.user_id in caller.acts_for:
            return replace(self, made_as=MadeAs.GUARDIAN)
        if caller.is_organizer:
            return replace(self, made_as=MadeAs.ORGANIZER)
        return replace(self, made_as=MadeAs.LEADER) if leads else self


@value_object
class SlotClaim:
    """One booking of a request for several."""

    slot_id: SlotId
    request: BookingRequest


def book(
    state: SlotState, users: UserContexts, request: BookingRequest, now: datetime
) -> Decision[Booked | BookingRefusal]:
    """Book or hold a place, if the slot has one that this user may have."""
    if decision := book_unchanged(state, users, request, now):
        return decision
    entry = _created_entry(state, users, request, now)
    groups = users.groups_for(state.slot, request.user_id)
    booking = Booking(
        request.booking_id,
        state.id,
        request.user_id,
        (entry,),
        groups=groups,
        made_as=request.made_as,
    )
    after = state.with_booking(booking)
    # An organizer may book for a user who still waits.
    if state.waitlist and (waiting := state.waitlist_entry_of(request.user_id)):
        after = after.with_ended_waitlist_entry(waiting, now, request.requested_by)
    return Decision(Booked(state.id, booking), True, (after,))


def book_unchanged(
    state: SlotState, users: UserContexts, request: BookingRequest, now: datetime
) -> Decision[Booked | BookingRefusal] | None:
    """Return the decision of `book` if it changes nothing, else None."""
    existing = state.booking_of(request.user_id)
    # An earlier attempt may have written the booking although its reply was lost.
    if existing and existing.id == request.booking_id:
        return accept(Booked(state.id, existing))
    refusal = _refusal(state, users, request, existing, now)
    return refuse(refusal) if refusal else None


def book_all(
    loaded: LoadedState, claims: Sequence[SlotClaim], now: datetime
) -> Decision[AllBooked | NoneBooked]:
    """Book every claim, or none of them."""
    outcomes, changed = book_each(loaded, claims, now)
    booked = tuple(outcome for outcome in outcomes if isinstance(outcome, Booked))
    if len(booked) == len(outcomes):
        return accept(AllBooked(booked), *changed)
    return refuse(none_booked(outcomes, claims))


def book_each(
    loaded: LoadedState, claims: Sequence[SlotClaim], now: datetime
) -> tuple[list[Booked | BookingRefusal], list[SlotState]]:
    """Return the outcome of each claim after those before it, and the slots that they change."""
    latest, outcomes = loaded, list[Booked | BookingRefusal]()
    for claim in claims:
        state = latest.slots.get(claim.slot_id)
        if state is None:
            outcomes.append(SlotNotFound(claim.slot_id))
            continue
        decision = book(state, latest.users, claim.request, now)
        latest = latest.with_slots(decision.changed_slots)
        outcomes.append(decision.outcome)
    changed = [state for id_, state in latest.slots.items() if state is not loaded.slots[id_]]
    return outcomes, changed


def none_booked(
    outcomes: Sequence[Booked | BookingRefusal], claims: Sequence[SlotClaim]
) -> NoneBooked:
    """Return the outcome if the claims that could be booked are discarded with the others."""
    discarded_ids = {claim.request.booking_id for claim in claims}
    return NoneBooked(tuple(_public_refusal(each, discarded_ids) for each in outcomes))


def _public_refusal(
    outcome: Booked | BookingRefusal, discarded_ids: set[BookingId]
) -> BookingRefusal | None:
    match outcome:
        case Booked():
            return None
        case LimitReached() | TimeConflict() if (
            outcome.booking and outcome.booking.id in discarded_ids
        ):
            return replace(outcome, booking=None)
        case _:
            return outcome


def _refusal(
    state: SlotState,
    users: UserContexts,
    request: BookingRequest,
    existing: Booking | None,
    now: datetime,
) -> BookingRefusal | None:
    slot, is_drawn = state.slot, request.made_as is MadeAs.DRAW
    as_organizer = request.made_as is MadeAs.ORGANIZER
    if slot.is_hidden and (slot.status is SlotStatus.DRAFT or not as_organizer):
        return SlotNotFound(slot.id)
    if slot.status is SlotStatus.CANCELLED:
        return SlotCancelled(slot.id)
    # Limits stop neither an organizer nor a draw; an existing booking and a full slot do.
    checks_limits = not (as_organizer or is_drawn)
    checks_user = checks_limits and (slot.needs_user_context or users.require_verified_email)
    checks_time = checks_limits or (is_drawn and now >= slot.start)
    if checks_time and (too_early_or_late := next(time_violations(slot, now), None)):
        return too_early_or_late[1]
    if existing:
        return AlreadyBooked(slot.id, existing)
    required, has = slot.required_admission, request.admission
    if required is not SlotAdmission.ANY and has not in (required, SlotAdmission.DRAW):
        return DrawOnly(slot.id) if required is SlotAdmission.DRAW else QueueOnly(slot.id)
    if checks_user and (
        not_allowed := next(user_violations(slot, users, request.user_id, now), None)
    ):
        return not_allowed[1]
    # Free places belong to the users on the waiting list first.
    has_rivals = state.waitlist_length and not is_drawn
    if state.is_booked or (has_rivals and promotable_count(state, users, now)):
        return SlotFull(slot.id)
    if checks_user and slot.limits_groups:
        group_full = next(group_violations(state, users, request.user_id), None)
        if group_full:
            return group_full[1]
    return hold_cooldown(state, request.user_id, now) if checks_limits and request.hold else None


def hold_cooldown(state: SlotState, user_id: UserId, now: datetime) -> HoldCooldown | None:
    """Return until when a user may not hold a place again, if the last hold ended unconfirmed.

    The setting of now decides, also for holds that ended before it was changed.
    """
    ended_at = state.ended_holds.get(user_id)
    if ended_at is None or not state.slot.hold_cooldown_minutes:
        return None
    until = ended_at + timedelta(minutes=state.slot.hold_cooldown_minutes)
    return HoldCooldown(state.id, until) if now < until else None


def _violations(
    state: SlotState, users: UserContexts, user_id: UserId, now: datetime
) -> Iterator[LimitViolation]:
    yield from time_violations(state.slot, now)
    yield from user_violations(state.slot, users, user_id, now)
    yield from group_violations(state, users, user_id)


def _created_entry(
    state: SlotState, users: UserContexts, request: BookingRequest, now: datetime
) -> HistoryEntry:
    overridden_limits: tuple[BookingLimit, ...] = ()
    if request.made_as is MadeAs.ORGANIZER:
        violations = _violations(state, users, request.user_id, now)
        overridden_limits = tuple(limit for limit, _ in violations)
        if request.hold and hold_cooldown(state, request.user_id, now):
            overridden_limits = (*overridden_limits, BookingLimit.HOLD_COOLDOWN)
    if not request.hold:
        return HistoryEntry(
            now,
            request.requested_by,
            BookingAction.BOOKED,
            BookingStatus.CONFIRMED,
            overridden_limits=overridden_limits,
        )
    return HistoryEntry(
        now,
        request.requested_by,
        BookingAction.HELD,
        BookingStatus.HELD,
        hold_end(state.slot, now),
        overridden_limits,
    )


def hold_end(slot: Slot, now: datetime) -> datetime:
    """Return when a hold that starts now expires: at the latest when the slot starts."""
    until = now + timedelta(minutes=slot.hold_minutes)
    return min(until, slot.start) if now < slot.start else until


# They are one transaction, and their outcome with the terms of each slot is one document.
MAX_SERIES_CLAIMS = 100


class SeriesMode(DescribedEnum):
    """Which slots of a series to book."""

    ALL_OR_NONE = "all_or_none", "All of them. If one of them is refused, none is booked."
    WHAT_IS_FREE = (
        "what_is_free",
        "Those that can be booked, one after the other in the order of their start.",
    )


def slots_to_book(
    series_id: SeriesId, slots: Sequence[Slot], caller: Caller, now: datetime
) -> tuple[SlotId, ...] | SeriesRefusal:
    """Return the slots of a series that have not started, in the given order.

    Cancelled slots and drafts are left out.
    """
    visible = [slot for slot in slots if is_visible(slot, caller)]
    if not visible:
        return SeriesNotFound(series_id)
    claimed = tuple(
        slot.id for slot in visible if slot.status is SlotStatus.PUBLISHED and slot.start > now
    )
    if not claimed:
        return NothingToBook(series_id)
    if len(claimed) > MAX_SERIES_CLAIMS:
        return SeriesTooLong(series_id, len(claimed), MAX_SERIES_CLAIMS)
    return claimed


def book_series(
    loaded: LoadedState, claims: Sequence[SlotClaim], mode: SeriesMode, now: datetime
) -> Decision[SeriesBooked | NoneBooked]:
    """Book every slot of a series or none, or each that can be booked after those before it."""
    outcomes, changed = book_each(loaded, claims, now)
    booked_count = sum(isinstance(outcome, Booked) for outcome in outcomes)
    needed_count = len(claims) if mode is SeriesMode.ALL_OR_NONE else 1
    if booked_count >= needed_count:
        return accept(SeriesBooked(tuple(outcomes)), *changed)
    return refuse(none_booked(outcomes, claims))
