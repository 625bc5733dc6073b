"""The pipeline behaves the same with one server, behind Sentinels and on a Cluster."""

import asyncio
from datetime import UTC, datetime

import pytest

from slotlock.domain.booking.availability import Availability
from slotlock.domain.booking.slot import SlotStatus
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis import circuit_breaker
from slotlock.infrastructure.redis.circuit_breaker import SLOW_TO_OPEN, CircuitBreaker, RedisState
from slotlock.infrastructure.redis.keys import PROBE_KEY
from slotlock.infrastructure.redis.slot_events import SlotEventBus
from tests.support.apps.redis_topologies import RedisTopology
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import LockNodes

AT = datetime(2027, 1, 1, tzinfo=UTC)


async def test_each_of_1000_concurrent_callers_gets_its_own_reply(lock_nodes: LockNodes) -> None:
    pipeline, slot_ids = lock_nodes[0].pipeline, [new_slot_id() for _ in range(1_000)]
    script = "return redis.call('publish', KEYS[1], ARGV[1]) + ARGV[1]"
    replies = [pipeline.send("EVAL", script, 1, slot_id, n) for n, slot_id in enumerate(slot_ids)]
    assert await asyncio.gather(*replies) == list(range(1_000))


async def test_the_probe_writes_to_every_node(
    lock_nodes: LockNodes, redis_topology: RedisTopology
) -> None:
    assert await lock_nodes[0].pipeline.is_writable()
    for node in redis_topology.nodes:
        assert PROBE_KEY in node.run_command(f"KEYS {PROBE_KEY}*")


async def test_another_process_receives_the_availability_of_subscribed_slots(
    lock_nodes: LockNodes,
) -> None:
    slot_ids, received = [new_slot_id() for _ in range(10)], dict[str, Availability]()
    publisher, subscriber = (
        SlotEventBus(
            node.pipeline.client,
            node.pipeline,
            on_availability=lambda state: received.update({state.slot_id: state}),
            on_booking_changed=lambda *_: None,
            on_queue_advanced=lambda *_: None,
        )
        for node in lock_nodes
    )
    subscriber.start()
    await subscriber.subscribe_slots(set(slot_ids))

    async def all_received() -> bool:
        for slot_id in slot_ids:
            publisher.publish(Availability(slot_id, 1, 2, 1, SlotStatus.PUBLISHED, AT))
        return set(received) == set(slot_ids)

    await eventually(all_received, "messages about all slots")
    await subscriber.stop()


async def test_the_circuit_closes_only_after_several_fast_probes_in_a_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PROBE_INTERVAL_S", "FAST_PROBE_INTERVAL_S", "MAX_PROBE_INTERVAL_S"):
        monkeypatch.setattr(circuit_breaker, name, 0.0)
    up, slow = RedisState.UP, RedisState.SLOW
    results, closed = iter([up, up, slow, up, up, up]), asyncio.Event()

    async def probe() -> RedisState:
        return next(results)

    breaker = CircuitBreaker(probe, lambda: None, closed.set)
    for _ in range(SLOW_TO_OPEN):
        assert not breaker.is_open
        breaker.record(is_slow=True)
    was_open = breaker.is_open
    await closed.wait()
    assert (was_open, breaker.is_open) == (True, False)
    assert next(results, None) is None
