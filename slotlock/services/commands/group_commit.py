"""Group commit: commands for different slots share their reads, writes and releases.

A batch holds the lock of its own slot, and its write is conditional on the version of that slot.
Batches that only add bookings to their slots share one `update` command, and all other changes of a
group share one transaction. What a group cannot do is served alone: a batch that concerns a user or
an idempotency key of another one, edits by organizers, and whatever another writer or an error
prevents. If the transaction fails, each of its batches is served alone. A batch whose update
MongoDB did not confirm in time is settled alone, so that the others need not wait.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.decision import CommandResult, LoadedState
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.shared.value_object import value_object
from slotlock.infrastructure.mongo.client import CommitUnknownError, is_unavailable
from slotlock.infrastructure.mongo.slots.user_context_loader import users_with_new_versions
from slotlock.infrastructure.mongo.slots.write_set import (
    CommitResult,
    WriteSet,
    check_written,
    combine,
)
from slotlock.infrastructure.telemetry import tracing
from slotlock.services.batch_decision import BatchDecision, decide_batch
from slotlock.services.caller_queue import LockedBatch, Served
from slotlock.services.commands.commit import (
    BatchResult,
    decide_and_commit,
    publish_changes,
    serve_and_release,
    write_set,
)
from slotlock.services.container import Services
from slotlock.services.slot_command import SlotCommand, slot_query

AnyCommand = SlotCommand[object]
# What became of the changes of each slot. One without a result is served alone.
Committed = Mapping[SlotId, CommitResult | Exception]


@value_object
class Unconfirmed:
    """A decision whose update MongoDB did not confirm in time."""

    decision: BatchDecision


@value_object
class CommandBatchServer:
    """Serves the batches of the caller queues."""

    services: Services

    async def serve(self, batch: LockedBatch[AnyCommand]) -> tuple[CommandResult[object], ...]:
        """Execute a batch by itself: see `serve_and_release`."""
        return await serve_and_release(self.services, batch.lease, batch.commands)

    async def serve_group(self, batches: Sequence[LockedBatch[AnyCommand]]) -> list[Served]:
        """Execute the batches of different slots together, and release their leases.

        A batch that has to be served alone has a function that does so, and its lease is held. A
        batch that failed has its error.
        """
        locks = self.services.locks
        try:
            served = await _decide_and_commit_each(self.services, batches)
        except BaseException:
            await locks.release_each([(batch.lease, ()) for batch in batches])
            raise
        await locks.release_each(
            [
                (batch.lease, result.events if isinstance(result, BatchResult) else ())
                for batch, result in zip(batches, served, strict=True)
                if isinstance(result, BatchResult | Exception)
            ]
        )
        return [
            result.results
            if isinstance(result, BatchResult)
            else _to_served(self.services, batch, result)
            for batch, result in zip(batches, served, strict=True)
        ]


def _to_served(
    services: Services,
    batch: LockedBatch[AnyCommand],
    result: Exception | Unconfirmed | None,
) -> Served:
    match result:
        case Unconfirmed(decision):
            return partial(_settle_and_release, services, batch, decision)
        case None:
            return partial(serve_and_release, services, batch.lease, batch.commands)
        case error:
            return error


async def _settle_and_release(
    services: Services, batch: LockedBatch[AnyCommand], decision: BatchDecision
) -> tuple[CommandResult[object], ...]:
    """Return the results of a decision that is written after all, or decide again."""
    result: BatchResult | None = None
    try:
        if check_written(await services.slot_writer.adder.settle(decision.updates[0])):
            result = _finish(services, decision)
        else:
            result = await decide_and_commit(services, batch.commands)
        return result.results
    finally:
        await services.locks.release(batch.lease, *(result.events if result else ()))


async def _decide_and_commit_each(
    services: Services, batches: Sequence[LockedBatch[AnyCommand]]
) -> list[BatchResult | Exception | Unconfirmed | None]:
    now = services.now()
    try:
        decided = await _decide_each(services, batches, now)
        changes = {
            batch.slot_id: write_set(batch.commands, decision, now)
            for batch, decision in zip(batches, decided, strict=True)
            if decision is not None and decision.updates
        }
    except Exception as error:
        if is_unavailable(error):
            raise
        return [None for _ in batches]  # one of them is to blame, and the others are not
    committed: Committed = {}
    if changes:
        with tracing.span("slotlock.commit"):
            committed = await _commit_each(services, changes)
    results: list[BatchResult | Exception | Unconfirmed | None] = []
    for batch, decision in zip(batches, decided, strict=True):
        write = committed.get(batch.slot_id)
        if decision and (not decision.updates or write is CommitResult.WRITTEN):
            results.append(_finish(services, decision))
        elif decision and write is CommitResult.UNKNOWN:
            results.append(Unconfirmed(decision))
        else:  # None is served alone
            results.append(write if isinstance(write, Exception) else None)
    return results


async def _decide_each(
    services: Services, batches: Sequence[LockedBatch[AnyCommand]], now: datetime
) -> list[BatchDecision | None]:
    """Decide each batch. The decision is None for a batch that has to be served alone."""
    queries = [slot_query(batch.slot_id, batch.commands, now) for batch in batches]
    with tracing.span("slotlock.load"):
        found = await services.slots.find_each_for_update(queries)
        slots = {id_: state for id_, state in found.items() if isinstance(state, SlotState)}
        users = (await services.slots.with_user_contexts(slots, queries)).users
    with tracing.span("slotlock.decide"):
        decided = [
            _decide(found.get(batch.slot_id), users, batch.commands, now) for batch in batches
        ]
        return without_overlaps(batches, decided)


def _decide(
    state: SlotState | Exception | None,
    users: UserContexts,
    commands: Sequence[AnyCommand],
    now: datetime,
) -> BatchDecision | None:
    if isinstance(state, Exception):
        return None
    loaded = LoadedState({} if state is None else {state.id: state}, users)
    return decide_batch(loaded, commands, now)


def without_overlaps(
    batches: Sequence[LockedBatch[AnyCommand]], decided: Sequence[BatchDecision | None]
) -> list[BatchDecision | None]:
    """Return the decisions of which none relies on what another one changes, None for others.

    Two batches overlap if they book for the same user where other bookings count, or if they have
    the same idempotency key. The later one is served alone, after the write of the group.
    """
    seen = set[str]()
    remaining: list[BatchDecision | None] = []
    for batch, decision in zip(batches, decided, strict=True):
        own, is_repeated = set[str](), False
        for command in batch.commands:
            if key := command.idempotency_key:
                is_repeated = is_repeated or key.record_id in own
                own.add(key.record_id)
        for update in decision.updates if decision and decision.users.by_user else ():
            own |= users_with_new_versions(update.after)
        remaining.append(None if is_repeated or not seen.isdisjoint(own) else decision)
        seen |= own
    return remaining


async def _commit_each(services: Services, changes: Mapping[SlotId, WriteSet]) -> Committed:
    plain = {id_: each for id_, each in changes.items() if each.only_adds_to_one_slot}
    if len(plain) == len(changes):
        return await _add_bookings(services, plain)
    others = {
        id_: each
        for id_, each in changes.items()
        if id_ not in plain and not each.must_commit_alone
    }
    added, committed = await asyncio.gather(
        _add_bookings(services, plain), _commit_together(services, others)
    )
    return {**added, **committed}


async def _add_bookings(services: Services, changes: Mapping[SlotId, WriteSet]) -> Committed:
    if not changes:
        return {}
    try:
        written = await services.slot_writer.adder.add_bookings(
            [each.slot_writes[0] for each in changes.values()]
        )
    except Exception as error:
        return dict.fromkeys(changes, error) if is_unavailable(error) else {}
    return dict(zip(changes, written, strict=True))


async def _commit_together(services: Services, changes: Mapping[SlotId, WriteSet]) -> Committed:
    if not changes:
        return {}
    try:
        combined = combine(list(changes.values()))
        is_written = check_written(await services.slot_writer.commit_group(combined))
    except CommitUnknownError as error:
        return dict.fromkeys(changes, error)
    except Exception:  # nothing is written, and served alone, each has its own error
        return {}
    return dict.fromkeys(changes, CommitResult.WRITTEN) if is_written else {}


def _finish(services: Services, decision: BatchDecision) -> BatchResult:
    services.free_place_hints.observe(decision.slots.values())
    return BatchResult(decision.results, publish_changes(services, decision.updates))
