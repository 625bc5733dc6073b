"""The line to Redis is the same to whoever uses it, whichever shape Redis has."""

import asyncio
from datetime import UTC, datetime

from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.slot import SlotStatus
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from tests.support.apps.redis_topologies import RedisTopology
from tests.support.polling import eventually

Offices = tuple[Locks, Locks]
AT = datetime(2027, 1, 1, tzinfo=UTC)


async def test_commands_of_concurrent_callers_each_get_their_own_answer(
    lock_nodes: Offices,
) -> None:
    line, slot_ids = lock_nodes[0].pipeline, [new_slot_id() for _ in range(1_000)]
    script = "return redis.call('publish', KEYS[1], ARGV[1]) + ARGV[1]"
    answers = [line.send("EVAL", script, 1, slot_id, n) for n, slot_id in enumerate(slot_ids)]
    assert await asyncio.gather(*answers) == list(range(1_000))


async def test_redis_is_back_only_when_each_of_its_nodes_takes_writes(
    lock_nodes: Offices, redis_topology: RedisTopology
) -> None:
    assert await lock_nodes[0].pipeline.is_writable()
    for node in redis_topology.nodes:
        assert "slotlock:probe" in node.run_command("KEYS slotlock:probe*")


async def test_an_announcement_is_heard_by_other_processes(lock_nodes: Offices) -> None:
    slot_ids, heard = [new_slot_id() for _ in range(10)], dict[str, Availability]()
    teller, hearer = (
        SlotEventBus(
            office.pipeline.client,
            office.pipeline,
            on_availability=lambda news: heard.update({news.slot_id: news}),
            on_booking_changed=lambda *_: None,
            on_queue_advanced=lambda *_: None,
        )
        for office in lock_nodes
    )
    hearer.start()
    await hearer.subscribe_slots(set(slot_ids))

    async def all_heard() -> bool:
        for slot_id in slot_ids:
            teller.publish(Availability(slot_id, 1, 2, 1, SlotStatus.PUBLISHED, AT))
        return set(heard) == set(slot_ids)

    await eventually(all_heard, "announcements of all slots")
    await hearer.stop()
