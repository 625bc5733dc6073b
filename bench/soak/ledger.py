"""What everybody asked for and was answered, kept beside the database to be held against it."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
TicketKey = tuple[str, str]

# Answers that say that something was done, or had been done already.
GRANTS = {
    "Booked",
    "AllBooked",
    "BookingMoved",
    "BookingConfirmed",
    "BookingCancelled",
    "HoldExtended",
}
UNKNOWN = {"lost", "left", "INTERNAL"}
NOTHING_DONE = {"refused connection", "Locked", "TeamBusy", "QueueFull"}
MOST_SHOWN = 12


@dataclass(slots=True, eq=False)
class Send:
    """One request; `outcome` is a type's name, an error's code, or the fate of the connection."""

    began: float
    ended: float = 0.0
    outcome: str = "lost"
    answer: Json = field(default_factory=dict)
    app: int = 0

    @property
    def granted(self) -> bool:
        """Whether the answer says that it is done."""
        return self.outcome in GRANTS

    @property
    def unknown(self) -> bool:
        """Whether it may have been done or not, or may yet be."""
        return self.outcome in UNKNOWN

    @property
    def final(self) -> bool:
        """Whether it was answered by a clerk who had looked."""
        return not self.unknown and self.outcome not in NOTHING_DONE


@dataclass(slots=True, eq=False)
class Act:
    """What one person wants, with every request that was sent for it.

    `claims`: the (slot, person) pairs, in hex, for which a booking may come of it.
    """

    name: str
    by: str
    query: str
    variables: Json
    token: str
    key: str | None = None
    claims: tuple[tuple[str, str], ...] = ()
    sends: list[Send] = field(default_factory=list)

    @property
    def grant(self) -> Send | None:
        """The first answer that said it is done."""
        return next((send for send in self.sends if send.granted), None)

    @property
    def unknown(self) -> bool:
        """Whether any request of it may have been done unheard."""
        return any(send.unknown for send in self.sends)


@dataclass(frozen=True, slots=True)
class Telling:
    """What was told of a ticket, and when it was asked for and heard."""

    began: float
    ended: float
    ticket: Json
    how: str = "asked"

    @property
    def key(self) -> TicketKey:
        """Whose ticket it is, in hex, and the hash of its key, both as its id names them."""
        return key_of_ticket(self.ticket["id"])

    @property
    def status(self) -> str:
        """Where it was said to be."""
        return str(self.ticket["status"])

    @property
    def outcome(self) -> Json:
        """What came of it; nothing before it is answered."""
        found: Json = self.ticket.get("outcome") or {}
        return found

    @property
    def said(self) -> str:
        """The name of its outcome, or its status while there is none."""
        return str(self.outcome.get("__typename", self.status))

    @property
    def final(self) -> bool:
        """Whether nothing more comes of it by itself."""
        return self.status in ("ANSWERED", "LOST")

    def asked_last(self) -> tuple[float, float]:
        """The order in which it was asked: the last telling is the one that was asked for last."""
        return self.began, self.ended


class Ledger:
    """Every act, every count, and every promise that was seen broken."""

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self.tellings: list[Telling] = []
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.chaos: Counter[str] = Counter()
        self.checks: Counter[str] = Counter()
        self.violations: Counter[str] = Counter()
        self.compared = 0
        self.away: list[list[float]] = []  # when MongoDB was, from and to
        self.losses: list[tuple[float, float]] = []  # when Redis lost what it knew, from and to
        self._seen: set[str] = set()

    def violation(self, kind: str, what: str) -> None:
        """Note a broken promise, and say so at once."""
        if what in self._seen:
            return
        self._seen.add(what)
        self.violations[kind] += 1
        if self.violations[kind] <= MOST_SHOWN:
            print(f"VIOLATION {_clock()} {kind}: {what}", flush=True)

    def mongo_leaves(self) -> None:
        """From now on MongoDB is away."""
        self.away.append([time.time(), float("inf")])

    def mongo_is_back(self, grace_s: float = 10.0) -> None:
        """MongoDB is back; clients have so long to notice."""
        self.away[-1][1] = time.time() + grace_s

    def was_away(self, began: float, ended: float) -> bool:
        """Whether MongoDB was away at any time between these."""
        return any(began <= until and since <= ended for since, until in self.away)


def _clock() -> str:
    return time.strftime("%H:%M:%S")


def key_of_ticket(gid: str) -> TicketKey:
    """Whose ticket an id names, and the hash of its key."""
    plain = gid.removeprefix("ticket_")
    return plain[24:48], plain[48:80]


def hex_of(gid: str) -> str:
    """The last id that an opaque id of the API names: the truth is read past the app."""
    return gid[-24:]
