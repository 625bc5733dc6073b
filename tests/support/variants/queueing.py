"""Guards of the admission queue, switched off one by one, and requests that harm their servers."""

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from slotlock.desk import admitted, admitting
from slotlock.desk.booking import Asking
from slotlock.desk.desk import Desk
from slotlock.domain.bookings import SlotId
from slotlock.domain.tickets import RequestLost
from slotlock.stores import mongo, queue_partitions
from slotlock.stores.answers import Answers, KeptAnswer
from slotlock.stores.leases import Lease
from slotlock.stores.locks import Locks
from slotlock.stores.queue_partitions import Entry, Partition
from tests.support.variants.points import instead, reach

NEVER = 1_000_000
# More than those after which a request that fails by itself is set aside.
TRIES = 2 * len(admitting.TRIED_AGAIN_S)
serve_batch, keep_outcomes = admitted.serve_batch, admitted._keep
serve_line = admitting._serve_line
take, finish = Partition.take, Partition.finish
keep, acquire, request_of = Answers.keep, Locks.acquire, Asking.request
asking: Any = admitted._Visitor.asking
batches: list[SlotId] = []


async def _acknowledged_at_once(self: Partition) -> list[Entry]:
    entries = await take(self)
    for entry in entries:
        if entry.request is not None:
            await finish(self, entry.request.slot_id, [entry])
    return entries


def acknowledged_when_taken() -> None:
    """A request leaves the line when it is taken, whatever becomes of it then (D3)."""
    Partition.take = _acknowledged_at_once  # type: ignore[method-assign]


async def _acknowledged_whatever_happens(
    desk: Desk, partition: Partition, lease: Lease, slot_id: SlotId, line: Sequence[Entry]
) -> None:
    try:
        await serve_batch(desk, slot_id, line)
    finally:
        await partition.finish(slot_id, line)


def acknowledged_in_finally() -> None:
    """A request leaves the line when it was served and when that failed (D3)."""
    instead(admitting._serve_line, _acknowledged_whatever_happens)


async def _nothing_known(desk: Desk, run: Sequence[Any]) -> list[Any]:
    return [None for _ in run]


def _without_slip(self: Any) -> Asking:
    found: Asking = asking.fget(self)
    return replace(found, slip=None)


def requests_without_keys() -> None:
    """Who serves a request neither looks for its answer nor keeps one with what is written."""
    instead(admitted._known, _nothing_known)
    admitted._Visitor.asking = property(_without_slip)  # type: ignore[assignment]


async def _keep_no_loss(self: Answers, answer: KeptAnswer) -> None:
    if not isinstance(answer.outcome, RequestLost):
        await keep(self, answer)


def loss_unmarked() -> None:
    """That a request is lost is told, and nobody is kept from granting it."""
    Answers.keep = _keep_no_loss  # type: ignore[method-assign]


def suspects_together() -> None:
    """What may be what kills its servers is served beside others for ever."""
    queue_partitions.SUSPECT_AFTER = NEVER


GUARDS = {
    "ack-after": acknowledged_when_taken,
    "ack-when-served": acknowledged_in_finally,
    "queue-keys": requests_without_keys,
    "lost-mark": loss_unmarked,
    "suspects": suspects_together,
}


def holds_raise() -> None:
    """No guard but a mishap: whoever asks for a hold is an error when it is decided on."""

    def raising(self: Asking, *arguments: Any) -> Any:
        if self.hold:
            raise RuntimeError("there is something about this one")
        return request_of(self, *arguments)

    Asking.request = raising  # type: ignore[method-assign,assignment]
    _tried_again_soon()


def _tried_again_soon() -> None:
    admitting.TRIED_AGAIN_S = (0.05,) * len(admitting.TRIED_AGAIN_S)  # type: ignore[assignment]


def holds_kill() -> None:
    """No guard but a mishap: whoever asks for a hold is the death of who decides on it."""

    def deadly(self: Asking, *arguments: Any) -> Any:
        if self.hold:
            os.kill(os.getpid(), signal.SIGKILL)
        return request_of(self, *arguments)

    Asking.request = deadly  # type: ignore[method-assign,assignment]


def impatient() -> None:
    """No guard: MongoDB is given up after half a second, and requests that fail after less, so that
    many tries take little time.
    """
    mongo.SELECTION_TIMEOUT_MS = mongo.OPERATION_TIMEOUT_MS = 500
    _tried_again_soon()


MISHAPS = {"holds-raise": holds_raise, "holds-kill": holds_kill, "impatient": impatient}
POINTS = ("taken", "granted", "kept", "retried", "overslept")


async def _late_batch(*arguments: Any) -> Any:
    batches.append(arguments[1])
    await reach("taken")
    if len(batches) > TRIES:
        await reach("retried")
    return await serve_batch(*arguments)


async def _late_line(desk: Desk, partition: Partition, lease: Lease, *more: Any) -> None:
    if await reach("overslept"):
        await lease.lost.wait()
    await serve_line(desk, partition, lease, *more)


async def _late_keep(*arguments: Any) -> None:
    await reach("granted")
    await keep_outcomes(*arguments)


async def _late_finish(self: Partition, *arguments: Any) -> None:
    await reach("kept")
    await finish(self, *arguments)


def pausable() -> None:
    """Let who serves the queue be stopped before the decision, after the grants, after all; when
    they tried many times; and until they have lost their turn.
    """
    instead(serve_batch, _late_batch)
    instead(serve_line, _late_line)
    instead(keep_outcomes, _late_keep)
    Partition.finish = _late_finish  # type: ignore[method-assign,assignment]
