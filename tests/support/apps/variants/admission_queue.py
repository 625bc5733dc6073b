"""Guards of the admission queue, and pause points before a batch is processed."""

import math
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Any

from slotlock.domain.booking.booking import Booking
from slotlock.domain.booking.booking_outcomes import Booked
from slotlock.domain.booking.booking_refusals import BookingRefusal
from slotlock.domain.booking.decision import Decision, accept
from slotlock.domain.booking.rules.book import BookingRequest, _created_entry, book
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.users.user import Caller
from slotlock.infrastructure.redis.admission import partitions
from slotlock.infrastructure.redis.admission.queue_scripts import ENQUEUE
from slotlock.infrastructure.redis.admission.ticket_index import KeyReservations
from slotlock.infrastructure.redis.keys import ADMISSION_LOCK_PREFIX
from slotlock.infrastructure.redis.locks.lock_leases import LockLease, RedisLockLease
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.services.admission import queued_batch
from slotlock.services.booking.permissions import (
    BookingPermissions,
    account_refusal,
    check_booking_permissions,
)
from tests.support.apps.pause_points import pause_if_selected, rearm, replace_everywhere

original_acquire, original_serve_batch = Locks.acquire, queued_batch.serve_batch
EXISTING_TICKET_CHECK = "known[2] and find_ticket(known[2], slot)"


def skip_existing_ticket_check() -> None:
    """Enqueue a request although its key already has a ticket."""
    assert EXISTING_TICKET_CHECK in ENQUEUE
    replace_everywhere(ENQUEUE, ENQUEUE.replace(EXISTING_TICKET_CHECK, "false"))


async def _reserve_for_everyone(self: KeyReservations, *_: str) -> bool:
    return True


def skip_key_reservation() -> None:
    """Queue requests with one key in the partitions of several slots."""
    KeyReservations.reserve = _reserve_for_everyone  # type: ignore[method-assign,assignment]


async def _never_held(*_: Any) -> bool:
    return False


def ignore_locked_keys() -> None:
    """Queue a request whose key another operation uses at the moment."""
    Locks.is_held = _never_held  # type: ignore[method-assign,assignment]


async def _acquire_without_queue_lease(
    self: Locks, *names: str, **options: Any
) -> LockLease | None:
    if names[0].startswith(ADMISSION_LOCK_PREFIX):
        return RedisLockLease((), "no owner", 0, math.inf)
    return await original_acquire(self, *names, **options)


def serve_partitions_concurrently() -> None:
    """Let every process consume every partition, as consumer groups usually do."""
    Locks.acquire = _acquire_without_queue_lease  # type: ignore[method-assign]
    partitions.CONSUMER = secrets.token_hex(4)


def _book_unconditionally(
    slot: SlotState, users: UserContexts, request: BookingRequest, now: datetime
) -> Decision[Booked | BookingRefusal]:
    entry = _created_entry(slot, users, request, now)
    booking = Booking(request.booking_id, slot.id, request.user_id, (entry,))
    after = slot.with_booking(booking)
    return accept(Booked(slot.id, booking), after)


async def _allow_everybody(_: Any, caller: Caller, *__: Any) -> BookingPermissions:
    return BookingPermissions(caller, {})


def _refuse_nobody(*_: Any) -> None:
    return None


def skip_revalidation() -> None:
    """Grant every queued request without applying the rules again."""
    replace_everywhere(book, _book_unconditionally)
    replace_everywhere(check_booking_permissions, _allow_everybody)
    replace_everywhere(account_refusal, _refuse_nobody)


GUARDS = {
    "existing-ticket": skip_existing_ticket_check,
    "key-reservation": skip_key_reservation,
    "locked-keys": ignore_locked_keys,
    "queue-lease": serve_partitions_concurrently,
    "revalidation": skip_revalidation,
}


async def _serve_batch_after_pause(*arguments: Any) -> Any:
    await pause_if_selected("batch")
    await pause_if_selected("batches")
    rearm("batches")
    return await original_serve_batch(*arguments)


def _install_pauses() -> None:
    replace_everywhere(original_serve_batch, _serve_batch_after_pause)


# Before the first batch is processed, or before each of them.
PAUSES: dict[str, Callable[[], None]] = dict.fromkeys(("batch", "batches"), _install_pauses)
