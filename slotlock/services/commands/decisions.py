"""Deciding a batch of commands on the slots that were loaded for them, without any I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult, Decision, LoadedState
from slotlock.domain.booking.rules.expiry import without_expired
from slotlock.domain.booking.rules.next_version import next_version
from slotlock.domain.booking.rules.promotion import promote_waitlists
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord
from slotlock.infrastructure.mongo.slots.change_set import SlotUpdate
from slotlock.services.commands.idempotency import to_record
from slotlock.services.commands.slot_redaction import redacted_slots
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.slot_command import SlotCommand


@dataclass(frozen=True, slots=True)
class BatchDecision:
    """One decision per command, in their order, and the slots as they are after all of them.

    `updates` are the slots to write, and `users` the contexts that the decisions are based on.
    """

    decisions: tuple[Decision[object], ...]
    slots: Mapping[SlotId, SlotState]
    updates: tuple[SlotUpdate, ...]
    users: UserContexts

    @property
    def results(self) -> tuple[CommandResult[object], ...]:
        """One result per command, with the slots as they are after the whole batch."""
        return tuple(CommandResult(decision.outcome, self.slots) for decision in self.decisions)

    @property
    def has_requested_changes(self) -> bool:
        """Whether a command changes a slot, rather than an expired hold or the waiting list."""
        return any(decision.changed_slots for decision in self.decisions)


def decide_batch(
    loaded: LoadedState, commands: Sequence[SlotCommand[object]], now: datetime
) -> BatchDecision:
    """Decide the commands in order, each on the slots that the commands before it leave.

    Expired holds end first. A place that a command frees goes to the waiting list before the next
    command is decided.
    """
    state = promote_waitlists(_without_expired(loaded, now), now)
    decisions = []
    for command in commands:
        decision = command.apply(state, now)
        if decision.changed_slots:
            state = promote_waitlists(state.with_slots(decision.changed_slots), now)
        decisions.append(decision)
    updates = tuple(
        SlotUpdate(before, next_version(before, state.slots[slot_id], loaded.users, now))
        for slot_id, before in loaded.slots.items()
        if not state.slots[slot_id].change.is_empty
    )
    latest = state.with_slots(update.after for update in updates)
    return BatchDecision(tuple(decisions), latest.slots, updates, loaded.users)


def _without_expired(loaded: LoadedState, now: datetime) -> LoadedState:
    released = (without_expired(state, now) for state in loaded.slots.values())
    return loaded.with_slots(each for each in released if each is not loaded.slots[each.id])


def idempotency_records(
    commands: Sequence[SlotCommand[object]], decided: BatchDecision, now: datetime
) -> tuple[IdempotencyRecord, ...]:
    """Return a record for each accepted command that has an idempotency key."""
    return tuple(
        _to_record(key, command, CommandResult(decision.outcome, decided.slots), now)
        for command, decision in zip(commands, decided.decisions, strict=True)
        if decision.accepted and (key := command.idempotency_key)
    )


def _to_record(
    key: IdempotencyKey, command: SlotCommand[object], result: CommandResult[object], now: datetime
) -> IdempotencyRecord:
    return to_record(key, result.outcome, now, redacted_slots(result, command.user_ids))


def audit_notes(
    commands: Sequence[SlotCommand[object]], updates: Sequence[SlotUpdate]
) -> tuple[AuditNote, ...]:
    """Return the audit notes that the commands write about the changed slots."""
    notes = (command.audit_note(update) for command in commands for update in updates)
    return tuple(note for note in notes if note is not None)
