"""What the desk promises, told a second time: plain lists and dictionaries, naive on purpose.

It shares no rule with slotlock. Bookings, turns in line and teams go by tokens that the acts bring
along, so that several orders of the same acts can be compared with what really happened.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tests.support.acts import Act, Answer, LogEntry
from tests.support.model_teams import TeamFacts

LONGEST_HOLD = timedelta(minutes=60)


@dataclass
class Place:
    """A booking."""

    token: str
    user: str
    log: list[LogEntry]

    @property
    def status(self) -> str:
        """Whether it is held or for good, or how it ended."""
        return self.log[-1].to

    @property
    def until(self) -> datetime | None:
        """When the hold ends."""
        return self.log[-1].until

    def ran_out(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.status == "held" and self.until is not None and self.until <= now

    @property
    def over(self) -> LogEntry:
        """What is noted once a hold's time is over."""
        assert self.until is not None
        return LogEntry(self.until, None, "expired", "expired", self.until)

    @property
    def is_gift(self) -> bool:
        """Whether an organiser gave it beyond what somebody may choose."""
        return any("one_of_choice" in entry.over for entry in self.log)

    @property
    def shown(self) -> tuple[object, ...]:
        """All that there is to say of it."""
        return (self.token, self.user, tuple(self.log))


@dataclass
class Turn:
    """Somebody in line."""

    token: str
    user: str
    since: datetime


@dataclass
class SlotFacts:
    """A slot, who is in it and who waits for it."""

    id: str
    capacity: int
    start: datetime
    hold: timedelta
    cutoff: timedelta
    longest_line: int
    offer: timedelta | None
    choice: str | None
    called_off: bool = False
    places: list[Place] = field(default_factory=list)
    line: list[Turn] = field(default_factory=list)

    @property
    def free(self) -> int:
        """Places that nobody has, as it was last settled."""
        return self.capacity - len(self.places)

    def serves(self, now: datetime) -> bool:
        """Whether those in line can still get a place."""
        return not self.called_off and now < self.start

    def hold_until(self, now: datetime) -> datetime:
        """When a hold from now on ends: with the slot's start at the latest."""
        until = now + self.hold
        return min(until, self.start) if now < self.start else until

    def of(self, user: str) -> Place | None:
        """This person's place."""
        return next((place for place in self.places if place.user == user), None)

    def due(self, now: datetime) -> bool:
        """Whether the clock has something to do here."""
        waits = self.free > 0 and bool(self.line) and self.serves(now)
        return waits or bool(self.over(now))

    def over(self, now: datetime) -> list[Place]:
        """Holds whose time is over; in a slot that was called off nothing runs out any more."""
        return [] if self.called_off else [p for p in self.places if p.ran_out(now)]

    def remaining(self, now: datetime) -> int:
        """Places that anybody may take now: those who wait come first."""
        free = self.capacity - len(self.places) + len(self.over(now))
        return free - min(free, len(self.line)) if self.serves(now) else free


@dataclass
class Books:
    """Everything that is known, and the rules that several acts share."""

    slots: dict[str, SlotFacts] = field(default_factory=dict)
    ended: dict[str, tuple[str, Place]] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    teams: dict[str, TeamFacts] = field(default_factory=dict)
    kept: dict[tuple[str, str], tuple[object, Answer]] = field(default_factory=dict)
    effect: bool = False

    def state(self) -> dict[str, object]:
        """All of it, to be compared."""
        return {
            "places": {id_: [p.shown for p in slot.places] for id_, slot in self.slots.items()},
            "lines": {
                id_: [(t.token, t.user, t.since) for t in slot.line]
                for id_, slot in self.slots.items()
            },
            "capacity": {id_: slot.capacity for id_, slot in self.slots.items()},
            "ended": {token: (slot, *p.shown) for token, (slot, p) in self.ended.items()},
            "left": sorted(self.left),
            "teams": {id_: (team.members, team.invited) for id_, team in self.teams.items()},
            "answers": len(self.kept),
        }

    def live(self, token: str) -> tuple[SlotFacts, Place] | None:
        """A booking that has not ended."""
        return next(
            ((s, p) for s in self.slots.values() for p in s.places if p.token == token), None
        )

    def end(self, slot: SlotFacts, place: Place, entry: LogEntry) -> None:
        """A place is given back."""
        slot.places.remove(place)
        place.log.append(entry)
        self.ended[place.token] = (slot.id, place)

    def settle(self, slot_ids: Iterable[str], now: datetime) -> None:
        """Holds that ran out are over, and who is first in line gets what is free."""
        slots = [self.slots[id_] for id_ in slot_ids if id_ in self.slots]
        for slot in slots:
            for place in slot.over(now):
                self.end(slot, place, place.over)
        for slot in slots:
            while slot.free > 0 and slot.line and slot.serves(now):
                self._serve(slot, slot.line.pop(0), now)

    def _serve(self, slot: SlotFacts, turn: Turn, now: datetime) -> None:
        if self.elsewhere(slot, turn.user, now):
            self.left.append(turn.token)
            return
        entry = LogEntry(now, None, "promoted", "confirmed")
        if slot.offer is not None:
            until = min(now + slot.offer, slot.start)
            entry = LogEntry(now, None, "offered", "held", until)
        slot.places.append(Place(turn.token, turn.user, [entry]))

    def elsewhere(self, slot: SlotFacts, user: str, now: datetime, but: str = "") -> list[Place]:
        """Somebody's places in other slots of the same choice."""
        return [
            place
            for other in self.slots.values()
            if slot.choice and other.choice == slot.choice
            if other.id != slot.id and not other.called_off
            for place in other.places
            if place.user == user and place.token != but and not place.ran_out(now)
        ]

    def twice_in_choice(self, slot: SlotFacts, place: Place, now: datetime) -> bool:
        """Whether a hold must not become a second place of a choice. An organiser's gift may."""
        others = self.elsewhere(slot, place.user, now)
        return not place.is_gift and not all(other.is_gift for other in others)

    def take(
        self, act: Act, slot_id: str, user: str, token: str, now: datetime, but: str = ""
    ) -> Place | Answer:
        """A new place for somebody, or why there is none."""
        slot = self.slots.get(slot_id)
        for_another = act.organises and act.by != user
        if slot is None:
            return ("SlotNotFound",)
        if slot.called_off:
            return ("SlotCancelled",)
        if now >= slot.start and not for_another:
            return ("SlotStarted",)
        if mine := slot.of(user):
            return ("AlreadyBooked", mine.shown)
        chosen = bool(self.elsewhere(slot, user, now, but))
        if chosen and not for_another:
            return ("LimitReached",)
        if slot.free <= 0:
            return ("SlotFull",)
        over = ("slot_started",) * (now >= slot.start) + ("one_of_choice",) * chosen
        entry = LogEntry(now, act.by, "booked", "confirmed", None, over)
        if act.hold:
            entry = LogEntry(now, act.by, "held", "held", slot.hold_until(now), over)
        place = Place(token, user, [entry])
        slot.places.append(place)
        for turn in [turn for turn in slot.line if turn.user == user]:
            slot.line.remove(turn)
            self.left.append(turn.token)
        return place
