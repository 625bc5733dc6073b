"""What MongoDB says, read past the app: as the model would say it, and whether it is whole."""

from collections import Counter
from datetime import datetime
from itertools import pairwise
from typing import Any

from bson import ObjectId

from tests.support.acts import LogEntry
from tests.support.desks import House

Json = dict[str, Any]

# What may follow what in the record of a booking.
BEGINS = {"booked", "held", "promoted", "offered", "moved"}
FOLLOWS = {
    "held": {"confirmed", "extended", "cancelled", "moved", "expired"},
    "confirmed": {"cancelled", "moved"},
}


class Truth:
    """One reading of everything, with the tokens of the ids that were answered so far."""

    def __init__(self, house: House, tokens: dict[str, str]) -> None:
        def all_of(name: str) -> list[Json]:
            return list(house.truth[name].find().sort("_id", 1))

        self._tokens = tokens
        self._people = {email: user_id for user_id, email in house.emails.items()}
        self.slots, self.ended = all_of("slots"), all_of("endedBookings")
        self.left, self.teams = all_of("endedWaits"), all_of("teams")
        self.answers = all_of("answers")

    def token(self, id_: ObjectId) -> str:
        """The token of what was answered; what nobody was told of must not be there."""
        assert str(id_) in self._tokens, f"{id_} was written, and nobody was told of it"
        return self._tokens[str(id_)]

    def state(self) -> dict[str, object]:
        """All of it, to be compared with the model's."""
        slots = {str(slot["_id"]): slot for slot in self.slots}
        return {
            "places": {
                id_: [self._shown(booking) for booking in slot["bookings"]]
                for id_, slot in slots.items()
            },
            "lines": {
                id_: [(self.token(t["id"]), str(t["user"]), t["at"]) for t in slot["waiting"]]
                for id_, slot in slots.items()
            },
            "capacity": {id_: slot["capacity"] for id_, slot in slots.items()},
            "ended": {
                self.token(booking["_id"]): (str(booking["slot"]), *self._shown(booking))
                for booking in self.ended
            },
            "left": sorted(self.token(turn["_id"]) for turn in self.left),
            "teams": {
                self.token(team["_id"]): (
                    [str(member["user"]) for member in team["members"]],
                    [self._people[invitation["email"]] for invitation in team["invitations"]],
                )
                for team in self.teams
            },
            "answers": len(self.answers),
        }

    def _shown(self, booking: Json) -> tuple[object, ...]:
        token = self.token(booking.get("id") or booking["_id"])
        return (token, str(booking["user"]), log_of(booking))

    def assert_whole(self, now: datetime) -> None:
        """What must be so whatever happened, by itself and without any model."""
        for slot in self.slots:
            assert_slot_whole(slot, now)
        for booking in self.ended:
            log = log_of(booking)
            assert_explained(log)
            assert log[-1].to in ("cancelled", "expired"), booking
            assert log[-1].at == booking["endedAt"], booking
        assert_one_of_a_choice(self.slots, now)

    def assert_kept(self, acknowledged: dict[str, tuple[str, str]]) -> None:
        """Every booking that somebody was told of is there, or there is a record of its end."""
        there = {
            str(booking["id"]): (str(slot["_id"]), str(booking["user"]))
            for slot in self.slots
            for booking in slot["bookings"]
        }
        past = {str(b["_id"]): (str(b["slot"]), str(b["user"])) for b in self.ended}
        assert not there.keys() & past.keys(), "a booking is both live and over"
        for id_, whose in acknowledged.items():
            assert (there | past).get(id_) == whose, f"{self._tokens[id_]} is lost"
        for answer in self.answers:
            for id_ in bookings_in(answer["outcome"]):
                assert id_ in there or id_ in past, f"an answer without its effect: {answer}"


def log_of(booking: Json) -> tuple[LogEntry, ...]:
    """The record of a booking; a plain one needs none."""
    if "log" not in booking:
        return (LogEntry(booking["at"], str(booking["user"]), "booked", "confirmed"),)
    return tuple(
        LogEntry(
            entry["at"],
            entry["by"] and str(entry["by"]),
            entry["do"],
            entry["to"],
            entry.get("until"),
            tuple(entry.get("over", ())),
        )
        for entry in booking["log"]
    )


def assert_slot_whole(slot: Json, now: datetime) -> None:
    """Never above capacity, nobody twice, no free place beside somebody who waits for it."""
    bookings = slot["bookings"]
    live = [b for b in bookings if "until" not in b or b["until"] > now]
    assert len(live) <= len(bookings) <= slot["capacity"], f"above capacity: {slot}"
    assert slot["remaining"] == slot["capacity"] - len(bookings), f"miscounted: {slot}"
    people = Counter(str(b["user"]) for b in bookings)
    line = Counter(str(turn["user"]) for turn in slot["waiting"])
    assert not (people + line) or max([*people.values(), *line.values()]) == 1, f"twice: {slot}"
    if slot["status"] == "published" and slot["changedAt"] < slot["start"]:
        assert not (slot["remaining"] and slot["waiting"]), f"free beside waiting: {slot}"
    for booking in bookings:
        log = log_of(booking)
        assert_explained(log)
        assert log[-1].to in ("held", "confirmed"), slot
        assert log[-1].until == booking.get("until"), slot
    if slot["status"] != "cancelled":  # whose bookings ended with it
        times = [until for b in bookings if (until := b.get("until"))]
        assert not times or slot["due"] <= min(times), f"nobody will sweep this: {slot}"


def assert_explained(log: tuple[LogEntry, ...]) -> None:
    """Who, when, what, before and after, without a gap."""
    assert log[0].deed in BEGINS, log
    for before, entry in pairwise(log):
        assert entry.deed in FOLLOWS[before.to], log
        assert before.at <= entry.at, log
        assert entry.by is not None or entry.deed == "expired", log
    assert all((entry.until is None) == (entry.to not in ("held", "expired")) for entry in log), log


def assert_one_of_a_choice(slots: list[Json], now: datetime) -> None:
    """One place of a choice each, but those an organiser gave beyond it, which say so."""
    chosen = Counter(
        (slot["choice"], str(booking["user"]))
        for slot in slots
        if slot["choice"] and slot["status"] != "cancelled"
        for booking in slot["bookings"]
        if "until" not in booking or booking["until"] > now
        if not any("one_of_choice" in entry.over for entry in log_of(booking))
    )
    assert max(chosen.values(), default=1) == 1, f"two of a choice: {chosen}"


def bookings_in(kept: Any) -> list[str]:
    """The ids of the bookings that a kept answer is about, but not of those it tells of aside."""
    booked = [each["booking"] for each in kept.get("booked", ())]
    mine = [kept[name] for name in ("booking", "old_booking") if name in kept]
    return [booking["id"] for booking in (*booked, *mine)]
