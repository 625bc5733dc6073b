"""Operations that can have one effect together: repetitions with a key, and polls of a ticket."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import orjson

from bench.faults.checker.report import Report
from bench.faults.history import ACCEPTED, BOOK_ALL, Json, Operation, raw_id

# The server has not decided; the client may repeat the request.
UNDECIDED = {"Locked", "QueueFull", "TeamBusy"}
# Errors before any effect.
REJECTED = {"UNAUTHENTICATED", "FORBIDDEN", "RATE_LIMITED", "BAD_USER_INPUT", "OVERLOADED"}
COMMANDS = {"book", "request", "move", "confirm", "extend", "cancel", "join", "leave", BOOK_ALL}
# While a campaign is not published, its slots are hidden, whatever was answered before.
HIDDEN = "SlotNotFound"
# What another request may say of a booking that was just changed.
MISSING = ("BookingNotFound", "HoldExpired")
# Requests that are sent at once begin within this time.
AT_ONCE_S = 0.1
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
    def record_key(self) -> tuple[str, str] | None:
        """The caller and the hash of the key, if the server stores the outcome for it."""
        for ticket in self.tickets:
            return parse_ticket_key(ticket)
        key = key_of(self.operations[0])
        return (self.operations[0].user_id, key_hash(key)) if key else None

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


def parse_ticket_key(global_id: str) -> tuple[str, str]:
    """Return the caller and the hash of the key that the id of a ticket contains."""
    plain = global_id.removeprefix("ticket_")
    return plain[24:48], plain[48:80]


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
    effects = [
        effect
        for each in groups.values()
        for effect in (*map(_to_own_effect, _pop_others(each)), _to_effect(each, report))
    ]
    report.counts["effects"] = len(effects)
    return effects


def _pop_others(operations: list[Operation]) -> list[Operation]:
    """Remove and return the responses of a group that do not belong to its one effect.

    Some only say that the slot is hidden. A refusal is not stored for a key, so that the same
    request may be accepted at the same time, or come out of the queue later if it had no response.
    A refusal may not show what the request did, nor come after its acceptance.
    """
    accepted = [
        response
        for each in operations
        if (response := _response_of(each)).get("__typename") in ACCEPTED
    ]
    done = set[str]().union(*map(_shown_ids, accepted))
    changes = any(each["__typename"] not in ("Booked", "AllBooked") for each in accepted)
    others = [
        each
        for each in operations
        if (name := (response := _response_of(each)).get("__typename")) == HIDDEN
        or (
            _is_own_refusal(each, operations)
            and not done & _shown_ids(response)
            and not (changes and name in MISSING)
        )
    ]
    rest = [each for each in operations if each not in others]
    operations[:] = rest or others[:1]
    return others if rest else others[1:]


def _is_own_refusal(refused: Operation, operations: list[Operation]) -> bool:
    name = (refused.outcome or {}).get("__typename")
    if name is None or refused.finished_at is None or name in {*ACCEPTED, *UNDECIDED, "Ticket"}:
        return False
    is_late = any(
        each.finished_at is not None
        and each.finished_at < refused.started_at
        and (each.outcome or {}).get("__typename") in ACCEPTED
        for each in operations
    )
    return not is_late and any(
        each is not refused
        and each.started_at < refused.finished_at
        and (
            (each.finished_at or each.started_at + AT_ONCE_S) > refused.started_at
            or (each.outcome is None and each.operation == "request")
        )
        for each in operations
    )


def _shown_ids(response: Json) -> set[str]:
    """Return the bookings that a response shows, or a refusal of one of its claims."""
    refusals = [each["refusal"] for each in response.get("refusals", ())]
    shown = [each.get("booking") for each in (response, *refusals)]
    return {each["id"] for each in (*shown, *response.get("bookings", ())) if each}


def _response_of(operation: Operation) -> Json:
    outcome = operation.outcome or {}
    return outcome.get("outcome") or outcome


def _to_own_effect(operation: Operation) -> Effect:
    effect = _without_response([operation])
    effect.started_at, effect.finished_at = operation.started_at, operation.finished_at or 0.0
    effect.response = _response_of(operation)
    return effect


def claims_of(effect: Effect) -> list[Effect]:
    """Return an effect for each slot and user, of a request for several of them or for one."""
    if effect.name != BOOK_ALL:
        return [effect]
    booked = (effect.response or {}).get("bookings", ())
    # The id of a booking contains its slot.
    by_claim = {(each["id"][-48:-24], raw_id(each["user"]["id"])): each for each in booked}
    parts = []
    for claim in effect.operations[0].input["claims"]:
        slot_id, user_id = raw_id(claim["slotId"]), raw_id(claim["userId"])
        booking, response = by_claim.get((slot_id, user_id)), effect.response
        if booking:
            response = {"__typename": "Booked", "booking": booking}
        parts.append(
            replace(effect, name="book", user_id=user_id, slot_id=slot_id, response=response)
        )
    return parts


def _without_response(operations: list[Operation]) -> Effect:
    first = operations[0]
    given = first.input
    if first.operation == "ticket":  # the request itself is in another effect
        slot = str(given["ticket"]).removeprefix("ticket_")[:24]
        return Effect(operations, "request", first.user_id, slot, None)
    booking = given.get("bookingId") or given.get("booking")
    # The id of a booking contains its slot; a move is of the slot that it leads to.
    slot = given.get("slotId") or given.get("slot") or str(booking)[: -len("0" * 24)]
    return Effect(
        operations,
        first.operation,
        raw_id(given.get("userId") or first.user_id),
        raw_id(slot),
        raw_id(booking) if booking else None,
    )


def _to_effect(operations: list[Operation], report: Report) -> Effect:
    effect = _without_response(operations)
    identities: dict[str, Operation] = {}
    for operation in operations:
        response = _final_response(effect, operation)
        if response is not None and operation.finished_at is not None:
            identities.setdefault(_identity(response), operation)
            if operation.finished_at < effect.finished_at:
                effect.finished_at, effect.response = operation.finished_at, response
    if any(_is_refused_directly(each) for each in identities.values()):
        # Without Redis, a request that may be queued is refused finally, and its ticket is lost.
        identities.pop(_identity({"__typename": LOST}), None)
    if len(identities) > 1:
        kind = "ticket with two outcomes" if effect.tickets else "key with two outcomes"
        description = f"{effect.name} of {effect.user_id}: {sorted(identities)}"
        report.add(kind, description, list(identities.values()))
    return effect


def _is_refused_directly(operation: Operation) -> bool:
    """Return whether a request itself, not its ticket, was refused."""
    outcome = operation.outcome or {}
    return operation.operation != "ticket" and outcome.get("__typename") not in {
        *ACCEPTED,
        "Ticket",
    }


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


def _identity(response: Json) -> str:
    """Return what must be equal in all responses: all of a success, and the kind of a refusal."""
    if response["__typename"] in ACCEPTED:
        return orjson.dumps(response).decode()
    shown = response.get("booking") or response.get("entry") or {"id": ""}
    return f"{response['__typename']} {raw_id(shown['id'])}"
