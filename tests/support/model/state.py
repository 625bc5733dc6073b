"""What the desk promises, told a second time: plain lists and dictionaries, naive on purpose.

It shares no rule with slotlock. Bookings, turns in line and teams go by tokens that the acts bring
along, so that several orders of the same acts can be compared with what really happened.
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
        """Whether it is held or for good, or how it ended."""
        return self.history[-1].status

    @property
    def held_until(self) -> datetime | None:
        """When the hold ends."""
        return self.history[-1].held_until

    def is_expired_at(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.status == "held" and self.held_until is not None and self.held_until <= now

    @property
    def expiry_entry(self) -> NormalizedEntry:
        """What is noted once a hold's time is over."""
        assert self.held_until is not None
        return NormalizedEntry(self.held_until, None, "expired", "expired", self.held_until)

    @property
    def exceeds_choice_limit(self) -> bool:
        """Whether an organiser gave it beyond what somebody may choose."""
        return any("one_of_choice" in entry.overridden for entry in self.history)

    @property
    def as_tuple(self) -> tuple[object, ...]:
        """All that there is to say of it."""
        return (self.token, self.user, tuple(self.history))


@dataclass
class ModelWaitlistEntry:
    """Somebody in line."""

    token: str
    user: str
    since: datetime


@dataclass
class ModelSlot:
    """A slot, who is in it and who waits for it."""

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
        """Places that nobody has, as it was last settled."""
        return self.capacity - len(self.bookings)

    def can_promote_at(self, now: datetime) -> bool:
        """Whether those in line can still get a place."""
        return not self.is_cancelled and now < self.start

    def hold_end_for(self, now: datetime) -> datetime:
        """When a hold from now on ends: with the slot's start at the latest."""
        until = now + self.hold_duration
        return min(until, self.start) if now < self.start else until

    def booking_of(self, user: str) -> ModelBooking | None:
        """This person's place."""
        return next((place for place in self.bookings if place.user == user), None)

    def needs_sweep_at(self, now: datetime) -> bool:
        """Whether the clock has something to do here."""
        waits = self.free_places > 0 and bool(self.waitlist) and self.can_promote_at(now)
        return waits or bool(self.expired_bookings(now))

    def expired_bookings(self, now: datetime) -> list[ModelBooking]:
        """Holds whose time is over; in a slot that was called off nothing runs out any more."""
        return [] if self.is_cancelled else [p for p in self.bookings if p.is_expired_at(now)]

    def remaining(self, now: datetime) -> int:
        """Places that anybody may take now: those who wait come first."""
        free = self.capacity - len(self.bookings) + len(self.expired_bookings(now))
        return free - min(free, len(self.waitlist)) if self.can_promote_at(now) else free


@dataclass
class ModelState:
    """Everything that is known, and the rules that several acts share."""

    slots: dict[str, ModelSlot] = field(default_factory=dict)
    ended_bookings: dict[str, tuple[str, ModelBooking]] = field(default_factory=dict)
    ended_waitlist_tokens: list[str] = field(default_factory=list)
    teams: dict[str, ModelTeam] = field(default_factory=dict)
    outcomes_by_key: dict[tuple[str, str], tuple[object, NormalizedOutcome]] = field(
        default_factory=dict
    )
    has_effect: bool = False

    def snapshot(self) -> dict[str, object]:
        """All of it, to be compared."""
        return {
            "places": {
                id_: [p.as_tuple for p in slot.bookings] for id_, slot in self.slots.items()
            },
            "lines": {
                id_: [(t.token, t.user, t.since) for t in slot.waitlist]
                for id_, slot in self.slots.items()
            },
            "capacity": {id_: slot.capacity for id_, slot in self.slots.items()},
            "ended": {
                token: (slot, *p.as_tuple) for token, (slot, p) in self.ended_bookings.items()
            },
            "left": sorted(self.ended_waitlist_tokens),
            "teams": {id_: (team.members, team.invited) for id_, team in self.teams.items()},
            "answers": len(self.outcomes_by_key),
        }

    def find_live_booking(self, token: str) -> tuple[ModelSlot, ModelBooking] | None:
        """A booking that has not ended."""
        return next(
            ((s, p) for s in self.slots.values() for p in s.bookings if p.token == token), None
        )

    def end_booking(self, slot: ModelSlot, booking: ModelBooking, entry: NormalizedEntry) -> None:
        """A place is given back."""
        slot.bookings.remove(booking)
        booking.history.append(entry)
        self.ended_bookings[booking.token] = (slot.id, booking)

    def expire_and_promote(self, slot_ids: Iterable[str], now: datetime) -> None:
        """Holds that ran out are over, and who is first in line gets what is free."""
        slots = [self.slots[id_] for id_ in slot_ids if id_ in self.slots]
        for slot in slots:
            for place in slot.expired_bookings(now):
                self.end_booking(slot, place, place.expiry_entry)
        for slot in slots:
            while slot.free_places > 0 and slot.waitlist and slot.can_promote_at(now):
                self._promote(slot, slot.waitlist.pop(0), now)

    def _promote(self, slot: ModelSlot, waitlist_entry: ModelWaitlistEntry, now: datetime) -> None:
        if self.bookings_in_same_choice(slot, waitlist_entry.user, now):
            self.ended_waitlist_tokens.append(waitlist_entry.token)
            return
        entry = NormalizedEntry(now, None, "promoted", "confirmed")
        if slot.offer_duration is not None:
            until = min(now + slot.offer_duration, slot.start)
            entry = NormalizedEntry(now, None, "offered", "held", until)
        slot.bookings.append(ModelBooking(waitlist_entry.token, waitlist_entry.user, [entry]))

    def bookings_in_same_choice(
        self, slot: ModelSlot, user: str, now: datetime, except_token: str = ""
    ) -> list[ModelBooking]:
        """Somebody's places in other slots of the same choice."""
        return [
            place
            for other in self.slots.values()
            if slot.choice_group and other.choice_group == slot.choice_group
            if other.id != slot.id and not other.is_cancelled
            for place in other.bookings
            if place.user == user and place.token != except_token and not place.is_expired_at(now)
        ]

    def violates_choice_limit(self, slot: ModelSlot, booking: ModelBooking, now: datetime) -> bool:
        """Whether a hold must not become a second place of a choice. An organiser's gift may."""
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
        """A new place for somebody, or why there is none."""
        slot = self.slots.get(slot_id)
        for_another = operation.as_organizer and operation.caller_id != user
        if slot is None:
            return ("SlotNotFound",)
        if slot.is_cancelled:
            return ("SlotCancelled",)
        if now >= slot.start and not for_another:
            return ("SlotStarted",)
        if mine := slot.booking_of(user):
            return ("AlreadyBooked", mine.as_tuple)
        chosen = bool(self.bookings_in_same_choice(slot, user, now, except_token))
        if chosen and not for_another:
            return ("LimitReached",)
        if slot.free_places <= 0:
            return ("SlotFull",)
        over = ("slot_started",) * (now >= slot.start) + ("one_of_choice",) * chosen
        entry = NormalizedEntry(now, operation.caller_id, "booked", "confirmed", None, over)
        if operation.hold:
            entry = NormalizedEntry(
                now, operation.caller_id, "held", "held", slot.hold_end_for(now), over
            )
        place = ModelBooking(token, user, [entry])
        slot.bookings.append(place)
        for turn in [turn for turn in slot.waitlist if turn.user == user]:
            slot.waitlist.remove(turn)
            self.ended_waitlist_tokens.append(turn.token)
        return place
