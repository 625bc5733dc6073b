"""Concurrent requests share a script, and each of them gets what is its own."""

import asyncio
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.admission.admission_queue import (
    AdmissionQueue,
    QueuedBooking,
    QueuePosition,
)
from slotlock.infrastructure.redis.admission.partitions import QueuePartition
from slotlock.infrastructure.redis.admission.ticket_index import TicketIndex
from tests.support.stores.lock_nodes import LockNodes

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def new_request(slot_id: SlotId) -> QueuedBooking:
    """Return the request of a new user."""
    user_id = UserId(secrets.token_hex(12))
    return QueuedBooking(slot_id, user_id, user_id, False, secrets.token_hex(16), "e" * 64)


async def enqueue_together(
    queue: AdmissionQueue, requests: Sequence[QueuedBooking]
) -> list[QueuePosition]:
    """Enqueue these requests in one batch and return the position of each."""
    found = await asyncio.gather(*(queue.enqueue(request, NOW) for request in requests))
    return [position for position in found if position is not None]


def slots_in_both_partitions(queue: AdmissionQueue) -> tuple[SlotId, SlotId]:
    """Return a slot of each partition."""
    slots = {queue.partition_of(slot_id): slot_id for slot_id in (new_slot_id() for _ in range(50))}
    return slots[0], slots[1]


async def test_a_batch_continues_the_queue_of_each_slot_in_order(lock_nodes: LockNodes) -> None:
    queue = AdmissionQueue(lock_nodes[0].pipeline, partitions=2)
    one, other = slots_in_both_partitions(queue)
    for expected in ([1, 1, 2, 2, 3], [4, 3, 5, 4, 6]):
        requests = [new_request(slot_id) for slot_id in (one, other, one, other, one)]
        positions = await enqueue_together(queue, requests)
        assert [found.ticket.position for found in positions] == expected
        assert [found.ref.requested_by for found in positions] == [
            request.requested_by for request in requests
        ]


async def test_a_batch_does_not_count_the_requests_ahead_that_were_cancelled(
    lock_nodes: LockNodes,
) -> None:
    queue = AdmissionQueue(lock_nodes[0].pipeline, partitions=2)
    slot_id = new_slot_id()
    first = await enqueue_together(queue, [new_request(slot_id) for _ in range(3)])
    await queue.remove_cancelled(first[1].ref)
    later = await enqueue_together(queue, [new_request(slot_id) for _ in range(2)])
    assert [found.ticket.position for found in later] == [3, 4]


async def test_searches_of_one_batch_find_their_own_requests(lock_nodes: LockNodes) -> None:
    queue = AdmissionQueue(lock_nodes[0].pipeline, partitions=2)
    queued = [new_request(slot_id) for slot_id in slots_in_both_partitions(queue) * 2]
    positions = await enqueue_together(queue, queued)
    missing = new_request(queued[0].slot_id)
    same_booking = [
        QueuedBooking(r.slot_id, r.user_id, r.requested_by, r.hold, "f" * 32, r.request_hash)
        for r in (*queued, missing)
    ]
    by_key, by_booking = await asyncio.gather(
        asyncio.gather(*(queue.find(r.slot_id, r.requested_by, r.key) for r in (*queued, missing))),
        asyncio.gather(*(queue.find_by_booking(request) for request in same_booking)),
    )
    assert by_key == by_booking == [*positions, None]


async def test_only_what_was_acknowledged_leaves_the_queue(lock_nodes: LockNodes) -> None:
    queue = AdmissionQueue(lock_nodes[0].pipeline, partitions=1)
    slot_id = new_slot_id()
    requests = [new_request(slot_id) for _ in range(4)]
    await enqueue_together(queue, requests)
    partition = QueuePartition(lock_nodes[0].pipeline, 0)
    entries = [e for e in await partition.read_new() if e.request in requests]
    await partition.acknowledge(slot_id, entries[:1])
    # The first one left before, as if two workers had served it.
    await partition.acknowledge(slot_id, entries[:3])
    found = await asyncio.gather(
        *(queue.find(slot_id, request.requested_by, request.key) for request in requests)
    )
    assert found[:3] == [None, None, None]
    assert found[3] is not None
    assert found[3].ticket.position == 1
    again = await enqueue_together(queue, requests[:1])
    assert again[0].ticket.position == 2


async def test_tickets_that_are_added_together_are_found_by_their_users(
    lock_nodes: LockNodes,
) -> None:
    queue = AdmissionQueue(lock_nodes[0].pipeline, partitions=2)
    index = TicketIndex(lock_nodes[0].pipeline)
    positions = await enqueue_together(queue, [new_request(new_slot_id()) for _ in range(5)])
    for position in positions:
        index.add(position.ref)
    await asyncio.sleep(0)  # what was added is sent in the next iteration of the event loop
    for position in positions:
        since = NOW - timedelta(seconds=1)
        assert await index.find(position.ref.requested_by, since) == [position.ref]
