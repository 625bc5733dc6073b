"""The state of the model: a second, deliberately naive implementation of the booking rules.

It shares no rule with slotlock. Operations bring tokens for the bookings, waitlist entries and
teams they create, so that several orders of the same operations can be compared with reality.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.support.model.operations import NormalizedEntry, NormalizedOutcome, PlannedOperation
from tests.support.model.teams import ModelTeam

MAX_HOLD = timedelta(minutes=60)


@dataclass
class ModelBooking:
    """A booking."""

    token: str
    user: str
    history: list[NormalizedEntry]

    @property
    def status(self) -> str:
        """The status after the last history entry."""
        return self.history[-1].status

    @property
    def held_until(self) -> datetime | None:
        """The end of the hold, or None if the booking is not held."""
        return self.history[-1].held_until

    def is_expired_at(self, now: datetime) -> bool:
        """Return whether the booking is a hold that has expired."""
        return self.status == "held" and self.held_until is not None and self.held_until <= now

    @property
    def expiry_entry(self) -> NormalizedEntry:
        """The history entry of the hold's expiry."""
        assert self.held_until is not None
        return NormalizedEntry(self.held_until, None, "expired", "expired", self.held_until)

    @property
    def exceeds_choice_limit(self) -> bool:
        """Whether an organizer overrode the choice limit for this booking."""
        return any("one_of_choice" in entry.overridden for entry in self.history)

    @property
    def as_tuple(self) -> tuple[object, ...]:
        """The booking as a tuple that can be compared."""
        return (self.token, self.user, tuple(self.history))


@dataclass
class ModelWaitlistEntry:
    """An entry in a waitlist."""

    token: str
    user: str
    since: datetime


@dataclass
class ModelSlot:
    """A slot with its bookings and its waitlist."""

    id: str
    capacity: int
    start: datetime
    hold_duration: timedelta
    cutoff: timedelta
    waitlist_capacity: int
    offer_duration: timedelta | None
    choice_group: str | None
    is_cancelled: bool = False
    bookings: list[ModelBooking] = field(default_factory=list)
    waitlist: list[ModelWaitlistEntry] = field(default_factory=list)

    @property
    def free_places(self) -> int:
        """The number of places without a booking, expired holds included."""
        return self.capacity - len(self.bookings)

    def can_promote_at(self, now: datetime) -> bool:
        """Return whether the slot can still promote from its waitlist."""
        return not self.is_cancelled and now < self.start

    def hold_end_for(self, now: datetime) -> datetime:
        """Return the end of a hold that begins now: at the latest the start of the slot."""
        held_until = now + self.hold_duration
        return min(held_until, self.start) if now < self.start else held_until

    def booking_of(self, user: str) -> ModelBooking | None:
        """Return the live booking of a user."""
        return next((booking for booking in self.bookings if booking.user == user), None)

    def waitlist_entry_of(self, user: str) -> ModelWaitlistEntry | None:
        """Return the waitlist entry of a user."""
        return next((entry for entry in self.waitlist if entry.user == user), None)

    def overridden_deadlines(self, booking: ModelBooking, now: datetime) -> tuple[str, ...]:
        """Return the deadline that an organizer overrides by ending this booking now."""
        if booking.status == "held":
            return ()
        if now >= self.start:
            return ("slot_started",)
        return ("cancel_cutoff",) * (now >= self.start - self.cutoff)

    def needs_sweep_at(self, now: datetime) -> bool:
        """Return whether a sweep would change the slot."""
        can_promote = self.free_places > 0 and bool(self.waitlist) and self.can_promote_at(now)
        ends_waitlist = bool(self.waitlist) and now >= self.start
        return can_promote or ends_waitlist or bool(self.expired_bookings(now))

    def expired_bookings(self, now: datetime) -> list[ModelBooking]:
        """Return the expired holds. In a cancelled slot no hold expires."""
        return [] if self.is_cancelled else [p for p in self.bookings if p.is_expired_at(now)]

    def live_bookings(self, now: datetime) -> list[ModelBooking]:
        """Return the bookings without the expired holds."""
        expired = self.expired_bookings(now)
        return [booking for booking in self.bookings if booking not in expired]

    def remaining(self, now: datetime) -> int:
        """Return the number of places that are left after the waitlist is promoted."""
        free = self.capacity - len(self.bookings) + len(self.expired_bookings(now))
        return free - min(free, len(self.waitlist)) if self.can_promote_at(now) else free


