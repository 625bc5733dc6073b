"""The rules of the model: the outcome of every operation, and its effect on the model's state."""

import copy
from collections.abc import Callable
from datetime import datetime, timedelta

from tests.support.model.operations import (
    MORNING,
    NormalizedEntry,
    NormalizedOutcome,
    PlannedOperation,
)
from tests.support.model.state import (
    MAX_HOLD,
    ModelBooking,
    ModelSlot,
    ModelState,
    ModelWaitlistEntry,
)
from tests.support.model.teams import apply_team_operation

# Outcomes that use an idempotency key up even if the operation had no effect.
ALREADY_DONE_OUTCOMES = ("BookingConfirmed", "BookingCancelled", "HoldExtended")


class BookingModel(ModelState):
    """The model's state with a rule for every kind of operation."""

    def apply(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        """Apply an operation and return its outcome."""
        key = (operation.caller_id, operation.key or "")
        if operation.key and key in self.outcomes_by_key:
            request, outcome = self.outcomes_by_key[key]
            return outcome if request == operation.request else ("KeyReused",)
        if operation.kind.startswith("team_"):
            return apply_team_operation(self.teams, operation)
        self.has_effect = False
        rule: Callable[[PlannedOperation, datetime], NormalizedOutcome] = getattr(
            self, f"_{operation.kind}"
        )
        outcome = rule(operation, now)
        if operation.key and (self.has_effect or outcome[0] in ALREADY_DONE_OUTCOMES):
            self.outcomes_by_key[key] = (operation.request, outcome)
        return outcome

    def _book(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        if not self._may_book_for(operation, operation.user_id):
            return ("NotTeammate",)
        self.expire_and_promote([operation.slot_id], now)
        booking = self.book_place(
            operation, operation.slot_id, operation.user_id, operation.token, now
        )
        if not isinstance(booking, ModelBooking):
            return booking
        self.has_effect = True
        outcome = ("Booked", booking.as_tuple)
        self.expire_and_promote([operation.slot_id], now)
        return outcome

    def _book_all(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        denied = [not self._may_book_for(operation, user) for _, user in operation.claims]
        if any(denied):
            return ("NoneBooked", tuple("NotTeammate" if each else None for each in denied))
        slot_ids = sorted({slot_id for slot_id, _ in operation.claims})
        self.expire_and_promote(slot_ids, now)
        before = copy.deepcopy(self.slots)
        results = [
            self.book_place(operation, slot_id, user, f"{operation.token}.{number}", now)
            for number, (slot_id, user) in enumerate(operation.claims)
        ]
        bookings = [result for result in results if isinstance(result, ModelBooking)]
        if len(bookings) < len(results):
            self.slots = before
            refusals = tuple(
                None if isinstance(result, ModelBooking) else result[0] for result in results
            )
            return ("NoneBooked", refusals)
        self.has_effect = True
        outcome = ("AllBooked", tuple(booking.as_tuple for booking in bookings))
        self.expire_and_promote(slot_ids, now)
        return outcome

    def _may_book_for(self, operation: PlannedOperation, user: str) -> bool:
        are_teammates = any(
            operation.caller_id in team.members and user in team.members
            for team in self.teams.values()
        )
        return operation.caller_id == user or operation.as_organizer or are_teammates

    def _confirm(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        found = self._find_after_expiry(operation, now)
        if isinstance(found[0], str):
            return found
        slot, booking = self._live_booking(operation)
        if slot.is_cancelled:
            return ("SlotCancelled",)
        if booking.status == "held":
            if self.violates_choice_limit(slot, booking, now) and not operation.as_organizer:
                return ("LimitReached",)
            has_other_choice = bool(self.bookings_in_same_choice(slot, booking.user, now))
            overridden = ("one_of_choice",) * has_other_choice
            booking.history.append(
                NormalizedEntry(
                    now, operation.caller_id, "confirmed", "confirmed", None, overridden
                )
            )
            self.has_effect = True
        return ("BookingConfirmed", booking.as_tuple)

    def _extend(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        found = self._find_after_expiry(operation, now)
        if isinstance(found[0], str):
            return found
        slot, booking = self._live_booking(operation)
        if slot.is_cancelled:
            return ("SlotCancelled",)
        if booking.held_until is None:
            return ("NotHeld", booking.as_tuple)
        first = booking.history[0]
        held_until = min(slot.hold_end_for(now), first.at + MAX_HOLD)
        is_fixed = first.by is None or first.action == "moved"
        is_later = held_until > booking.held_until
        if not is_later or is_fixed or self.violates_choice_limit(slot, booking, now):
            return ("HoldLimitReached", booking.as_tuple)
        if held_until - booking.held_until < timedelta(seconds=30):
            return ("HoldExtended", booking.as_tuple)
        booking.history.append(
            NormalizedEntry(now, operation.caller_id, "extended", "held", held_until)
        )
        self.has_effect = True
        return ("HoldExtended", booking.as_tuple)

    def _cancel(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        found = self._find_after_expiry(operation, now)
        if isinstance(found[0], str):
            _, ended = self.ended_bookings.get(operation.booking, ("", None))
            if ended and found[0] == "BookingNotFound" and self._may_change(operation, ended):
                return ("BookingCancelled", ended.as_tuple)
            return found
        slot, booking = self._live_booking(operation)
        if slot.is_cancelled:
            return ("BookingCancelled", booking.as_tuple)
        overridden = slot.overridden_deadlines(booking, now)
        if overridden and not operation.as_organizer:
            return _deadline_refusal(overridden)
        self.end_booking(
            slot,
            booking,
            NormalizedEntry(now, operation.caller_id, "cancelled", "cancelled", None, overridden),
        )
        self.has_effect = True
        self.expire_and_promote([slot.id], now)
        return ("BookingCancelled", booking.as_tuple)

    def _move(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        found = self.find_live_booking(operation.booking)
        if found is None or not self._may_change(operation, found[1]):
            return self._missing_booking_outcome(operation)
        old_slot, booking = found
        slot_ids = sorted({operation.slot_id, operation.target_slot_id})
        self.expire_and_promote(slot_ids, now)
        if operation.target_slot_id not in self.slots:
            return ("SlotNotFound",)
        if booking.status == "expired":
            return ("HoldExpired", booking.as_tuple)
        if old_slot.is_cancelled:
            return ("SlotCancelled",)
        if operation.target_slot_id == old_slot.id:
            return ("AlreadyBooked", booking.as_tuple)
        overridden = old_slot.overridden_deadlines(booking, now)
        if overridden and not operation.as_organizer:
            return _deadline_refusal(overridden)
        new_booking = self.book_place(
            operation,
            operation.target_slot_id,
            booking.user,
            operation.token,
            now,
            except_token=booking.token,
        )
        if not isinstance(new_booking, ModelBooking):
            return new_booking
        new_slot = self.slots[operation.target_slot_id]
        held_until = booking.held_until and min(booking.held_until, now + MAX_HOLD)
        if held_until is not None and now < new_slot.start:
            held_until = min(held_until, new_slot.start)
        new_booking.history = [
            NormalizedEntry(
                now,
                operation.caller_id,
                "moved",
                booking.status,
                held_until,
                new_booking.history[0].overridden,
            )
        ]
        self.end_booking(
            old_slot,
            booking,
            NormalizedEntry(now, operation.caller_id, "moved", "cancelled", None, overridden),
        )
        self.has_effect = True
        outcome = ("BookingMoved", new_booking.as_tuple, booking.as_tuple)
        self.expire_and_promote(slot_ids, now)
        return outcome

    def _may_change(self, operation: PlannedOperation, booking: ModelBooking) -> bool:
        made_by = booking.history[0].by
        return operation.as_organizer or operation.caller_id in (booking.user, made_by)

    def _find_after_expiry(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        self.expire_and_promote([operation.slot_id], now)
        found = self.find_live_booking(operation.booking)
        return (
            found
            if found and self._may_change(operation, found[1])
            else self._missing_booking_outcome(operation)
        )

    def _live_booking(self, operation: PlannedOperation) -> tuple[ModelSlot, ModelBooking]:
        found = self.find_live_booking(operation.booking)
        assert found is not None
        return found

    def _missing_booking_outcome(self, operation: PlannedOperation) -> NormalizedOutcome:
        _, ended = self.ended_bookings.get(operation.booking, ("", None))
        if ended and ended.status == "expired" and self._may_change(operation, ended):
            return ("HoldExpired", ended.as_tuple)
        return ("BookingNotFound",)

    def _join(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        slot = self.slots.get(operation.slot_id)
        if slot is None:
            return ("SlotNotFound",)
        self.expire_and_promote([operation.slot_id], now)
        entry = slot.waitlist_entry_of(operation.caller_id)
        booking = slot.booking_of(operation.caller_id)
        has_other_choice = bool(self.bookings_in_same_choice(slot, operation.caller_id, now))
        refusals: list[tuple[bool, NormalizedOutcome]] = [
            (slot.is_cancelled, ("SlotCancelled",)),
            (now >= slot.start, ("SlotStarted",)),
            (booking is not None, ("AlreadyBooked", booking and booking.as_tuple)),
            (entry is not None, ("AlreadyWaiting", entry and entry.token)),
            (has_other_choice, ("LimitReached",)),
            (slot.free_places > 0, ("SlotNotFull",)),
            (len(slot.waitlist) >= slot.waitlist_capacity, ("WaitlistFull",)),
        ]
        refusal = next((outcome for applies, outcome in refusals if applies), None)
        if refusal is not None:
            return refusal
        slot.waitlist.append(ModelWaitlistEntry(operation.token, operation.caller_id, now))
        return ("WaitlistJoined", operation.token, len(slot.waitlist))

    def _leave(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        slot = self.slots.get(operation.slot_id)
        if slot is None:
            return ("SlotNotFound",)
        self.expire_and_promote([operation.slot_id], now)
        entry = slot.waitlist_entry_of(operation.caller_id)
        if entry is None:
            return ("NotWaiting",)
        slot.waitlist.remove(entry)
        self.ended_waitlist_tokens.append(entry.token)
        return ("WaitlistLeft",)

    def _edit(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        slot = self.slots[operation.slot_id]
        self.expire_and_promote([operation.slot_id], now)
        if slot.is_cancelled:
            return ("SlotCancelled",)
        if operation.number < len(slot.bookings):
            return ("CapacityBelowTaken",)
        slot.capacity = operation.number
        self.expire_and_promote([operation.slot_id], now)
        return ("SlotSaved",)

    def _postpone(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        slot = self.slots[operation.slot_id]
        self.expire_and_promote([operation.slot_id], now)
        if slot.is_cancelled:
            return ("SlotCancelled",)
        slot.start = MORNING + timedelta(minutes=operation.number)
        self.expire_and_promote([operation.slot_id], now)
        return ("SlotSaved",)

    def _cancel_slot(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        self.expire_and_promote([operation.slot_id], now)
        slot = self.slots[operation.slot_id]
        slot.is_cancelled = True
        self.ended_waitlist_tokens.extend(entry.token for entry in slot.waitlist)
        slot.waitlist.clear()
        return ("SlotSaved",)


def _deadline_refusal(overridden: tuple[str, ...]) -> NormalizedOutcome:
    return ("SlotStarted",) if overridden == ("slot_started",) else ("CutoffPassed",)
