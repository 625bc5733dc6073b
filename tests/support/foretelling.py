"""What each act has to be answered, and what becomes of the books, by the model."""

import copy
from collections.abc import Callable
from datetime import datetime, timedelta

from tests.support.acts import MORNING, Act, Answer, LogEntry
from tests.support.model import LONGEST_HOLD, Books, Place, SlotFacts, Turn
from tests.support.model_teams import team_answer

# What may have been done before, so that the answer uses its key up without an effect.
DONE = ("BookingConfirmed", "BookingCancelled", "HoldExtended")


class Model(Books):
    """The books with a rule for every act."""

    def apply(self, act: Act, now: datetime) -> Answer:
        """Do an act and tell its answer."""
        key = (act.by, act.key or "")
        if act.key and key in self.kept:
            asked, told = self.kept[key]
            return told if asked == act.asked else ("KeyReused",)
        if act.verb.startswith("team_"):
            return team_answer(self.teams, act)
        self.effect = False
        rule: Callable[[Act, datetime], Answer] = getattr(self, f"_{act.verb}")
        answer = rule(act, now)
        # What was so already is answered as if it had just been done, and uses the key up.
        if act.key and (self.effect or answer[0] in DONE):
            self.kept[key] = (act.asked, answer)
        return answer

    def _book(self, act: Act, now: datetime) -> Answer:
        if not self._may_book_for(act, act.person):
            return ("NotTeammate",)
        self.settle([act.slot], now)
        taken = self.take(act, act.slot, act.person, act.token, now)
        if not isinstance(taken, Place):
            return taken
        self.effect = True
        answer = ("Booked", taken.shown)
        self.settle([act.slot], now)
        return answer

    def _book_all(self, act: Act, now: datetime) -> Answer:
        strangers = [not self._may_book_for(act, person) for _, person in act.claims]
        if any(strangers):
            return ("NoneBooked", tuple("NotTeammate" if s else None for s in strangers))
        slot_ids = sorted({slot for slot, _ in act.claims})
        self.settle(slot_ids, now)
        before = copy.deepcopy(self.slots)
        answers = [
            self.take(act, slot, person, f"{act.token}.{place}", now)
            for place, (slot, person) in enumerate(act.claims)
        ]
        booked = [answer for answer in answers if isinstance(answer, Place)]
        if len(booked) < len(answers):
            self.slots = before
            why = tuple(None if isinstance(answer, Place) else answer[0] for answer in answers)
            return ("NoneBooked", why)
        self.effect = True
        told = ("AllBooked", tuple(place.shown for place in booked))
        self.settle(slot_ids, now)
        return told

    def _may_book_for(self, act: Act, person: str) -> bool:
        mates = (team.members for team in self.teams.values())
        together = any(act.by in members and person in members for members in mates)
        return act.by == person or act.organises or together

    def _confirm(self, act: Act, now: datetime) -> Answer:
        found = self._touched(act, now)
        if isinstance(found[0], str):
            return found
        slot, place = self._live(act)
        if slot.called_off:
            return ("SlotCancelled",)
        if place.status == "held":
            if self.twice_in_choice(slot, place, now) and not act.organises:
                return ("LimitReached",)
            chosen = bool(self.elsewhere(slot, place.user, now))
            over = ("one_of_choice",) * chosen
            place.log.append(LogEntry(now, act.by, "confirmed", "confirmed", None, over))
            self.effect = True
        return ("BookingConfirmed", place.shown)

    def _extend(self, act: Act, now: datetime) -> Answer:
        found = self._touched(act, now)
        if isinstance(found[0], str):
            return found
        slot, place = self._live(act)
        if slot.called_off:
            return ("SlotCancelled",)
        if place.until is None:
            return ("NotHeld", place.shown)
        until = min(slot.hold_until(now), place.log[0].at + LONGEST_HOLD)
        fixed = place.log[0].by is None or place.log[0].deed == "moved"
        if until <= place.until or fixed or self.twice_in_choice(slot, place, now):
            return ("HoldLimitReached", place.shown)
        if until - place.until < timedelta(seconds=30):
            return ("HoldExtended", place.shown)
        place.log.append(LogEntry(now, act.by, "extended", "held", until))
        self.effect = True
        return ("HoldExtended", place.shown)

    def _cancel(self, act: Act, now: datetime) -> Answer:
        found = self._touched(act, now)
        if isinstance(found[0], str):
            _, ended = self.ended.get(act.booking, ("", None))
            if ended and found[0] == "BookingNotFound" and self._touches(act, ended):
                return ("BookingCancelled", ended.shown)
            return found
        slot, place = self._live(act)
        if slot.called_off:
            return ("BookingCancelled", place.shown)
        over = self._late(slot, place, now)
        if over and not act.organises:
            return ("SlotStarted",) if over == ("slot_started",) else ("CutoffPassed",)
        self.end(slot, place, LogEntry(now, act.by, "cancelled", "cancelled", None, over))
        self.effect = True
        self.settle([slot.id], now)
        return ("BookingCancelled", place.shown)

    def _move(self, act: Act, now: datetime) -> Answer:
        here = self.live(act.booking)
        if here is None or not self._touches(act, here[1]):
            return self._gone(act)
        old, place = here
        self.settle(sorted({act.slot, act.to}), now)
        if act.to not in self.slots:
            return ("SlotNotFound",)
        if place.status == "expired":
            return ("HoldExpired", place.shown)
        if old.called_off:
            return ("SlotCancelled",)
        if act.to == old.id:
            return ("AlreadyBooked", place.shown)
        over = self._late(old, place, now)
        if over and not act.organises:
            return ("SlotStarted",) if over == ("slot_started",) else ("CutoffPassed",)
        taken = self.take(act, act.to, place.user, act.token, now, but=place.token)
        if not isinstance(taken, Place):
            return taken
        new = self.slots[act.to]
        until = place.until and min(place.until, now + LONGEST_HOLD)
        if until is not None and now < new.start:
            until = min(until, new.start)
        marks = taken.log[0].over
        taken.log = [LogEntry(now, act.by, "moved", place.status, until, marks)]
        self.end(old, place, LogEntry(now, act.by, "moved", "cancelled", None, over))
        self.effect = True
        answer = ("BookingMoved", taken.shown, place.shown)
        self.settle(sorted({act.slot, act.to}), now)
        return answer

    def _touches(self, act: Act, place: Place) -> bool:
        return act.organises or act.by == place.user

    def _touched(self, act: Act, now: datetime) -> Answer:
        self.settle([act.slot], now)
        here = self.live(act.booking)
        return here if here and self._touches(act, here[1]) else self._gone(act)

    def _live(self, act: Act) -> tuple[SlotFacts, Place]:
        here = self.live(act.booking)
        assert here is not None
        return here

    def _gone(self, act: Act) -> Answer:
        _, ended = self.ended.get(act.booking, ("", None))
        if ended and ended.status == "expired" and self._touches(act, ended):
            return ("HoldExpired", ended.shown)
        return ("BookingNotFound",)

    def _late(self, slot: SlotFacts, place: Place, now: datetime) -> tuple[str, ...]:
        if place.status == "held":
            return ()
        if now >= slot.start:
            return ("slot_started",)
        return ("cancel_cutoff",) * (now >= slot.start - slot.cutoff)

    def _join(self, act: Act, now: datetime) -> Answer:
        slot = self.slots.get(act.slot)
        if slot is None:
            return ("SlotNotFound",)
        self.settle([act.slot], now)
        mine = next((turn for turn in slot.line if turn.user == act.by), None)
        place = slot.of(act.by)
        answers: list[tuple[bool, Answer]] = [
            (slot.called_off, ("SlotCancelled",)),
            (now >= slot.start, ("SlotStarted",)),
            (place is not None, ("AlreadyBooked", place and place.shown)),
            (mine is not None, ("AlreadyWaiting", mine and mine.token)),
            (bool(self.elsewhere(slot, act.by, now)), ("LimitReached",)),
            (slot.free > 0, ("PlacesLeft",)),
            (len(slot.line) >= slot.longest_line, ("WaitlistFull",)),
        ]
        refusal = next((answer for applies, answer in answers if applies), None)
        if refusal is not None:
            return refusal
        slot.line.append(Turn(act.token, act.by, now))
        return ("WaitlistJoined", act.token, len(slot.line))

    def _leave(self, act: Act, now: datetime) -> Answer:
        slot = self.slots.get(act.slot)
        if slot is None:
            return ("SlotNotFound",)
        self.settle([act.slot], now)
        mine = next((turn for turn in slot.line if turn.user == act.by), None)
        if mine is None:
            return ("NotWaiting",)
        slot.line.remove(mine)
        self.left.append(mine.token)
        return ("WaitlistLeft",)

    def _edit(self, act: Act, now: datetime) -> Answer:
        slot = self.slots[act.slot]
        self.settle([act.slot], now)
        if slot.called_off:
            return ("SlotCancelled",)
        if act.number < len(slot.places):
            return ("CapacityBelowTaken",)
        slot.capacity = act.number
        self.settle([act.slot], now)
        return ("SlotKept",)

    def _postpone(self, act: Act, now: datetime) -> Answer:
        slot = self.slots[act.slot]
        self.settle([act.slot], now)
        if slot.called_off:
            return ("SlotCancelled",)
        slot.start = MORNING + timedelta(minutes=act.number)
        self.settle([act.slot], now)
        return ("SlotKept",)

    def _call_off(self, act: Act, now: datetime) -> Answer:
        self.settle([act.slot], now)
        slot = self.slots[act.slot]
        slot.called_off = True
        self.left.extend(turn.token for turn in slot.line)
        slot.line.clear()
        return ("SlotKept",)
