"""Deciding a batch of commands on the slots that were loaded for them, without any I/O."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import repeat
from operator import attrgetter

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult, Decision, LoadedState
from slotlock.domain.booking.rules.expiry import without_expired
from slotlock.domain.booking.rules.next_version import next_version
from slotlock.domain.booking.rules.promotion import promote_waitlists
from slotlock.domain.booking.rules.waitlist import end_waitlists
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.slots.write_set import SlotWrite
from slotlock.services.slot_command import SlotCommand

# The waiting users of a slot, without a call of Python.
_WAITING = attrgetter("loaded_waitlist")


@value_object
class BatchDecision:
    """One decision per command, in their order, and the slots as they are after all of them.

    `updates` are the slots to write, and `users` the contexts that the decisions are based on.
    `needs_write` says of each decision whether its outcome is false unless the updates are written.
    """

    decisions: tuple[Decision[object], ...]
    slots: Mapping[SlotId, SlotState]
    updates: tuple[SlotWrite, ...]
    users: UserContexts
    needs_write: tuple[bool, ...]

    @property
    def results(self) -> tuple[CommandResult[object], ...]:
        """One result per command, with the slots as they are after the whole batch."""
        outcomes = map(attrgetter("outcome"), self.decisions)
        return tuple(map(CommandResult, outcomes, repeat(self.slots)))


def decide_batch(
    loaded: LoadedState,
    commands: Sequence[SlotCommand[object]],
    now: datetime,
    *,
    ends_waitlists: bool = False,
) -> BatchDecision:
    """Decide the commands in order, each on the slots that the commands before it leave.

    Expired holds end first. A place that a command frees goes to the waiting list before the next
    command is decided. Only the sweeper ends the waiting lists of slots that have started.
    """
    state = promote_waitlists(_without_expired(loaded, now), now)
    if ends_waitlists:
        state = end_waitlists(state, now)
    promoted = _promoted_users(state) if state is not loaded else frozenset[UserId]()
    decisions, needs_write = [], []
    for command in commands:
        decision = command.apply(state, now)
        if decision.changed_slots:
            state = state.with_slots(decision.changed_slots)
            if any(map(_WAITING, decision.changed_slots)):
                state = promote_waitlists(state, now)
        decisions.append(decision)
        relies_on_others = bool(promoted) and not promoted.isdisjoint(command.user_ids)
        needs_write.append(bool(decision.changed_slots) or relies_on_others)
    updates, latest = _updates(loaded, state, now)
    return BatchDecision(tuple(decisions), latest, updates, loaded.users, tuple(needs_write))


def _promoted_users(after: LoadedState) -> frozenset[UserId]:
    """Return the users whose waiting ends with promotions, the only additions so far."""
    changes = [slot.change for slot in after.slots.values()]
    booked = {each.user_id for change in changes for each in change.added}
    ended = {each.entry.user_id for change in changes for each in change.ended_entries}
    return frozenset(booked | ended)


def _updates(
    before: LoadedState, after: LoadedState, now: datetime
) -> tuple[tuple[SlotWrite, ...], Mapping[SlotId, SlotState]]:
    """Return the slots to write, and all slots as they are then."""
    updates, latest = [], dict(after.slots)
    for slot_id, state in before.slots.items():
        if not latest[slot_id].change.is_empty:
            latest[slot_id] = next_version(state, latest[slot_id], before.users, now)
            updates.append(SlotWrite(state, latest[slot_id]))
    return tuple(updates), latest


def preview_each(
    loaded: LoadedState, commands: Sequence[SlotCommand[object]], now: datetime
) -> list[CommandResult[object] | Exception | None]:
    """Decide each command as if it were alone. The result is None if it needs a write.

    A command that raises an error gets the error.
    """
    state = promote_waitlists(_without_expired(loaded, now), now)
    promoted = _promoted_users(state) if state is not loaded else frozenset[UserId]()
    _, latest = _updates(loaded, state, now)
    results: list[CommandResult[object] | Exception | None] = []
    for command in commands:
        try:
            decision = command.preview(state, now)
        except Exception as error:  # concerns its own caller only
            results.append(error)
        else:
            relies_on_others = bool(promoted) and not promoted.isdisjoint(command.user_ids)
            if decision is None or relies_on_others:
                results.append(None)
            else:
                results.append(CommandResult(decision.outcome, latest))
    return results


def _without_expired(loaded: LoadedState, now: datetime) -> LoadedState:
    if not any(map(attrgetter("bookings"), loaded.slots.values())):
        return loaded
    released = [
        after
        for before in loaded.slots.values()
        if (after := without_expired(before, now)) is not before
    ]
    return loaded.with_slots(released) if released else loaded
