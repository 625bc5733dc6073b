"""The time of a queued request is that of MongoDB's clock, whatever the clock of Redis shows."""

import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.admission import admission_queue
from slotlock.infrastructure.redis.admission.admission_queue import AdmissionQueue, QueuedBooking
from slotlock.infrastructure.redis.admission.partitions import QueuePartition
from slotlock.infrastructure.redis.admission.queue_scripts import ENQUEUE
from tests.support.stores.lock_nodes import ON_ONE_SERVER, LockNodes

pytestmark = ON_ONE_SERVER

# MongoDB's clock is two hours behind that of Redis: such a ticket would not be valid yet.
BEHIND = timedelta(hours=2)
READ_REDIS_TIME = """
local redis_time = redis.call('time')
local now_ms = string.format('%.0f', redis_time[1] * 1000)
"""
REQUEST = QueuedBooking(
    SlotId("a" * 24), UserId("b" * 24), UserId("b" * 24), False, "d" * 32, "e" * 64
)


async def enqueue_at(nodes: LockNodes, now: datetime) -> tuple[bool, datetime]:
    """Enqueue a request; return whether its ticket is valid, and the time that a worker reads."""
    admission_queue = AdmissionQueue(nodes[0].pipeline, partitions=1)
    request = replace(REQUEST, slot_id=new_slot_id(), key=secrets.token_hex(16))
    position = await admission_queue.enqueue(request, now)
    assert position is not None
    entries = await QueuePartition(nodes[0].pipeline, 0).read_new()
    (entry,) = [entry for entry in entries if entry.request == request]
    return position.ref.is_known_at(now), entry.requested_at


def milliseconds_now() -> datetime:
    """Return the present time with the precision of a ticket."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


async def test_a_ticket_is_valid_at_once_although_the_clock_of_redis_is_ahead(
    lock_nodes: LockNodes,
) -> None:
    now = milliseconds_now() - BEHIND
    assert await enqueue_at(lock_nodes, now) == (True, now)


async def test_control_with_the_time_of_redis_a_ticket_is_not_valid_yet(
    lock_nodes: LockNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_redis_time = ENQUEUE.replace("'ms', ms,", "'ms', now_ms,").replace(
        "request_hash, ms}", "request_hash, now_ms}"
    )
    monkeypatch.setattr(admission_queue, "ENQUEUE", READ_REDIS_TIME + with_redis_time)
    now = milliseconds_now() - BEHIND
    is_valid, read_at = await enqueue_at(lock_nodes, now)
    assert not is_valid
    assert read_at > now + BEHIND / 2
