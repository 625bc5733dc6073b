"""Guards of the admission queue, off one by one, and a worker that stops at its batches."""

import secrets
from datetime import datetime
from typing import Any

from slotlock.desk import admitted, booking
from slotlock.desk.booking import Allowed
from slotlock.domain import booking as rules
from slotlock.domain.bookings import Booking
from slotlock.domain.outcomes import Booked
from slotlock.domain.slots import Slot
from slotlock.stores import queue_partitions
from slotlock.stores.locks import Lease, Locks
from slotlock.stores.queue_scripts import ADD
from tests.support.variants import points
from tests.support.variants.points import instead, reach

acquire, serve_batch = Locks.acquire, admitted.serve_batch
CLAIM = "redis.call('hget', KEYS[2], ARGV[2])"


def who_stands_there_nobody_knows() -> None:
    """Each key has a place of its own in line, whoever sends it."""
    assert CLAIM in ADD
    instead(ADD, ADD.replace(CLAIM, "false"))


async def _served_by_all(self: Locks, *slot_ids: Any, wait_s: float = 0.0) -> Lease | None:
    if slot_ids[0].startswith("queue:"):
        return Lease((), "nobody's", 0)
    return await acquire(self, *slot_ids, wait_s=wait_s)


def consumers_side_by_side() -> None:
    """Every process is a consumer of every partition, as groups of streams are mostly used."""
    Locks.acquire = _served_by_all  # type: ignore[method-assign]
    queue_partitions.SERVER = secrets.token_hex(4)


def _granted(slot: Slot, party: Any, now: datetime) -> tuple[Slot, Booked]:
    entry = rules._first_entry(slot, party, now)
    booking = Booking(party.booking_id, slot.id, party.user_id, (entry,))
    after = slot.adding(booking)
    return after, Booked(booking, after)


async def _anybody(*_: Any) -> Allowed:
    return Allowed({})


def _nobody(*_: Any) -> None:
    return None


def trusted_line() -> None:
    """What was found in order before the queue is in order behind it."""
    rules.book = _granted
    instead(booking.allowed_parties, _anybody)
    instead(admitted._barred, _nobody)


GUARDS = {
    "claim": who_stands_there_nobody_knows,
    "lease": consumers_side_by_side,
    "validation": trusted_line,
}


async def _stopping(*arguments: Any) -> Any:
    await reach("batch")
    await reach("batches")
    points._reached.discard("batches")
    return await serve_batch(*arguments)


def pausable() -> None:
    """Let a worker be stopped when it has taken a batch: the first one, or each of them."""
    instead(serve_batch, _stopping)