@dataclass
class ModelState:
    """The state of all slots and teams, with the rules that several operations share."""

    slots: dict[str, ModelSlot] = field(default_factory=dict)
    ended_bookings: dict[str, tuple[str, ModelBooking]] = field(default_factory=dict)
    ended_waitlist_tokens: list[str] = field(default_factory=list)
    teams: dict[str, ModelTeam] = field(default_factory=dict)
    outcomes_by_key: dict[tuple[str, str], tuple[object, NormalizedOutcome]] = field(
        default_factory=dict
    )
    has_effect: bool = False

    def snapshot(self) -> dict[str, object]:
        """Return the whole state in a form that can be compared with the stored state."""
        return {
            "bookings": {
                id_: [p.as_tuple for p in slot.bookings] for id_, slot in self.slots.items()
            },
            "waitlists": {
                id_: [(t.token, t.user, t.since) for t in slot.waitlist]
                for id_, slot in self.slots.items()
            },
            "capacity": {id_: slot.capacity for id_, slot in self.slots.items()},
            "ended_bookings": {
                token: (slot, *p.as_tuple) for token, (slot, p) in self.ended_bookings.items()
            },
            "ended_waitlist_entries": sorted(self.ended_waitlist_tokens),
            "teams": {id_: (team.members, team.invited) for id_, team in self.teams.items()},
            "idempotency_records": len(self.outcomes_by_key),
        }

    def find_live_booking(self, token: str) -> tuple[ModelSlot, ModelBooking] | None:
        """Return a live booking and its slot, if the booking has not ended."""
        return next(
            ((s, p) for s in self.slots.values() for p in s.bookings if p.token == token), None
        )

    def end_booking(self, slot: ModelSlot, booking: ModelBooking, entry: NormalizedEntry) -> None:
        """End a booking with this history entry and free its place."""
        slot.bookings.remove(booking)
        booking.history.append(entry)
        self.ended_bookings[booking.token] = (slot.id, booking)

    def expire_and_promote(self, slot_ids: Iterable[str], now: datetime) -> None:
        """Expire holds in these slots, then promote the waitlists to the free places."""
        slots = [self.slots[id_] for id_ in slot_ids if id_ in self.slots]
        for slot in slots:
            for booking in slot.expired_bookings(now):
                self.end_booking(slot, booking, booking.expiry_entry)
        for slot in slots:
            while slot.free_places > 0 and slot.waitlist and slot.can_promote_at(now):
                self._promote(slot, slot.waitlist.pop(0), now)

    def end_waitlists(self, slot_ids: Iterable[str], now: datetime) -> None:
        """End the waitlists of those of these slots that have started."""
        for slot in (self.slots[id_] for id_ in slot_ids):
            if now >= slot.start:
                self.ended_waitlist_tokens += [entry.token for entry in slot.waitlist]
                slot.waitlist.clear()

    def _promote(self, slot: ModelSlot, waitlist_entry: ModelWaitlistEntry, now: datetime) -> None:
        if self.bookings_in_same_choice(slot, waitlist_entry.user, now):
            self.ended_waitlist_tokens.append(waitlist_entry.token)
            return
        entry = NormalizedEntry(now, None, "promoted", "confirmed")
        if slot.offer_duration is not None:
            held_until = min(now + slot.offer_duration, slot.start)
            entry = NormalizedEntry(now, None, "offered", "held", held_until)
        slot.bookings.append(ModelBooking(waitlist_entry.token, waitlist_entry.user, [entry]))

    def bookings_in_same_choice(
        self, slot: ModelSlot, user: str, now: datetime, except_token: str = ""
    ) -> list[ModelBooking]:
        """Return a user's live bookings in the other slots of the same choice group."""
        return [
            booking
            for other in self.slots.values()
            if slot.choice_group and other.choice_group == slot.choice_group
            if other.id != slot.id and not other.is_cancelled
            for booking in other.bookings
            if booking.user == user and booking.token != except_token
            if not booking.is_expired_at(now)
        ]

    def violates_choice_limit(self, slot: ModelSlot, booking: ModelBooking, now: datetime) -> bool:
        """Return whether a hold violates the choice limit. Overridden bookings do not count."""
        others = self.bookings_in_same_choice(slot, booking.user, now)
        return not booking.exceeds_choice_limit and not all(
            other.exceeds_choice_limit for other in others
        )

    def book_place(
        self,
        operation: PlannedOperation,
        slot_id: str,
        user: str,
        token: str,
        now: datetime,
        except_token: str = "",
    ) -> ModelBooking | NormalizedOutcome:
        """Book a place for a user and return the booking, or the outcome of the refusal."""
        slot = self.slots.get(slot_id)
        for_another = operation.as_organizer and operation.caller_id != user
        if slot is None:
            return ("SlotNotFound",)
        if slot.is_cancelled:
            return ("SlotCancelled",)
        if now >= slot.start and not for_another:
            return ("SlotStarted",)
        if existing := slot.booking_of(user):
            return ("AlreadyBooked", existing.as_tuple)
        has_other_choice = bool(self.bookings_in_same_choice(slot, user, now, except_token))
        if has_other_choice and not for_another:
            return ("LimitReached",)
        if slot.free_places <= 0:
            return ("SlotFull",)
        overridden = ("slot_started",) * (now >= slot.start)
        overridden += ("one_of_choice",) * has_other_choice
        entry = NormalizedEntry(now, operation.caller_id, "booked", "confirmed", None, overridden)
        if operation.hold:
            entry = NormalizedEntry(
                now, operation.caller_id, "held", "held", slot.hold_end_for(now), overridden
            )
        booking = ModelBooking(token, user, [entry])
        slot.bookings.append(booking)
        for waitlist_entry in [each for each in slot.waitlist if each.user == user]:
            slot.waitlist.remove(waitlist_entry)
            self.ended_waitlist_tokens.append(waitlist_entry.token)
        return booking
