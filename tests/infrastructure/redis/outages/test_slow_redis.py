"""A Redis that is slow, frozen or silent costs little, and is used again when it is fast."""

import asyncio
import logging
import time

import pytest

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis import auto_pipeline, circuit_breaker
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.redis.circuit_breaker import (
    FAST_TO_CLOSE,
    REDIS_DEGRADED,
    SLOW_TO_OPEN,
    RedisState,
)
from slotlock.infrastructure.redis.client import close_client, redis_client
from slotlock.infrastructure.redis.keys import DEFAULT_BUDGET_MS
from slotlock.infrastructure.redis.locks.lock_leases import InProcessLockLease, RedisLockLease
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.subscriber import RedisSubscriber
from tests.support.apps.restartable_servers import RestartableServer
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import (
    PATIENT_BUDGET_MS,
    acquire_lease,
    open_lock_node,
    wait_until_free,
)
from tests.support.transport.delay_proxy import DelayProxy

SLOW_S = 0.3


async def book(locks: Locks) -> bool:
    """Acquire and release a lock. Return whether it was one of Redis."""
    lease = await acquire_lease(locks, new_slot_id())
    await locks.release(lease)
    return isinstance(lease, RedisLockLease)


async def book_until_redis_is_left_alone(locks: Locks) -> int:
    """Return how many locks were taken from Redis before."""
    count = 0
    while not locks.pipeline.is_unavailable:
        count += await book(locks)
        assert count <= SLOW_TO_OPEN, "Redis is still in use"
    return count


