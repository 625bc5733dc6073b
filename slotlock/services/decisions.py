"""Deciding a batch of commands on the slots that were loaded for them, without any I/O."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult, Decision, LoadedState
from slotlock.domain.booking.rules.expiry import without_expired
from slotlock.domain.booking.rules.next_version import next_version
from slotlock.domain.booking.rules.promotion import promote_waitlists
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.slots.change_set import SlotUpdate
from slotlock.services.slot_command import SlotCommand


@value_object
class BatchDecision:
    """One decision per command, in their order, and the slots as they are after all of them.

    `updates` are the slots to write, and `users` the contexts that the decisions are based on.
    `needs_write` says of each decision whether its outcome is false unless the updates are written.
    """

    decisions: tuple[Decision[object], ...]
    slots: Mapping[SlotId, SlotState]
    updates: tuple[SlotUpdate, ...]
    users: UserContexts
    needs_write: tuple[bool, ...]

    @property
    def results(self) -> tuple[CommandResult[object], ...]:
        """One result per command, with the slots as they are after the whole batch."""
        return tuple([CommandResult(decision.outcome, self.slots) for decision in self.decisions])


def decide_batch(
    loaded: LoadedState, commands: Sequence[SlotCommand[object]], now: datetime
) -> BatchDecision:
    """Decide the commands in order, each on the slots that the commands before it leave.

    Expired holds end first. A place that a command frees goes to the waiting list before the next
    command is decided.
    """
    state = promote_waitlists(_without_expired(loaded, now), now)
    promoted = _promoted_users(loaded, state)
    decisions, needs_write = [], []
    for command in commands:
        decision = command.apply(state, now)
        needs_write.append(_needs_write(command, decision, promoted))
        if decision.changed_slots:
            state = promote_waitlists(state.with_slots(decision.changed_slots), now)
        decisions.append(decision)
    updates, users = _updates(loaded, state, now), loaded.users
    latest = _latest(state, updates)
    return BatchDecision(tuple(decisions), latest, updates, users, tuple(needs_write))


def _promoted_users(before: LoadedState, after: LoadedState) -> frozenset[UserId]:
    """Return the users whose waiting ends with promotions, the only additions since `before`."""
    if after is before:
        return frozenset()
    changes = [slot.change for slot in after.slots.values()]
    booked = {each.user_id for change in changes for each in change.added}
    ended = {each.entry.user_id for change in changes for each in change.ended_entries}
    return frozenset(booked | ended)


def _needs_write(
    command: SlotCommand[object], decision: Decision[object], promoted: frozenset[UserId]
) -> bool:
    """Return whether an outcome relies on a change: its own, or the promotion of its user."""
    if decision.changed_slots:
        return True
    return bool(promoted) and not promoted.isdisjoint(command.user_ids)


def _updates(before: LoadedState, after: LoadedState, now: datetime) -> tuple[SlotUpdate, ...]:
    updates = [
        SlotUpdate(state, next_version(state, after.slots[slot_id], before.users, now))
        for slot_id, state in before.slots.items()
        if not after.slots[slot_id].change.is_empty
    ]
    return tuple(updates)


def _latest(state: LoadedState, updates: Sequence[SlotUpdate]) -> Mapping[SlotId, SlotState]:
    """Return the slots as they are after the updates."""
    latest = dict(state.slots)
    for update in updates:
        latest[update.before.slot.id] = update.after
    return latest


def preview_each(
    loaded: LoadedState, commands: Sequence[SlotCommand[object]], now: datetime
) -> list[CommandResult[object] | Exception | None]:
    """Decide each command as if it were alone. The result is None if it needs a write.

    A command that raises an error gets the error.
    """
    state = promote_waitlists(_without_expired(loaded, now), now)
    promoted = _promoted_users(loaded, state)
    latest = _latest(state, _updates(loaded, state, now))
    results: list[CommandResult[object] | Exception | None] = []
    for command in commands:
        try:
            decision = command.apply(state, now)
        except Exception as error:  # concerns its own caller only
            results.append(error)
        else:
            needs_write = _needs_write(command, decision, promoted)
            results.append(None if needs_write else CommandResult(decision.outcome, latest))
    return results


def _without_expired(loaded: LoadedState, now: datetime) -> LoadedState:
    released = [
        after
        for before in loaded.slots.values()
        if (after := without_expired(before, now)) is not before
    ]
    return loaded.with_slots(released) if released else loaded
