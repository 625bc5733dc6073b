"""Group commit: commands for different slots share one read, one write and one release.

A batch holds the lock of its own slot, and its write is conditional on the version of that slot
alone, so that batches do not depend on each other. What a group cannot do is served alone: commands
with an idempotency key, changes other than new bookings, decisions that depend on the user, and
whatever another writer or an error prevents.
"""

from collections.abc import Sequence
from datetime import datetime

from slotlock.domain.booking.decision import CommandResult, LoadedState
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.shared.values import value_object
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.services.caller_queue import LockedBatch
from slotlock.services.commands.batches import (
    BatchResult,
    publish_changes,
    serve_and_release,
)
from slotlock.services.container import Services
from slotlock.services.decisions import BatchDecision, decide_batch
from slotlock.services.slot_command import SlotCommand
from slotlock.services.slot_queries import slot_query

AnyCommand = SlotCommand[object]


@value_object
class CommandServer:
    """Serves the batches of the wait queues."""

    services: Services

    async def serve(self, batch: LockedBatch[AnyCommand]) -> tuple[CommandResult[object], ...]:
        """Execute a batch by itself: see `serve_and_release`."""
        return await serve_and_release(self.services, batch.lease, batch.commands)

    async def serve_each(
        self, batches: Sequence[LockedBatch[AnyCommand]]
    ) -> list[tuple[CommandResult[object], ...] | None]:
        """Execute the batches of different slots together: see `serve_each`."""
        return await serve_each(self.services, batches)


async def serve_each(
    services: Services, batches: Sequence[LockedBatch[AnyCommand]]
) -> list[tuple[CommandResult[object], ...] | None]:
    """Execute the batches of different slots and release their leases.

    The result is None for a batch that has to be served alone. Nothing of it is written, or its
    write is unconfirmed, and its lease is held.
    """
    served: Sequence[BatchResult | None] = ()
    try:
        served = await _decide_and_commit_each(services, batches)
    except BaseException:
        await services.locks.release_each([(batch.lease, ()) for batch in batches])
        raise
    await services.locks.release_each(
        [
            (batch.lease, result.events)
            for batch, result in zip(batches, served, strict=True)
            if result is not None
        ]
    )
    return [None if result is None else result.results for result in served]


async def _decide_and_commit_each(
    services: Services, batches: Sequence[LockedBatch[AnyCommand]]
) -> list[BatchResult | None]:
    now = services.now()
    try:
        decided = await _decide_each(services, batches, now)
        updates = [update for each in decided if each is not None for update in each.updates]
        results = await services.slot_writer.add_bookings(updates) if updates else []
    except Exception as error:
        if is_unavailable(error):
            raise
        return [None for _ in batches]  # one of them is to blame, and the others are not
    written = {
        update.before.id for update, is_written in zip(updates, results, strict=True) if is_written
    }
    return [
        _finish(services, each)
        if each is not None and all(update.before.id in written for update in each.updates)
        else None
        for each in decided
    ]


async def _decide_each(
    services: Services, batches: Sequence[LockedBatch[AnyCommand]], now: datetime
) -> list[BatchDecision | None]:
    queries = [slot_query(batch.slot_id, batch.commands, now) for batch in batches]
    slots = await services.slots.find_each_for_update(queries)
    return [
        _decide(slots.get(query.slot_id), batch.commands, now)
        for query, batch in zip(queries, batches, strict=True)
    ]


def _decide(
    state: SlotState | Exception | None, commands: Sequence[AnyCommand], now: datetime
) -> BatchDecision | None:
    """Return the decision of a batch, or None if it has to be served alone."""
    if isinstance(state, Exception) or (state is not None and state.slot.needs_user_context):
        return None
    if any(command.idempotency_key is not None for command in commands):
        return None
    decided = decide_batch(LoadedState({state.id: state} if state else {}), commands, now)
    return decided if all(u.after.change.only_adds_bookings for u in decided.updates) else None


def _finish(services: Services, decided: BatchDecision) -> BatchResult:
    services.full_slots.observe(decided.slots.values())
    return BatchResult(decided.results, publish_changes(services, decided.updates))
