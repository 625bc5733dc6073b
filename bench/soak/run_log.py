"""Everything that clients requested and received, which the checks compare with the database."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
# The id of a user in hex, and the hash of an idempotency key.
TicketKey = tuple[str, str]

# The work was done, now or by an earlier request.
SUCCESS_OUTCOMES = {
    "Booked",
    "AllBooked",
    "BookingMoved",
    "BookingConfirmed",
    "BookingCancelled",
    "HoldExtended",
}
UNKNOWN_OUTCOMES = {"lost", "hung up", "INTERNAL"}
NO_EFFECT_OUTCOMES = {"refused connection", "Locked", "TeamBusy", "QueueFull"}
MAX_SHOWN = 12


@dataclass(slots=True, eq=False)
class SentRequest:
    """One request; `outcome` is a type name, an error code, or the fate of the connection."""

    started_at: float
    ended_at: float = 0.0
    outcome: str = "lost"
    response: Json = field(default_factory=dict)
    app_index: int = 0

    @property
    def is_success(self) -> bool:
        """Return whether the response says that the work is done."""
        return self.outcome in SUCCESS_OUTCOMES

    @property
    def is_unknown(self) -> bool:
        """Return whether the server may have done the work, or may still do it."""
        return self.outcome in UNKNOWN_OUTCOMES

    @property
    def is_final(self) -> bool:
        """Return whether the server decided on the request."""
        return not self.is_unknown and self.outcome not in NO_EFFECT_OUTCOMES


@dataclass(slots=True, eq=False)
class ClientOperation:
    """One operation of a user, with every request that was sent for it.

    `claims` are the pairs of slot and user, in hex, that the operation may book.
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
        """Return the first successful request."""
        return next((request for request in self.requests if request.is_success), None)

    @property
    def is_unknown(self) -> bool:
        """Return whether any request may have done the work without a response."""
        return any(request.is_unknown for request in self.requests)


@dataclass(frozen=True, slots=True)
class TicketObservation:
    """One state of a ticket as a client received it, with the time of the request."""

    started_at: float
    ended_at: float
    ticket: Json
    source: str = "polled"

    @property
    def key(self) -> TicketKey:
        """Return the user and the hash of the key, both from the ticket's id."""
        return parse_ticket_key(self.ticket["id"])

    @property
    def status(self) -> str:
        """Return the status of the ticket."""
        return str(self.ticket["status"])

    @property
    def outcome(self) -> Json:
        """Return the outcome; empty before the ticket is answered."""
        found: Json = self.ticket.get("outcome") or {}
        return found

    @property
    def outcome_name(self) -> str:
        """Return the type name of the outcome, or the status without one."""
        return str(self.outcome.get("__typename", self.status))

    @property
    def is_final(self) -> bool:
        """Return whether the ticket cannot change by itself anymore."""
        return self.status in ("ANSWERED", "LOST")

    def request_order(self) -> tuple[float, float]:
        """Return the sort key by which the last observation is the last requested one."""
        return self.started_at, self.ended_at


class RunLog:
    """Every operation, every count and every broken promise of a run.

    `mongo_outages` and `redis_losses` are periods in seconds since the epoch.
    """

    def __init__(self) -> None:
        self.operations: list[ClientOperation] = []
        self.ticket_observations: list[TicketObservation] = []
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.chaos: Counter[str] = Counter()
        self.checks: Counter[str] = Counter()
        self.violations: Counter[str] = Counter()
        self.compared_responses = 0
        self.mongo_outages: list[list[float]] = []
        self.redis_losses: list[tuple[float, float]] = []
        self._reported: set[str] = set()

    def record_violation(self, kind: str, description: str) -> None:
        """Count a broken promise and print it at once; repetitions are ignored."""
        if description in self._reported:
            return
        self._reported.add(description)
        self.violations[kind] += 1
        if self.violations[kind] <= MAX_SHOWN:
            print(f"VIOLATION {_clock()} {kind}: {description}", flush=True)

    def record_mongo_down(self) -> None:
        """Record that MongoDB is unavailable from now on."""
        self.mongo_outages.append([time.time(), float("inf")])

    def record_mongo_up(self, grace_s: float = 10.0) -> None:
        """Record that MongoDB is available; clients notice it within the grace period."""
        self.mongo_outages[-1][1] = time.time() + grace_s

    def was_mongo_down(self, started_at: float, ended_at: float) -> bool:
        """Return whether MongoDB was unavailable at any time in this period."""
        return any(started_at <= until and since <= ended_at for since, until in self.mongo_outages)


def _clock() -> str:
    return time.strftime("%H:%M:%S")


def parse_ticket_key(global_id: str) -> TicketKey:
    """Return the user and the hash of the key that a ticket's id contains."""
    plain = global_id.removeprefix("ticket_")
    return plain[24:48], plain[48:80]


def raw_id(global_id: str) -> str:
    """Return the last database id, in hex, that an id of the API contains."""
    return global_id[-24:]
