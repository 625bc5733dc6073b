"""What each act has to be answered, and what becomes of the books, by the model."""

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

# What may have been done before, so that the answer uses its key up without an effect.
ALREADY_DONE_OUTCOMES = ("BookingConfirmed", "BookingCancelled", "HoldExtended")


class BookingModel(ModelState):
    """The books with a rule for every act."""

    def apply(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        """Do an act and tell its answer."""
        key = (operation.caller_id, operation.key or "")
        if operation.key and key in self.outcomes_by_key:
            asked, told = self.outcomes_by_key[key]
            return told if asked == operation.request else ("KeyReused",)
        if operation.kind.startswith("team_"):
            return apply_team_operation(self.teams, operation)
        self.has_effect = False
        rule: Callable[[PlannedOperation, datetime], NormalizedOutcome] = getattr(
            self, f"_{operation.kind}"
        )
        answer = rule(operation, now)
        # What was so already is answered as if it had just been done, and uses the key up.
        if operation.key and (self.has_effect or answer[0] in ALREADY_DONE_OUTCOMES):
            self.outcomes_by_key[key] = (operation.request, answer)
        return answer

    def _book(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        if not self._may_book_for(operation, operation.user_id):
            return ("NotTeammate",)
        self.expire_and_promote([operation.slot_id], now)
        taken = self.book_place(
            operation, operation.slot_id, operation.user_id, operation.token, now
        )
        if not isinstance(taken, ModelBooking):
            return taken
        self.has_effect = True
        answer = ("Booked", taken.as_tuple)
        self.expire_and_promote([operation.slot_id], now)
        return answer

    def _book_all(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        strangers = [not self._may_book_for(operation, person) for _, person in operation.claims]
        if any(strangers):
            return ("NoneBooked", tuple("NotTeammate" if s else None for s in strangers))
        slot_ids = sorted({slot for slot, _ in operation.claims})
        self.expire_and_promote(slot_ids, now)
        before = copy.deepcopy(self.slots)
        answers = [
            self.book_place(operation, slot, person, f"{operation.token}.{place}", now)
            for place, (slot, person) in enumerate(operation.claims)
        ]
        booked = [answer for answer in answers if isinstance(answer, ModelBooking)]
        if len(booked) < len(answers):
            self.slots = before
            why = tuple(
                None if isinstance(answer, ModelBooking) else answer[0] for answer in answers
            )
            return ("NoneBooked", why)
        self.has_effect = True
        told = ("AllBooked", tuple(place.as_tuple for place in booked))
        self.expire_and_promote(slot_ids, now)
        return told

    def _may_book_for(self, operation: PlannedOperation, user: str) -> bool:
        mates = (team.members for team in self.teams.values())
        together = any(operation.caller_id in members and user in members for members in mates)
        return operation.caller_id == user or operation.as_organizer or together

    def _confirm(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        found = self._find_after_expiry(operation, now)
        if isinstance(found[0], str):
            return found
        slot, place = self._live_booking(operation)
        if slot.is_cancelled:
            return ("SlotCancelled",)
        if place.status == "held":
            if self.violates_choice_limit(slot, place, now) and not operation.as_organizer:
                return ("LimitReached",)
            chosen = bool(self.bookings_in_same_choice(slot, place.user, now))
            over = ("one_of_choice",) * chosen
            place.history.append(
                NormalizedEntry(now, operation.caller_id, "confirmed", "confirmed", None, over)
            )
            self.has_effect = True
        return ("BookingConfirmed", place.as_tuple)

    def _extend(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        found = self._find_after_expiry(operation, now)
        if isinstance(found[0], str):
            return found
        slot, place = self._live_booking(operation)
        if slot.is_cancelled:
            return ("SlotCancelled",)
        if place.held_until is None:
            return ("NotHeld", place.as_tuple)
        until = min(slot.hold_end_for(now), place.history[0].at + MAX_HOLD)
        fixed = place.history[0].by is None or place.history[0].action == "moved"
        if until <= place.held_until or fixed or self.violates_choice_limit(slot, place, now):
            return ("HoldLimitReached", place.as_tuple)
        if until - place.held_until < timedelta(seconds=30):
            return ("HoldExtended", place.as_tuple)
        place.history.append(NormalizedEntry(now, operation.caller_id, "extended", "held", until))
        self.has_effect = True
        return ("HoldExtended", place.as_tuple)

    def _cancel(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        found = self._find_after_expiry(operation, now)
        if isinstance(found[0], str):
            _, ended = self.ended_bookings.get(operation.booking, ("", None))
            if ended and found[0] == "BookingNotFound" and self._may_change(operation, ended):
                return ("BookingCancelled", ended.as_tuple)
            return found
        slot, place = self._live_booking(operation)
        if slot.is_cancelled:
            return ("BookingCancelled", place.as_tuple)
        over = self._overridden_deadlines(slot, place, now)
        if over and not operation.as_organizer:
            return ("SlotStarted",) if over == ("slot_started",) else ("CutoffPassed",)
        self.end_booking(
            slot,
            place,
            NormalizedEntry(now, operation.caller_id, "cancelled", "cancelled", None, over),
        )
        self.has_effect = True
        self.expire_and_promote([slot.id], now)
        return ("BookingCancelled", place.as_tuple)

    def _move(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        here = self.find_live_booking(operation.booking)
        if here is None or not self._may_change(operation, here[1]):
            return self._missing_booking_outcome(operation)
        old, place = here
        self.expire_and_promote(sorted({operation.slot_id, operation.target_slot_id}), now)
        if operation.target_slot_id not in self.slots:
            return ("SlotNotFound",)
        if place.status == "expired":
            return ("HoldExpired", place.as_tuple)
        if old.is_cancelled:
            return ("SlotCancelled",)
        if operation.target_slot_id == old.id:
            return ("AlreadyBooked", place.as_tuple)
        over = self._overridden_deadlines(old, place, now)
        if over and not operation.as_organizer:
            return ("SlotStarted",) if over == ("slot_started",) else ("CutoffPassed",)
        taken = self.book_place(
            operation,
            operation.target_slot_id,
            place.user,
            operation.token,
            now,
            except_token=place.token,
        )
        if not isinstance(taken, ModelBooking):
            return taken
        new = self.slots[operation.target_slot_id]
        until = place.held_until and min(place.held_until, now + MAX_HOLD)
        if until is not None and now < new.start:
            until = min(until, new.start)
        marks = taken.history[0].overridden
        taken.history = [
            NormalizedEntry(now, operation.caller_id, "moved", place.status, until, marks)
        ]
        self.end_booking(
            old, place, NormalizedEntry(now, operation.caller_id, "moved", "cancelled", None, over)
        )
        self.has_effect = True
        answer = ("BookingMoved", taken.as_tuple, place.as_tuple)
        self.expire_and_promote(sorted({operation.slot_id, operation.target_slot_id}), now)
        return answer

    def _may_change(self, operation: PlannedOperation, booking: ModelBooking) -> bool:
        return operation.as_organizer or operation.caller_id == booking.user

    def _find_after_expiry(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        self.expire_and_promote([operation.slot_id], now)
        here = self.find_live_booking(operation.booking)
        return (
            here
            if here and self._may_change(operation, here[1])
            else self._missing_booking_outcome(operation)
        )

    def _live_booking(self, operation: PlannedOperation) -> tuple[ModelSlot, ModelBooking]:
        here = self.find_live_booking(operation.booking)
        assert here is not None
        return here

    def _missing_booking_outcome(self, operation: PlannedOperation) -> NormalizedOutcome:
        _, ended = self.ended_bookings.get(operation.booking, ("", None))
        if ended and ended.status == "expired" and self._may_change(operation, ended):
            return ("HoldExpired", ended.as_tuple)
        return ("BookingNotFound",)

    def _overridden_deadlines(
        self, slot: ModelSlot, booking: ModelBooking, now: datetime
    ) -> tuple[str, ...]:
        if booking.status == "held":
            return ()
        if now >= slot.start:
            return ("slot_started",)
        return ("cancel_cutoff",) * (now >= slot.start - slot.cutoff)

    def _join(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        slot = self.slots.get(operation.slot_id)
        if slot is None:
            return ("SlotNotFound",)
        self.expire_and_promote([operation.slot_id], now)
        mine = next((turn for turn in slot.waitlist if turn.user == operation.caller_id), None)
        place = slot.booking_of(operation.caller_id)
        answers: list[tuple[bool, NormalizedOutcome]] = [
            (slot.is_cancelled, ("SlotCancelled",)),
            (now >= slot.start, ("SlotStarted",)),
            (place is not None, ("AlreadyBooked", place and place.as_tuple)),
            (mine is not None, ("AlreadyWaiting", mine and mine.token)),
            (bool(self.bookings_in_same_choice(slot, operation.caller_id, now)), ("LimitReached",)),
            (slot.free_places > 0, ("SlotNotFull",)),
            (len(slot.waitlist) >= slot.waitlist_capacity, ("WaitlistFull",)),
        ]
        refusal = next((answer for applies, answer in answers if applies), None)
        if refusal is not None:
            return refusal
        slot.waitlist.append(ModelWaitlistEntry(operation.token, operation.caller_id, now))
        return ("WaitlistJoined", operation.token, len(slot.waitlist))

    def _leave(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        slot = self.slots.get(operation.slot_id)
        if slot is None:
            return ("SlotNotFound",)
        self.expire_and_promote([operation.slot_id], now)
        mine = next((turn for turn in slot.waitlist if turn.user == operation.caller_id), None)
        if mine is None:
            return ("NotWaiting",)
        slot.waitlist.remove(mine)
        self.ended_waitlist_tokens.append(mine.token)
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

    def _call_off(self, operation: PlannedOperation, now: datetime) -> NormalizedOutcome:
        self.expire_and_promote([operation.slot_id], now)
        slot = self.slots[operation.slot_id]
        slot.is_cancelled = True
        self.ended_waitlist_tokens.extend(turn.token for turn in slot.waitlist)
        slot.waitlist.clear()
        return ("SlotSaved",)
