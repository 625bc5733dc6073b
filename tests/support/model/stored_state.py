"""What MongoDB says, read past the app: as the model would say it, and whether it is whole."""

from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import Any

from bson import ObjectId

from tests.support.clients.client import Json
from tests.support.model.operations import NormalizedEntry
from tests.support.model.service_pair import ServicePair

# What may follow what in the record of a booking.
FIRST_ACTIONS = {"booked", "held", "promoted", "offered", "moved"}
NEXT_ACTIONS = {
    "held": {"confirmed", "extended", "cancelled", "moved", "expired"},
    "confirmed": {"cancelled", "moved"},
}


class StoredState:
    """One reading of everything, with the tokens of the ids that were answered so far."""

    def __init__(self, pair: ServicePair, tokens: dict[str, str]) -> None:
        def load_all(name: str) -> list[Json]:
            return list(pair.database[name].find().sort("_id", 1))

        self._tokens = tokens
        self._user_ids_by_email = {email: user_id for user_id, email in pair.emails.items()}
        self.slots, self.ended_bookings = load_all("slots"), load_all("ended_bookings")
        self.ended_waitlist_entries, self.teams = (
            load_all("ended_waitlist_entries"),
            load_all("teams"),
        )
        self.idempotency_records = load_all("idempotency_records")

    def token_for(self, id_: ObjectId) -> str:
        """The token of what was answered; what nobody was told of must not be there."""
        assert str(id_) in self._tokens, f"{id_} was written, and nobody was told of it"
        return self._tokens[str(id_)]

    def snapshot(self) -> dict[str, object]:
        """All of it, to be compared with the model's."""
        slots = {str(slot["_id"]): slot for slot in self.slots}
        return {
            "places": {
                id_: [self._booking_tuple(booking) for booking in slot["bookings"]]
                for id_, slot in slots.items()
            },
            "lines": {
                id_: [
                    (self.token_for(t["id"]), str(t["user"]), t["since"]) for t in slot["waitlist"]
                ]
                for id_, slot in slots.items()
            },
            "capacity": {id_: slot["capacity"] for id_, slot in slots.items()},
            "ended": {
                self.token_for(booking["_id"]): (
                    str(booking["slot"]),
                    *self._booking_tuple(booking),
                )
                for booking in self.ended_bookings
            },
            "left": sorted(self.token_for(turn["_id"]) for turn in self.ended_waitlist_entries),
            "teams": {
                self.token_for(team["_id"]): (
                    [str(member["user"]) for member in team["members"]],
                    [
                        self._user_ids_by_email[invitation["email"]]
                        for invitation in team["invitations"]
                    ],
                )
                for team in self.teams
            },
            "answers": len(self.idempotency_records),
        }

    def _booking_tuple(self, booking: Json) -> tuple[object, ...]:
        token = self.token_for(booking.get("id") or booking["_id"])
        return (token, str(booking["user"]), booking_history(booking))

    def assert_consistent(self, now: datetime) -> None:
        """What must be so whatever happened, by itself and without any model."""
        for slot in self.slots:
            assert_valid_slot(slot, now)
        for booking in self.ended_bookings:
            log = booking_history(booking)
            assert_valid_history(log)
            assert log[-1].status in ("cancelled", "expired"), booking
            assert log[-1].at == booking["endedAt"], booking
        assert_one_per_choice_group(self.slots, now)

    def assert_acknowledged_present(self, acknowledged: dict[str, tuple[str, str]]) -> None:
        """Every booking that somebody was told of is there, or there is a record of its end."""
        there = {
            str(booking["id"]): (str(slot["_id"]), str(booking["user"]))
            for slot in self.slots
            for booking in slot["bookings"]
        }
        past = {str(b["_id"]): (str(b["slot"]), str(b["user"])) for b in self.ended_bookings}
        assert not there.keys() & past.keys(), "a booking is both live and over"
        for id_, whose in acknowledged.items():
            assert (there | past).get(id_) == whose, f"{self._tokens[id_]} is lost"
        for answer in self.idempotency_records:
            for id_ in recorded_booking_ids(answer["outcome"]):
                assert id_ in there or id_ in past, f"an answer without its effect: {answer}"


def booking_history(booking: Json) -> tuple[NormalizedEntry, ...]:
    """The record of a booking; a plain one needs none."""
    if "history" not in booking:
        return (NormalizedEntry(booking["at"], str(booking["user"]), "booked", "confirmed"),)
    return tuple(
        NormalizedEntry(
            entry["at"],
            entry["by"] and str(entry["by"]),
            entry["action"],
            entry["status"],
            entry.get("heldUntil"),
            tuple(entry.get("overriddenLimits", ())),
        )
        for entry in booking["history"]
    )


def assert_valid_slot(slot: Json, now: datetime) -> None:
    """Never above capacity, nobody twice, no free place beside somebody who waits for it."""
    bookings = slot["bookings"]
    live = [b for b in bookings if "heldUntil" not in b or b["heldUntil"] > now]
    assert len(live) <= len(bookings) <= slot["capacity"], f"above capacity: {slot}"
    assert slot["remaining"] == slot["capacity"] - len(bookings), f"miscounted: {slot}"
    people = Counter(str(b["user"]) for b in bookings)
    line = Counter(str(turn["user"]) for turn in slot["waitlist"])
    assert not (people + line) or max([*people.values(), *line.values()]) == 1, f"twice: {slot}"
    if slot["status"] == "published" and slot["changedAt"] < slot["start"]:
        assert not (slot["remaining"] and slot["waitlist"]), f"free beside waiting: {slot}"
    for booking in bookings:
        log = booking_history(booking)
        assert_valid_history(log)
        assert log[-1].status in ("held", "confirmed"), slot
        assert log[-1].held_until == booking.get("heldUntil"), slot
    if slot["status"] != "cancelled":  # whose bookings ended with it
        times = [until for b in bookings if (until := b.get("heldUntil"))]
        assert not times or slot["nextDeadline"] <= min(times), f"nobody will sweep this: {slot}"


def assert_valid_history(history: tuple[NormalizedEntry, ...]) -> None:
    """Who, when, what, before and after, without a gap."""
    assert history[0].action in FIRST_ACTIONS, history
    for before, entry in pairwise(history):
        assert entry.action in NEXT_ACTIONS[before.status], history
        assert before.at <= entry.at, history
        assert entry.by is not None or entry.action == "expired", history
    assert all(
        (entry.held_until is None) == (entry.status not in ("held", "expired")) for entry in history
    ), history


def assert_one_per_choice_group(slots: list[Json], now: datetime) -> None:
    """One place of a choice each, but those an organiser gave beyond it, which say so."""
    chosen = Counter(
        (slot["choiceGroup"], str(booking["user"]))
        for slot in slots
        if slot["choiceGroup"] and slot["status"] != "cancelled"
        for booking in slot["bookings"]
        if "heldUntil" not in booking or booking["heldUntil"] > now
        if not any("one_of_choice" in entry.overridden for entry in booking_history(booking))
    )
    assert max(chosen.values(), default=1) == 1, f"two of a choice: {chosen}"


def recorded_booking_ids(outcome: Any) -> list[str]:
    """The ids of the bookings that a kept answer is about, but not of those it tells of aside."""
    booked = [each["booking"] for each in outcome.get("booked", ())]
    mine = [outcome[name] for name in ("booking", "old_booking") if name in outcome]
    return [booking["id"] for booking in (*booked, *mine)]
