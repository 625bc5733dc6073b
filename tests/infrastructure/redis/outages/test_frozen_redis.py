"""A Redis that hangs costs one wait, and the requests that follow nothing."""

import asyncio

import pytest

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis import auto_pipeline
from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline, RedisUnavailableError
from slotlock.infrastructure.redis.circuit_breaker import CircuitBreaker
from slotlock.infrastructure.redis.client import COMMAND_TIMEOUT_S
from slotlock.infrastructure.redis.locks.lock_leases import InProcessLockLease
from slotlock.infrastructure.redis.locks.locks import Locks
from tests.support.transport.delay_proxy import DelayProxy

# The promise is COMMAND_TIMEOUT_S; the rest is for a machine that other programs use.
FREEZE_BOUND_S = 10 * COMMAND_TIMEOUT_S
# More than TIMEOUT_BUDGETS allow, and less than the timeout of the socket.
VERY_SLOW_S = 1.2


async def test_a_frozen_redis_costs_one_request_at_most_a_second_and_others_nothing(
    proxy: DelayProxy, slow_locks: Locks
) -> None:
    proxy.freeze()
    async with asyncio.timeout(FREEZE_BOUND_S):
        leases = await asyncio.gather(
            *(slow_locks.acquire(new_slot_id(), wait_s=20) for _ in range(50))
        )
    assert all(isinstance(lease, InProcessLockLease) for lease in leases)
    proxy.commands.clear()
    for _ in range(100):
        assert isinstance(await slow_locks.acquire(new_slot_id()), InProcessLockLease)
    assert not [data for data in proxy.commands if b":lock" in data]


async def waits_for_redis(pipeline: AutoPipeline) -> bool:
    """Return whether a command to a frozen Redis fails only after it was sent."""
    with pytest.raises(RedisUnavailableError) as error:
        await pipeline.send("PING")
    return error.value.sent


async def test_only_the_first_command_to_a_frozen_redis_waits(
    proxy: DelayProxy, slow_locks: Locks
) -> None:
    proxy.freeze()
    assert [await waits_for_redis(slow_locks.pipeline) for _ in range(5)] == [True, *4 * [False]]


async def test_control_without_a_breaker_each_command_to_a_frozen_redis_waits(
    proxy: DelayProxy, slow_locks: Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CircuitBreaker, "_open", lambda *_: None)
    monkeypatch.setattr(auto_pipeline, "COMMAND_TIMEOUT_S", 0.2)
    proxy.freeze()
    assert [await waits_for_redis(slow_locks.pipeline) for _ in range(5)] == 5 * [True]


async def test_one_very_slow_round_trip_is_given_up_before_its_reply(
    proxy: DelayProxy, slow_locks: Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_pipeline, "COMMAND_TIMEOUT_S", 10.0)
    proxy.delay_s = VERY_SLOW_S
    assert await waits_for_redis(slow_locks.pipeline)
    assert slow_locks.pipeline.is_unavailable


async def test_control_without_a_timeout_in_budgets_a_caller_waits_for_a_very_slow_reply(
    proxy: DelayProxy, slow_locks: Locks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_pipeline, "TIMEOUT_BUDGETS", 100)
    monkeypatch.setattr(auto_pipeline, "COMMAND_TIMEOUT_S", 10.0)
    proxy.delay_s = VERY_SLOW_S
    assert await slow_locks.pipeline.send("PING")
    assert not slow_locks.pipeline.is_unavailable
