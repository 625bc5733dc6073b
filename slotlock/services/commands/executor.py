"""Executing commands: alone, with the others of their slot, or on a preview without a lock.

The calls of `bookSlot`, from the resolver to the domain rule: `book_slot`, `execute_booking` and
`execute_if_permitted` (services/booking/book), `execute` (here), `CallerQueues.submit`
(services/caller_queues), `serve_group` (group_commit), `decide_batch` (batch_decision),
`BookSlotCommand.apply` and `book` (domain/booking/rules). `serve_group` writes with
`BookingAdder.add_bookings`, or with `SlotWriter.commit_group` if more than bookings of one slot is
written. What it cannot do passes through `decide_and_commit` (commit) and `SlotWriter.commit`. A
command for several slots or for a team passes through `run_with_lock` instead of `CallerQueues`.
With an idempotency key, `execute_once` (idempotency) comes before `execute_if_permitted`.
"""

from collections.abc import Sequence
from typing import TypeVar

from slotlock.domain.admission.tickets import RequestLost
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import Locked
from slotlock.domain.booking.decision import CommandResult
from slotlock.infrastructure.request_deadline import WaitDeadline, allow_wait
from slotlock.services.batch_decision import BatchDecision, decide_batch
from slotlock.services.commands.commit import (
    load_slots,
    locked_result,
    serve_and_release,
)
from slotlock.services.commands.group_commit import CommandBatchServer
from slotlock.services.container import Services
from slotlock.services.slot_command import SlotCommand, slot_ids_of

Outcome = TypeVar("Outcome")

# No response waits for the release of a lock: the next request, sent to another process, may come
# before it. So the first failed acquisition does not show that the slot is still being changed.
ACQUISITIONS_WITHOUT_WAIT = 2


async def execute(
    services: Services, command: SlotCommand[Outcome], wait_s: float = 0.0
) -> CommandResult[Outcome]:
    """Execute one command and return its result.

    The outcome is Locked if the command would change a slot, but the slot stays locked for the
    whole wait or other writers win every attempt. The write is a single one, conditional on the
    versions that were read: if the lease expires or the process dies, it has happened completely or
    not at all.

    The deadline of the request ends the execution, and is later by the wait.
    """
    result: CommandResult[object] | None = None
    slot_ids = command.slot_ids
    is_batched = len(slot_ids) == 1 and not command.team_versions
    if wait_s > 0:
        allow_wait(wait_s)
    elif is_batched and services.free_place_hints.remaining(slot_ids[0]) == 0:
        # While the slot is full, its lock is not needed. The result is None if a write is.
        result = await services.previews.decide(command)
    if result is None and is_batched:
        result = await _execute_in_batch(services, slot_ids[0], command, wait_s)
    elif result is None:
        result = await _execute_alone(services, command, wait_s)
    if isinstance(result.outcome, RequestLost):
        # A ticket has reported the loss of this request meanwhile: a retry finds that.
        result = locked_result(command)
    return command.check_result(result)


async def _execute_alone(
    services: Services, command: SlotCommand[object], wait_s: float
) -> CommandResult[object]:
    """Execute a command for several slots, or one that a team permits."""
    deadline = WaitDeadline.after(wait_s)
    if len(command.slot_ids) > 1:
        # The locks of several slots block many callers: a command without a write takes none.
        decided = await preview(services, command)
        if not decided.updates:
            return decided.results[0]
    while results := await run_with_lock(services, [command], deadline.remaining_s):
        # A team may have changed: the caller checks its permission again before the next attempt.
        is_retryable = isinstance(results[0].outcome, Locked) and not command.team_versions
        if not (is_retryable and deadline.remaining_s):
            return results[0]
    return await _preview_without_lock(services, command)


async def _execute_in_batch(
    services: Services, slot_id: SlotId, command: SlotCommand[object], wait_s: float
) -> CommandResult[object]:
    """Execute a command for one slot together with the others that reach the slot with it."""
    server = CommandBatchServer(services)
    attempts_left = 1 if wait_s > 0 else ACQUISITIONS_WITHOUT_WAIT
    while True:
        result = await services.caller_queues.submit(slot_id, command, wait_s, server)
        if result is not None:
            return result
        attempts_left -= 1
        refused = await services.previews.decide(command)
        if refused is not None:
            return refused
        if not attempts_left:
            return locked_result(command)


async def run_with_lock(
    services: Services, commands: Sequence[SlotCommand[object]], wait_s: float
) -> tuple[CommandResult[object], ...] | None:
    """Execute the commands while holding their locks; None if these were not acquired in time."""
    lease = await services.locks.acquire(*slot_ids_of(commands), wait_s=wait_s)
    return None if lease is None else await serve_and_release(services, lease, commands)


async def preview(services: Services, command: SlotCommand[object]) -> BatchDecision:
    """Decide a command on the current slots without writing anything."""
    now = services.now()
    return decide_batch(await load_slots(services, [command], now), [command], now)


async def _preview_without_lock(
    services: Services, command: SlotCommand[object]
) -> CommandResult[object]:
    """Return the outcome without the lock; Locked if the command needs a write.

    A refusal needs no lock: the caller of a full slot learns that it is full, not to retry.
    """
    decided = await preview(services, command)
    if any(decided.needs_write):
        return locked_result(command)
    return decided.results[0]
