"""Guards of the admission queue, off one by one, and a worker that stops at its batches."""

import secrets
from datetime import datetime
from typing import Any

from slotlock.domain.booking import book as rules
from slotlock.domain.booking.book import BookingRequest
from slotlock.domain.booking.booking import Booking
from slotlock.domain.booking.decision import Decision, accept
from slotlock.domain.booking.outcomes import Booked
from slotlock.domain.booking.refusals import BookingRefusal
from slotlock.domain.booking.slot import Slot
from slotlock.infrastructure.redis.admission import partitions
from slotlock.infrastructure.redis.admission.scripts import ENQUEUE
from slotlock.infrastructure.redis.keys import ADMISSION_LOCK_PREFIX
from slotlock.infrastructure.redis.locks.leases import Lease, RedisLease
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.services.admission import batch
from slotlock.services.booking import book
from slotlock.services.booking.book import BookingPermissions
from tests.support.apps import pause_points
from tests.support.apps.pause_points import pause_if_selected, replace_everywhere

original_acquire, original_serve_batch = Locks.acquire, batch.serve_batch
EXISTING_TICKET_CHECK = "redis.call('hget', KEYS[2], ARGV[2])"


def skip_existing_ticket_check() -> None:
    """Each key has a place of its own in line, whoever sends it."""
    assert EXISTING_TICKET_CHECK in ENQUEUE
    replace_everywhere(ENQUEUE, ENQUEUE.replace(EXISTING_TICKET_CHECK, "false"))


async def _acquire_without_queue_lease(
    self: Locks, *names: str, wait_s: float = 0.0
) -> Lease | None:
    if names[0].startswith(ADMISSION_LOCK_PREFIX):
        return RedisLease((), "nobody's", 0)
    return await original_acquire(self, *names, wait_s=wait_s)


def serve_partitions_concurrently() -> None:
    """Every process is a consumer of every partition, as groups of streams are mostly used."""
    Locks.acquire = _acquire_without_queue_lease  # type: ignore[method-assign]
    partitions.CONSUMER = secrets.token_hex(4)


def _book_unconditionally(
    slot: Slot, request: BookingRequest, now: datetime
) -> Decision[Booked | BookingRefusal]:
    entry = rules._created_entry(slot, request, now)
    booking = Booking(request.booking_id, slot.id, request.user_id, (entry,))
    after = slot.with_booking(booking)
    return accept(Booked(booking, after), after)


async def _allow_everybody(*_: Any) -> BookingPermissions:
    return BookingPermissions({})


def _refuse_nobody(*_: Any) -> None:
    return None


def skip_revalidation() -> None:
    """What was found in order before the queue is in order behind it."""
    rules.book = _book_unconditionally
    replace_everywhere(book.check_booking_permissions, _allow_everybody)
    replace_everywhere(batch._user_refusal, _refuse_nobody)


GUARDS = {
    "existing-ticket": skip_existing_ticket_check,
    "queue-lease": serve_partitions_concurrently,
    "revalidation": skip_revalidation,
}


async def _serve_batch_after_pause(*arguments: Any) -> Any:
    await pause_if_selected("batch")
    await pause_if_selected("batches")
    pause_points._reached_points.discard("batches")
    return await original_serve_batch(*arguments)


def install_pauses() -> None:
    """Let a worker be stopped when it has taken a batch: the first one, or each of them."""
    replace_everywhere(original_serve_batch, _serve_batch_after_pause)
