"""What a request answers if it fails after a write, or while another request may write for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import pytest
from pymongo.errors import ServerSelectionTimeoutError

from slotlock.auth import accounts
from slotlock.domain.admission.tickets import RequestBookingOutcome, Ticket, TicketStatus
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import QueueFull
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.users.user import Caller, Role
from slotlock.infrastructure.mongo import concurrency_limiter
from slotlock.infrastructure.mongo.client import (
    SLOTS_CONCURRENCY,
    UNKNOWN_COMMIT_LABEL,
    USERS_CONCURRENCY,
    CommitUnknownError,
    may_have_written,
)
from slotlock.infrastructure.mongo.concurrency_limiter import ConcurrencyLimiter
from slotlock.infrastructure.redis.admission.admission_queue import AdmissionQueue, QueuedBooking
from slotlock.infrastructure.redis.admission.partitions import StreamEntry
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.keys import idempotency_lock
from slotlock.services.admission import enqueue
from slotlock.services.admission.enqueue import PriorTicket
from slotlock.services.admission.queued_batch import serve_batch
from slotlock.services.booking import waitlist
from slotlock.services.booking.book import BookingOptions, BookSlotCommand
from slotlock.services.commands import idempotency
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey
from tests.support.domain.builders import NOW
from tests.support.stores.late_store import ADA, PASSWORD, LateStore, short_timeouts, store
from tests.support.stores.users import new_email

__all__ = ["short_timeouts", "store"]


def test_a_commit_that_no_server_could_repeat_may_have_happened() -> None:
    error = ServerSelectionTimeoutError("no primary")
    assert not may_have_written(error)
    error._add_error_label(UNKNOWN_COMMIT_LABEL)
    assert may_have_written(error)


@asynccontextmanager
async def overloaded(
    limiter: ConcurrencyLimiter, max_concurrency: int, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """Let operations wait for MongoDB in vain."""
    monkeypatch.setattr(concurrency_limiter, "WAIT_TIMEOUT_S", 0.05)
    ended = asyncio.Event()
    occupied = [asyncio.create_task(limiter.run(ended.wait)) for _ in range(max_concurrency)]
    await asyncio.sleep(0)
    try:
        yield
    finally:
        ended.set()
        await asyncio.gather(*occupied)


async def test_an_account_without_its_session_has_an_unknown_outcome(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth, email = store.auth, new_email()
    async with overloaded(auth.repositories.sessions.limiter, USERS_CONCURRENCY, monkeypatch):
        with pytest.raises(CommitUnknownError):
            await accounts.register(auth, "Eve", email, PASSWORD)
        assert await auth.repositories.users.find_with_password_hash(email) is not None
        # Nothing was written here.
        busy = await accounts.login(auth, email, PASSWORD)
        assert isinstance(busy, accounts.ServerBusy)
        assert busy.retry_after_ms >= 1000


async def test_a_ban_without_its_end_of_waiting_has_an_unknown_outcome(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    user, services = await store.new_user(), store.services
    async with overloaded(services.slots.limiter, SLOTS_CONCURRENCY, monkeypatch):
        with pytest.raises(CommitUnknownError):
            await waitlist.remove_from_all(services, user.id, ADA.user_id)


async def test_a_request_whose_key_stays_occupied_has_an_unknown_outcome(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "KEY_LOCK_TIMEOUT_S", 0.1)
    slot_id = await store.insert_slot()
    parts = (BookSlotCommand.name, slot_id, ADA.user_id, False)
    key = IdempotencyKey.for_request(ADA.user_id, slot_id, *parts)
    locks = store.services.locks
    lease = await locks.acquire(idempotency_lock(key.record_id), wait_s=0.0)
    assert lease is not None
    with pytest.raises(CommitUnknownError):
        await store.book(slot_id, key=slot_id)
    await locks.release(lease)


async def request_booked_by_worker(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> tuple[SlotId, object]:
    """Request a booking whose queueing has no reply, and which a worker books before a refusal."""
    user, slot_id = await store.new_user(), await store.insert_slot()
    queued: list[QueuedBooking] = []

    async def lose_reply(_: AdmissionQueue, request: QueuedBooking, _now: datetime) -> None:
        queued.append(request)
        raise RedisUnavailableError("no reply", sent=True)

    async def refuse_after_worker(
        services: Services, _: object
    ) -> CommandResult[RequestBookingOutcome]:
        await serve_batch(services, slot_id, [StreamEntry("1-0", {}, queued[0], NOW)])
        return CommandResult(QueueFull(slot_id, 1_000))

    monkeypatch.setattr(AdmissionQueue, "enqueue", lose_reply)
    monkeypatch.setattr(enqueue, "_execute_now", refuse_after_worker)
    caller = Caller(user.id, Role.MEMBER, "session", NOW)
    result = await enqueue.request_booking(
        store.services, caller, slot_id, user.id, BookingOptions()
    )
    return slot_id, result.outcome


async def test_a_request_that_a_worker_has_booked_before_its_refusal_gets_its_ticket(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id, outcome = await request_booked_by_worker(store, monkeypatch)
    assert isinstance(outcome, Ticket)
    assert outcome.status is TicketStatus.ANSWERED
    assert await store.count_bookings(slot_id) == 1


async def test_control_without_a_second_read_a_booked_request_is_refused(
    store: LateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find_none(*_: object) -> PriorTicket:
        return PriorTicket.NONE

    monkeypatch.setattr(enqueue, "_find_prior", find_none)
    slot_id, outcome = await request_booked_by_worker(store, monkeypatch)
    assert isinstance(outcome, QueueFull)
    assert await store.count_bookings(slot_id) == 1
