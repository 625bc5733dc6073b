"""Serving the admission queue: all that waits for a slot as one batch, through the one act.

Each partition is served by one process at a time, so that places go in order of arrival. A request
leaves the line when its outcome is written; whoever dies before that leaves it to the next, who
finds what was written under its key.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from typing import Any

from slotlock.desk.admitted import LARGEST_BATCH, serve_batch
from slotlock.desk.desk import Desk
from slotlock.domain.bookings import SlotId
from slotlock.domain.tickets import KNOWN_FOR
from slotlock.stores.leases import Lease
from slotlock.stores.locks import Locks
from slotlock.stores.mongo import is_away
from slotlock.stores.queue_partitions import Entry, Partition
from slotlock.stores.redis import RedisAwayError

log = logging.getLogger("slotlock.queue")

# What dies while it serves is replaced after so long.
TURN_TTL_MS = 2_000
LONGEST_WAIT_S = 10.0
# A turn ends, so that several processes share the partitions; the spread keeps the turns of one
# process from ending together.
TURN_S = (1.0, 3.0)
AWAY_S = 0.25
FINISHED_WITHIN_S = 5.0
# Served alone and without an outcome, a request is tried again after so many seconds each time,
# and then set aside.
TRIED_AGAIN_S = (0.25, 1.0, 3.0)
MOST_DELIVERIES = 6


@contextlib.asynccontextmanager
async def admitting(desk: Desk, turns: Locks) -> AsyncIterator[None]:
    """Serve the queue for as long as this lasts, in turn with the other processes."""
    partitions = range(desk.queue.partitions)
    tasks = [asyncio.create_task(_serve_for_ever(desk, turns, number)) for number in partitions]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _serve_for_ever(desk: Desk, turns: Locks, number: int) -> None:
    partition = Partition(desk.queue.line, number)
    while True:
        try:
            lease = await turns.acquire(SlotId(f"queue:{number}"), wait_s=LONGEST_WAIT_S)
            if lease is not None:
                await _serve_in_turn(desk, turns, partition, lease)
        except RedisAwayError:
            await asyncio.sleep(AWAY_S)
        except Exception as error:
            log.exception("partition %s of the queue was not served", number, exc_info=error)
            await asyncio.sleep(AWAY_S)


async def _serve_in_turn(desk: Desk, turns: Locks, partition: Partition, lease: Lease) -> None:
    try:
        if lease.token is None:
            raise RedisAwayError("there is no queue")
        # Each look counts as a delivery, and who lost the turn serves nobody.
        while not lease.lost.is_set() and (entries := await partition.unfinished()):
            await _to_the_end(_serve(desk, partition, lease, entries))
        clock = asyncio.get_running_loop().time
        until = clock() + random.uniform(*TURN_S)  # noqa: S311
        while clock() < until and not lease.lost.is_set():
            await _to_the_end(_serve(desk, partition, lease, await partition.take()))
    finally:
        await turns.release(lease)


async def _to_the_end(serving: Coroutine[Any, Any, None]) -> None:
    """Let a process that stops finish what it has begun, for a while."""
    task = asyncio.create_task(serving)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=FINISHED_WITHIN_S)
        task.cancel()
        raise


async def _serve(desk: Desk, partition: Partition, lease: Lease, entries: Sequence[Entry]) -> None:
    """Serve requests until each has its outcome, or is set aside."""
    lines: dict[SlotId, list[Entry]] = {}
    for entry in entries:
        if reason := _unfit(desk, entry):
            await _set_aside(partition, entry, reason)
        elif entry.request is not None:
            lines.setdefault(entry.request.slot_id, []).append(entry)
    served = (_serve_line(desk, partition, lease, slot_id, line) for slot_id, line in lines.items())
    for error in await asyncio.gather(*served, return_exceptions=True):
        if isinstance(error, BaseException):
            raise error


def _unfit(desk: Desk, entry: Entry) -> str | None:
    if entry.request is None:
        return "it is no request of slotlock's"
    if desk.now() >= entry.asked_at + KNOWN_FOR:
        return "it is too old: its ticket is forgotten, and so may be what was answered"
    if entry.deliveries > MOST_DELIVERIES:
        return f"it was taken {entry.deliveries} times and never answered"
    return None


async def _serve_line(
    desk: Desk,
    partition: Partition,
    lease: Lease,
    slot_id: SlotId,
    line: Sequence[Entry],
    pauses: Iterator[float] | None = None,
) -> None:
    left, most = list(line), LARGEST_BATCH
    # Of the whole line: where each fails by itself, what fails is the slot.
    pauses = iter(TRIED_AGAIN_S) if pauses is None else pauses
    while left and not lease.lost.is_set():
        try:
            done = await serve_batch(desk, slot_id, left, most)
            await partition.finish(slot_id, done)
            left = left[len(done) :]
            if done:
                most = min(2 * most, LARGEST_BATCH)
            elif most > 1:  # one of them may be kept from it for long: a page that others turn
                most = max(min(most, len(left)) // 2, 1)
            else:
                await asyncio.sleep(AWAY_S)
        except RedisAwayError:
            raise
        except Exception as error:
            # Where no write succeeds it is no request's own; or fewer may be done in the time that
            # all are not.
            if is_away(error) or not await desk.trials.succeed():
                most = max(most // 2, 1)
                await asyncio.sleep(AWAY_S)
            elif len(left) > 1:  # one of them, perhaps, and the others shall not suffer for it
                for entry in left:
                    await _serve_line(desk, partition, lease, slot_id, [entry], pauses)
                return
            elif (pause := next(pauses, None)) is not None:
                await asyncio.sleep(pause)
            else:
                log.warning("a request for slot %s failed", slot_id, exc_info=error)
                await _set_aside(partition, left[0], f"{type(error).__name__}: {error}"[:500])
                return


async def _set_aside(partition: Partition, entry: Entry, reason: str) -> None:
    log.error("request %s of the queue was set aside: %s", entry.id, reason)
    await partition.set_aside(entry, reason)
