"""What everybody asked for and was answered, kept beside the database to be held against it."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
TicketKey = tuple[str, str]

# Answers that say that something was done, or had been done already.
SUCCESS_OUTCOMES = {
    "Booked",
    "AllBooked",
    "BookingMoved",
    "BookingConfirmed",
    "BookingCancelled",
    "HoldExtended",
}
UNKNOWN_OUTCOMES = {"lost", "left", "INTERNAL"}
NO_EFFECT_OUTCOMES = {"refused connection", "Locked", "TeamBusy", "QueueFull"}
MAX_SHOWN = 12


@dataclass(slots=True, eq=False)
class SentRequest:
    """One request; `outcome` is a type's name, an error's code, or the fate of the connection."""

    started_at: float
    ended_at: float = 0.0
    outcome: str = "lost"
    response: Json = field(default_factory=dict)
    app_index: int = 0

    @property
    def is_success(self) -> bool:
        """Whether the answer says that it is done."""
        return self.outcome in SUCCESS_OUTCOMES

    @property
    def is_unknown(self) -> bool:
        """Whether it may have been done or not, or may yet be."""
        return self.outcome in UNKNOWN_OUTCOMES

    @property
    def is_final(self) -> bool:
        """Whether it was answered by a clerk who had looked."""
        return not self.is_unknown and self.outcome not in NO_EFFECT_OUTCOMES


@dataclass(slots=True, eq=False)
class ClientOperation:
    """What one person wants, with every request that was sent for it.

    `claims`: the (slot, person) pairs, in hex, for which a booking may come of it.
    """

    name: str
    user_id: str
    document: str
    variables: Json
    token: str
    idempotency_key: str | None = None
    claims: tuple[tuple[str, str], ...] = ()
    requests: list[SentRequest] = field(default_factory=list)

    @property
    def first_success(self) -> SentRequest | None:
        """The first answer that said it is done."""
        return next((send for send in self.requests if send.is_success), None)

    @property
    def is_unknown(self) -> bool:
        """Whether any request of it may have been done unheard."""
        return any(send.is_unknown for send in self.requests)


@dataclass(frozen=True, slots=True)
class TicketObservation:
    """What was told of a ticket, and when it was asked for and heard."""

    started_at: float
    ended_at: float
    ticket: Json
    source: str = "asked"

    @property
    def key(self) -> TicketKey:
        """Whose ticket it is, in hex, and the hash of its key, both as its id names them."""
        return parse_ticket_key(self.ticket["id"])

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
    def outcome_name(self) -> str:
        """The name of its outcome, or its status while there is none."""
        return str(self.outcome.get("__typename", self.status))

    @property
    def is_final(self) -> bool:
        """Whether nothing more comes of it by itself."""
        return self.status in ("ANSWERED", "LOST")

    def request_order(self) -> tuple[float, float]:
        """The order in which it was asked: the last telling is the one that was asked for last."""
        return self.started_at, self.ended_at


class RunLog:
    """Every act, every count, and every promise that was seen broken."""

    def __init__(self) -> None:
        self.operations: list[ClientOperation] = []
        self.ticket_observations: list[TicketObservation] = []
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.chaos: Counter[str] = Counter()
        self.checks: Counter[str] = Counter()
        self.violations: Counter[str] = Counter()
        self.compared_responses = 0
        self.mongo_outages: list[list[float]] = []  # when MongoDB was, from and to
        self.redis_losses: list[
            tuple[float, float]
        ] = []  # when Redis lost what it knew, from and to
        self._seen: set[str] = set()

    def record_violation(self, kind: str, what: str) -> None:
        """Note a broken promise, and say so at once."""
        if what in self._seen:
            return
        self._seen.add(what)
        self.violations[kind] += 1
        if self.violations[kind] <= MAX_SHOWN:
            print(f"VIOLATION {_clock()} {kind}: {what}", flush=True)

    def record_mongo_down(self) -> None:
        """From now on MongoDB is away."""
        self.mongo_outages.append([time.time(), float("inf")])

    def record_mongo_up(self, grace_s: float = 10.0) -> None:
        """MongoDB is back; clients have so long to notice."""
        self.mongo_outages[-1][1] = time.time() + grace_s

    def was_mongo_down(self, started_at: float, ended_at: float) -> bool:
        """Whether MongoDB was away at any time between these."""
        return any(started_at <= until and since <= ended_at for since, until in self.mongo_outages)


def _clock() -> str:
    return time.strftime("%H:%M:%S")


def parse_ticket_key(gid: str) -> TicketKey:
    """Whose ticket an id names, and the hash of its key."""
    plain = gid.removeprefix("ticket_")
    return plain[24:48], plain[48:80]


def raw_id(gid: str) -> str:
    """The last id that an opaque id of the API names: the truth is read past the app."""
    return gid[-24:]