@pytest.fixture
def no_timeouts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine reply late, which leaves Redis slow and not unavailable."""
    monkeypatch.setattr(auto_pipeline, "TIMEOUT_BUDGETS", 1_000)
    monkeypatch.setattr(auto_pipeline, "COMMAND_TIMEOUT_S", 10.0)


async def test_a_slow_redis_is_left_alone_as_soon_as_it_is_slower_than_going_without(
    proxy: DelayProxy, slow_locks: Locks, no_timeouts: None
) -> None:
    proxy.delay_s = SLOW_S
    await book_until_redis_is_left_alone(slow_locks)
    assert slow_locks.pipeline.state is RedisState.SLOW
    assert REDIS_DEGRADED._value.get() == 1
    assert not await slow_locks.pipeline.check()
    proxy.commands.clear()
    for _ in range(100):
        assert not await book(slow_locks)
    assert not [data for data in proxy.commands if b":lock" in data]


async def test_control_a_breaker_that_measures_no_latency_still_uses_a_slow_redis(
    proxy: DelayProxy,
) -> None:
    pipeline = AutoPipeline(redis_client(proxy.url), PATIENT_BUDGET_MS)
    locks = Locks(pipeline)
    await book(locks)  # opens a connection, which takes several round trips
    proxy.delay_s = SLOW_S
    for _ in range(SLOW_TO_OPEN + 1):
        assert await book(locks)
    assert not pipeline.is_unavailable
    proxy.delay_s = 0
    await locks.stop()
    await pipeline.close()


@pytest.mark.parametrize("delay_ms", [50, 100])
async def test_a_distant_redis_is_left_alone_too(
    proxy: DelayProxy, slow_locks: Locks, no_timeouts: None, delay_ms: int
) -> None:
    proxy.delay_s = delay_ms / 1000
    await book_until_redis_is_left_alone(slow_locks)
    assert slow_locks.pipeline.state is RedisState.SLOW


async def send_while_the_loop_is_busy(pipeline: AutoPipeline, rounds: int) -> None:
    """Send commands, each while some rounds of the event loop take longer than the budget."""
    loop = asyncio.get_running_loop()
    for _ in range(circuit_breaker.WINDOW):
        reply = pipeline.send("PING")
        for _ in range(rounds):
            loop.call_soon(time.sleep, DEFAULT_BUDGET_MS * 1.5 / 1000)
            await asyncio.sleep(0)
        assert await reply


@pytest.mark.parametrize("rounds", [1, 6])
async def test_a_busy_event_loop_does_not_count_as_a_slow_redis(
    valkey: RestartableServer, rounds: int
) -> None:
    async with open_lock_node(valkey.url, budget_ms=DEFAULT_BUDGET_MS) as locks:
        await book(locks)
        await send_while_the_loop_is_busy(locks.pipeline, rounds)
        assert not locks.pipeline.is_unavailable


async def test_control_without_rounds_for_replies_a_busy_event_loop_counts_as_a_slow_redis(
    valkey: RestartableServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_pipeline, "EXTRA_READ_ROUNDS", 0)
    async with open_lock_node(valkey.url, budget_ms=DEFAULT_BUDGET_MS) as locks:
        await book(locks)
        with pytest.raises(RedisUnavailableError):
            await send_while_the_loop_is_busy(locks.pipeline, 6)


async def test_one_slow_reply_is_an_outlier(
    proxy: DelayProxy, slow_locks: Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_locks.pipeline, "_budget_s", SLOW_S / 2)  # the machine may be busy
    for _ in range(2):
        proxy.delay_s = SLOW_S
        assert await slow_locks.pipeline.send("PING")
        proxy.delay_s = 0
        for _ in range(circuit_breaker.WINDOW):
            assert await slow_locks.pipeline.send("PING")
    assert not slow_locks.pipeline.is_unavailable


async def test_callers_that_wait_for_a_lock_or_a_reply_are_released_when_the_circuit_opens(
    proxy: DelayProxy, slow_locks: Locks
) -> None:
    slot_id = new_slot_id()
    await acquire_lease(slow_locks, slot_id)
    waiting = asyncio.Event()
    waiter = asyncio.create_task(slow_locks.acquire(slot_id, wait_s=20, on_wait=waiting.set))
    await waiting.wait()
    proxy.freeze()
    reply = slow_locks.pipeline.send("PING")
    await asyncio.sleep(0)
    slow_locks.pipeline._fail(RedisUnavailableError("a test"))
    assert isinstance(reply.exception(), RedisUnavailableError)
    # It resumes within a few rounds of the event loop, before any heartbeat or timeout.
    for _ in range(10):
        await asyncio.sleep(0)
    assert isinstance(waiter.result(), InProcessLockLease)


async def test_a_lock_that_redis_granted_too_late_is_released_while_redis_is_still_slow(
    proxy: DelayProxy, slow_locks: Locks, valkey: RestartableServer
) -> None:
    proxy.delay_s = SLOW_S
    slot_id = new_slot_id()
    while not isinstance(await slow_locks.acquire(slot_id), InProcessLockLease):
        slot_id = new_slot_id()
    async with open_lock_node(valkey.url) as other:
        await wait_until_free(other, slot_id)
        assert slow_locks.pipeline.is_unavailable


@pytest.mark.parametrize("delay_ms", [300, 700, 1500])
async def test_no_flapping_the_circuit_opens_once_and_stays_open_until_the_delay_ends(
    proxy: DelayProxy,
    slow_locks: Locks,
    delay_ms: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(circuit_breaker, "MAX_PROBE_INTERVAL_S", 0.1)
    monkeypatch.setattr(circuit_breaker, "PROBE_INTERVAL_S", 0.1)
    caplog.set_level(logging.WARNING, "slotlock.redis")
    probes = record_probes(slow_locks.pipeline, monkeypatch)
    proxy.delay_s = delay_ms / 1000
    await book_until_redis_is_left_alone(slow_locks)

    async def has_probed_often() -> bool:
        assert not await book(slow_locks)
        return len(probes) > FAST_TO_CLOSE

    await eventually(has_probed_often, "more probes than close the circuit")
    proxy.delay_s = 0

    await eventually(lambda: book(slow_locks), "Redis in use after the delay ends")
    changes = [r.getMessage() for r in caplog.records if "locks" in r.getMessage()]
    assert len(changes) == 2, changes
    assert slow_locks.pipeline.state is RedisState.UP


async def test_control_a_breaker_that_any_reply_closes_flaps(
    proxy: DelayProxy,
    slow_locks: Locks,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(circuit_breaker, "PROBE_INTERVAL_S", 0.05)
    monkeypatch.setattr(circuit_breaker, "FAST_TO_CLOSE", 1)
    monkeypatch.setattr(auto_pipeline, "FAST_SHARE", 100)
    caplog.set_level(logging.WARNING, "slotlock.redis")
    proxy.delay_s = SLOW_S

    async def has_opened_twice() -> bool:
        await book(slow_locks)
        return sum("Redis is slow" in record.getMessage() for record in caplog.records) == 2

    await eventually(has_opened_twice, "the circuit opens again")


def record_probes(pipeline: AutoPipeline, monkeypatch: pytest.MonkeyPatch) -> list[RedisState]:
    """Return a list to which each probe adds its result."""
    results: list[RedisState] = []
    probe = pipeline._breaker._probe

    async def recorded() -> RedisState:
        results.append(await probe())
        return results[-1]

    monkeypatch.setattr(pipeline._breaker, "_probe", recorded)
    return results


async def test_the_subscribers_of_a_process_report_a_silent_master_once(
    proxy: DelayProxy, valkey: RestartableServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "slotlock.redis")
    client, publisher = redis_client(proxy.url), redis_client(valkey.url)
    received: list[bytes] = []
    subscribers = [
        RedisSubscriber(client, lambda _, data: received.append(data), "channel") for _ in range(3)
    ]
    for subscriber in subscribers:
        subscriber.start()
        await subscriber.wait_until_subscribed(20)
    proxy.freeze()

    await eventually(
        lambda: bool(REDIS_DEGRADED._value.get()), "the subscriber reports that Redis is silent"
    )
    proxy.cut()
    proxy.thaw()

    async def receives() -> bool:
        await publisher.publish("channel", b"a message")
        return not REDIS_DEGRADED._value.get() and bool(received)

    await eventually(receives, "a message after the reconnection")
    assert len([r for r in caplog.records if "do not arrive" in r.getMessage()]) == 1
    assert len([r for r in caplog.records if "arrive again" in r.getMessage()]) == 1
    await asyncio.gather(*(subscriber.stop() for subscriber in subscribers))
    for each in (client, publisher):
        await close_client(each)
