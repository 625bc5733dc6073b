"""Deciding a batch of commands on the slots that were loaded for them, without any I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import Decision
from slotlock.domain.booking.promotion import (
    expire_and_promote_all,
    next_version,
    promote_waitlists,
)
from slotlock.domain.booking.slot import Slot
from slotlock.domain.booking.slot_outcome import OutcomeWithSlots
from slotlock.infrastructure.mongo.idempotency_records import IdempotencyRecord
from slotlock.infrastructure.mongo.slots.change_set import SlotUpdate
from slotlock.services.commands.idempotency import to_record
from slotlock.services.commands.redaction import redact_for
from slotlock.services.slot_command import SlotCommand


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """The slots to write, and one decision per command, in their order."""

    updates: tuple[SlotUpdate, ...]
    decisions: tuple[Decision[object], ...]

    @property
    def has_requested_changes(self) -> bool:
        """Whether a command changes a slot, rather than an expired hold or the waiting list."""
        return any(decision.changed_slots for decision in self.decisions)


def decide_batch(
    loaded_slots: Mapping[SlotId, Slot], commands: Sequence[SlotCommand[object]], now: datetime
) -> BatchDecision:
    """Decide the commands in order, each on the slots that the commands before it leave.

    Expired holds end first. A place that a command frees goes to the waiting list before the next
    command is decided.
    """
    slots = expire_and_promote_all(loaded_slots, now)
    decisions = []
    for command in commands:
        decision = command.apply(slots, now)
        slots |= {slot.id: slot for slot in decision.changed_slots}
        slots = promote_waitlists(slots, now)
        decisions.append(decision)
    updates = tuple(
        SlotUpdate(before, next_version(before, slots[slot_id], now))
        for slot_id, before in loaded_slots.items()
        if not slots[slot_id].change.is_empty
    )
    latest = {**slots, **{update.after.id: update.after for update in updates}}
    return BatchDecision(updates, tuple(_with_latest_slots(each, latest) for each in decisions))


def _with_latest_slots(
    decision: Decision[object], slots: Mapping[SlotId, Slot]
) -> Decision[object]:
    """Show the slots in the outcome as they stand after the whole batch."""
    if not isinstance(decision.outcome, OutcomeWithSlots):
        return decision
    outcome = decision.outcome.map_slots(lambda slot: slots.get(slot.id, slot))
    return replace(decision, outcome=outcome)


def idempotency_records(
    commands: Sequence[SlotCommand[object]], decisions: Sequence[Decision[object]], now: datetime
) -> tuple[IdempotencyRecord, ...]:
    """Return a record for each accepted command that has an idempotency key."""
    return tuple(
        to_record(key, redact_for(decision.outcome, command.user_ids), now)
        for command, decision in zip(commands, decisions, strict=True)
        if decision.accepted and (key := command.idempotency_key)
    )


def audit_notes(
    commands: Sequence[SlotCommand[object]], updates: Sequence[SlotUpdate]
) -> tuple[AuditNote, ...]:
    """Return the audit notes that the commands write about the changed slots."""
    notes = (command.audit_note(update) for command in commands for update in updates)
    return tuple(note for note in notes if note is not None)
