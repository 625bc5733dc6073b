"""Operations that can have one effect together: repetitions with a key, and polls of a ticket."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import orjson

from bench.faults.checker.report import Report
from bench.faults.history import Json, Operation
from bench.soak.run_log import parse_ticket_key, raw_id

ACCEPTED = {
    "Booked",
    "BookingMoved",
    "BookingConfirmed",
    "HoldExtended",
    "BookingCancelled",
    "WaitlistJoined",
    "WaitlistLeft",
}
# The server has not decided; the client may repeat the request.
UNDECIDED = {"Locked", "QueueFull", "TeamBusy"}
# Errors before any effect.
REJECTED = {"UNAUTHENTICATED", "FORBIDDEN", "RATE_LIMITED", "BAD_USER_INPUT", "OVERLOADED"}
COMMANDS = {"book", "request", "move", "confirm", "extend", "cancel", "join", "leave"}
# The outcome of a ticket whose request was lost: nothing was booked, and nothing will be.
LOST = "LOST"


@dataclass(slots=True)
class Effect:
    """Everything that was sent for one effect; ids are in hex.

    `response` is the final one, if any operation received one, at `finished_at`. Otherwise it may
    have happened after `started_at`, if there is an `unknown_at`: when the last request that left
    this open was sent.
    """

    operations: list[Operation]
    name: str
    user_id: str
    slot_id: str
    booking_id: str | None
    started_at: float = float("inf")
    finished_at: float = float("inf")
    response: Json | None = None
    unknown_at: float | None = None
    tickets: set[str] = field(default_factory=set)

    @property
    def sent_at(self) -> float:
        """When the first request was sent, whatever became of it."""
        return self.operations[0].started_at

    @property
    def outcome(self) -> str:
        """The type of the response; empty without one."""
        return str(self.response["__typename"]) if self.response else ""

    @property
    def is_accepted(self) -> bool:
        """Whether a response says that it happened."""
        return self.outcome in ACCEPTED

    @property
    def may_have_happened(self) -> bool:
        """Whether it happened, as far as its clients know."""
        return self.is_accepted or (self.unknown_at is not None and not self.response)

    @property
    def shown_booking_id(self) -> str | None:
        """The booking of the response."""
        booking = self.response.get("booking") if self.response else None
        return raw_id(booking["id"]) if booking else None


def key_hash(key: str) -> str:
    """Return the hash of an idempotency key, as ids of tickets contain it."""
    return hashlib.sha256(orjson.dumps([key])).hexdigest()[:32]


def key_of(operation: Operation) -> str | None:
    """Return the idempotency key of an operation."""
    return operation.input.get("idempotencyKey") or operation.input.get("key")


def to_effects(operations: Sequence[Operation], report: Report) -> list[Effect]:
    """Group the operations by their effects; report those with two outcomes."""
    groups: dict[object, list[Operation]] = {}
    tickets: dict[str, object] = {}
    for operation in operations:
        if operation.operation not in COMMANDS:
            continue
        key, outcome = key_of(operation), operation.outcome or {}
        group: object = (operation.user_id, key) if key else operation.id
        if outcome.get("__typename") == "Ticket":
            ticket = str(outcome["id"])
            if key and parse_ticket_key(ticket)[1] != key_hash(key):
                # The ticket of an earlier request; this key stays unused.
                group = operation.id
            group = tickets.setdefault(ticket, group)
        groups.setdefault(group, []).append(operation)
    for operation in operations:
        if operation.operation == "ticket" and (
            found := tickets.get(str(operation.input["ticket"]))
        ):
            groups[found].append(operation)
    effects = [_to_effect(each, report) for each in groups.values()]
    report.counts["effects"] = len(effects)
    return effects


def _to_effect(operations: list[Operation], report: Report) -> Effect:
    first = operations[0]
    given = first.input
    booking = given.get("bookingId") or given.get("booking")
    # The id of a booking contains its slot; a move is of the slot that it leads to.
    slot = given.get("slotId") or given.get("slot") or str(booking)[: -len("0" * 24)]
    effect = Effect(
        operations,
        first.operation,
        first.user_id,
        raw_id(slot),
        raw_id(booking) if booking else None,
    )
    identities: dict[tuple[str, str | None], Operation] = {}
    for operation in operations:
        response = _final_response(effect, operation)
        if response is not None and operation.finished_at is not None:
            identities.setdefault(_identity(response), operation)
            if operation.finished_at < effect.finished_at:
                effect.finished_at, effect.response = operation.finished_at, response
    if len(identities) > 1:
        kind = "ticket with two outcomes" if effect.tickets else "key with two outcomes"
        description = f"{first.operation} of {first.user_id}: {sorted(map(str, identities))}"
        report.add(kind, description, list(identities.values()))
    return effect


def _final_response(effect: Effect, operation: Operation) -> Json | None:
    """Return the final response of an operation; note what the effect has of the others."""
    response = operation.outcome
    if response is None and operation.error in REJECTED:
        return None
    if response is not None and response["__typename"] in UNDECIDED:
        return None
    if operation.operation != "ticket":
        effect.started_at = min(effect.started_at, operation.started_at)
    if response is None:
        if operation.operation != "ticket":
            _leave_open(effect, operation)
        return None
    if "status" not in response or response["__typename"] != "Ticket":
        return None if response["__typename"] == "nothing" else response
    effect.tickets.add(str(response["id"]))
    if response["status"] == LOST and not _is_sent_again(effect, operation):
        return {"__typename": LOST}
    outcome: Json | None = response["outcome"] if response["status"] == "ANSWERED" else None
    if outcome is None or outcome["__typename"] in UNDECIDED:
        _leave_open(effect, operation)
        return None
    return outcome


def _leave_open(effect: Effect, operation: Operation) -> None:
    effect.unknown_at = max(effect.unknown_at or 0.0, operation.started_at)


def _is_sent_again(effect: Effect, lost: Operation) -> bool:
    """Return whether a request may have reached the server after the ticket was lost."""
    return any(
        each.operation != "ticket"
        and each is not lost
        and (each.finished_at is None or each.finished_at > lost.started_at)
        for each in effect.operations
    )


def _identity(response: Json) -> tuple[str, str | None]:
    shown = response.get("booking") or response.get("entry")
    return str(response["__typename"]), raw_id(shown["id"]) if shown else None
