"""What a request asks, and what becomes of the slots when several are decided in turn: pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.promotion import (
    expire_and_promote_all,
    next_version,
    promote_waitlists,
)
from slotlock.domain.booking.slot import Slot
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecord
from slotlock.infrastructure.mongo.slots.change_set import SlotChange
from slotlock.infrastructure.mongo.slots.preconditions import Precondition
from slotlock.services.commands.idempotency import IdempotencyKey
from slotlock.services.commands.outcome_snapshots import redact_for

Outcome = TypeVar("Outcome")

SlotStates = Mapping[SlotId, Slot]
# From the slots that there are, to the same as they shall be and what is answered.
DecisionFunction = Callable[[SlotStates, datetime], tuple[SlotStates, Outcome]]


@dataclass(frozen=True, slots=True)
class SlotCommand(Generic[Outcome]):
    """What somebody wants done, and whom and what it concerns."""

    apply: DecisionFunction[Outcome]
    user_ids: tuple[UserId, ...] = ()
    booking_ids: tuple[BookingId, ...] = ()
    idempotency_key: IdempotencyKey | None = None
    team_versions: tuple[TeamVersion, ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    waitlist_depth: int = 1
    # Of an organiser who changes the slots themselves: what is noted of each.
    audit_note: Callable[[SlotChange], AuditNote | None] | None = None


def on_slot(
    slot_id: SlotId,
    apply: Callable[[Slot, datetime], tuple[Slot, Outcome]],
    missing_outcome: Outcome,
) -> DecisionFunction[Outcome]:
    """A rule on one slot, and the answer when there is no such slot."""

    def apply_to_slot(slots: SlotStates, now: datetime) -> tuple[SlotStates, Outcome]:
        slot = slots.get(slot_id)
        if slot is None:
            return slots, missing_outcome
        after, outcome = apply(slot, now)
        return {**slots, slot_id: after}, outcome

    return apply_to_slot


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """What shall be written, the outcome of each request, and whether it was granted anything."""

    changes: tuple[SlotChange, ...]
    outcomes: list[Any]
    accepted: list[bool]


def decide_batch(
    loaded_slots: SlotStates, commands: Sequence[SlotCommand[Any]], now: datetime
) -> BatchDecision:
    """Settle, then apply each request's rule in turn; a place it frees is the next in line's."""
    slots: SlotStates = expire_and_promote_all(loaded_slots, now)
    outcomes, granted = [], []
    for request in commands:
        after, outcome = request.apply(slots, now)
        granted.append(after != slots)
        outcomes.append(outcome)
        slots = promote_waitlists(after, now)
    changes = tuple(
        SlotChange(before, next_version(before, slots[slot_id], now))
        for slot_id, before in loaded_slots.items()
        if replace(slots[slot_id], user_contexts=before.user_contexts) != before
    )
    told = {**slots, **{change.after.id: change.after for change in changes}}
    return BatchDecision(
        changes, [_with_latest_slots(outcome, told) for outcome in outcomes], granted
    )


def _with_latest_slots(outcome: Any, slots: SlotStates) -> Any:
    # Every answer tells of the slots as they stand after the whole batch.
    if isinstance(outcome, tuple):
        return tuple(_with_latest_slots(each, slots) for each in outcome)
    if not hasattr(outcome, "__dataclass_fields__"):
        return outcome
    new: dict[str, Any] = {}
    for each in fields(outcome):
        value = getattr(outcome, each.name)
        if isinstance(value, Slot):
            new[each.name] = slots.get(value.id, value)
        elif isinstance(value, tuple):
            new[each.name] = _with_latest_slots(value, slots)
    return replace(outcome, **new) if new else outcome


def idempotency_records(
    commands: Sequence[SlotCommand[Any]], decision: BatchDecision, now: datetime
) -> tuple[IdempotencyRecord, ...]:
    return tuple(
        to_record(slip, redact_for(outcome, request.user_ids), now)
        for request, outcome, granted in zip(
            commands, decision.outcomes, decision.accepted, strict=True
        )
        if granted and (slip := request.idempotency_key)
    )


def to_record(idempotency_key: IdempotencyKey, outcome: Any, now: datetime) -> IdempotencyRecord:
    """An answer as it is kept under a slip's key."""
    return IdempotencyRecord(
        idempotency_key.record_id,
        idempotency_key.request_hash,
        outcome,
        now,
        idempotency_key.requested_at,
    )


def audit_notes(
    commands: Sequence[SlotCommand[Any]], changes: Sequence[SlotChange]
) -> tuple[AuditNote, ...]:
    """What is noted of the changes."""
    asking = [request.audit_note for request in commands if request.audit_note is not None]
    found = (note(change) for note in asking for change in changes)
    return tuple(each for each in found if each is not None)
