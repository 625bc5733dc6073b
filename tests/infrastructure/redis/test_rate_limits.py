"""Rate limits follow the same rules with every Redis topology and inside one process."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable

import pytest

from slotlock.infrastructure.redis.auto_pipeline import AutoPipeline
from slotlock.infrastructure.redis.client import redis_client
from slotlock.infrastructure.redis.keys import rate_limit_key
from slotlock.infrastructure.redis.paces import Pace, Paces
from slotlock.infrastructure.redis.rate_limits import (
    ChargeMode,
    InProcessRateLimiter,
    RateLimit,
    RateLimiter,
)
from tests.support.apps.processes import free_port
from tests.support.apps.redis_topologies import RedisTopology
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import LockNodes

HOURLY = RateLimit("hourly", 5, 3600)
WIDE = RateLimit("wide", 50, 3600)
PER_SECOND = RateLimit("per-second", 4, 1)
ADDRESS = "address:192.0.2.7"

AnyLimiter = RateLimiter | InProcessRateLimiter
Charge = Callable[..., Awaitable[int]]


@pytest.fixture(params=["Redis", "process"])
def limiter(request: pytest.FixtureRequest, lock_nodes: LockNodes) -> AnyLimiter:
    """Return a rate limiter of each kind."""
    if request.param == "Redis":
        return RateLimiter(lock_nodes[0].pipeline)
    return InProcessRateLimiter()


@pytest.fixture
def charge(limiter: AnyLimiter) -> Charge:
    """Charge amounts to limits of a subject that only this test uses."""
    subject = f"user:{time.monotonic_ns()}"

    async def charge_and_wait(
        amounts: dict[RateLimit, int], mode: ChargeMode = ChargeMode.CHARGE
    ) -> int:
        wait_ms = limiter.charge([(subject, limit, n) for limit, n in amounts.items()], mode)
        return int(await wait_ms if isawaitable(wait_ms) else wait_ms)

    return charge_and_wait


async def test_charges_succeed_up_to_the_limit_and_the_next_returns_a_wait(charge: Charge) -> None:
    assert [await charge({HOURLY: 1}) for _ in range(3)] == [0, 0, 0]
    assert await charge({HOURLY: 2}) == 0
    assert 0 < await charge({HOURLY: 1}) <= 2 * 3600 * 1000


async def test_a_rejected_charge_is_not_counted(charge: Charge) -> None:
    assert await charge({HOURLY: 4}) == 0
    for _ in range(10):
        assert await charge({HOURLY: 2}) > 0
    assert await charge({HOURLY: 1}) == 0


async def test_a_charge_to_several_limits_is_counted_for_all_or_none(charge: Charge) -> None:
    assert await charge({HOURLY: 5, WIDE: 5}) == 0
    for _ in range(10):
        assert await charge({WIDE: 10, HOURLY: 1}) > 0
    assert await charge({WIDE: 45}) == 0


async def test_a_charge_succeeds_after_the_returned_wait_and_not_earlier(charge: Charge) -> None:
    started, wait_ms = 0.0, 0

    async def is_rejected() -> bool:
        nonlocal started, wait_ms
        started, wait_ms = time.monotonic(), await charge({PER_SECOND: 1})
        return wait_ms > 0

    async def is_accepted() -> bool:
        return await charge({PER_SECOND: 1}) == 0

    await eventually(is_rejected, "a rejected charge")
    await eventually(is_accepted, "a charge in a later window")
    assert (time.monotonic() - started) * 1000 >= wait_ms - 2


async def test_a_peek_counts_nothing_and_a_refund_can_be_charged_again(charge: Charge) -> None:
    for _ in range(10):
        assert await charge({HOURLY: 5}, ChargeMode.PEEK) == 0
    assert await charge({HOURLY: 5}) == 0
    assert await charge({HOURLY: 1}, ChargeMode.PEEK) > 0
    assert await charge({HOURLY: 2}, ChargeMode.REFUND) == 0
    assert await charge({HOURLY: 2}) == 0
    assert await charge({HOURLY: 1}) > 0


async def test_a_refund_is_limited_to_what_was_charged(charge: Charge) -> None:
    assert await charge({HOURLY: 1}) == 0
    assert await charge({HOURLY: 3}, ChargeMode.REFUND) == 0
    assert await charge({HOURLY: 5}) == 0
    assert await charge({HOURLY: 1}) > 0


async def test_an_amount_above_the_limit_is_accepted_if_nothing_else_is_counted(
    charge: Charge,
) -> None:
    assert await charge({HOURLY: 7}) == 0
    assert await charge({HOURLY: 7}) > 0


async def test_a_charge_rejected_for_one_subject_costs_the_others_nothing(
    limiter: AnyLimiter,
) -> None:
    async def charge_both(user: int, address: int) -> int:
        charges = [("user:greedy", HOURLY, user), ("address:shared", WIDE, address)]
        wait_ms = limiter.charge([charge for charge in charges if charge[2]])
        return int(await wait_ms if isawaitable(wait_ms) else wait_ms)

    limiter.reset("user:greedy", HOURLY)
    limiter.reset("address:shared", WIDE)
    assert await charge_both(5, 5) == 0
    for _ in range(10):
        assert await charge_both(1, 10) > 0
    assert await charge_both(0, 45) == 0


async def test_after_a_reset_the_whole_limit_can_be_charged(limiter: AnyLimiter) -> None:
    async def charge_once() -> int:
        wait_ms = limiter.charge([("user:reset", HOURLY, 5)])
        return int(await wait_ms if isawaitable(wait_ms) else wait_ms)

    limiter.reset("user:reset", HOURLY)
    assert await charge_once() == 0
    assert await charge_once() > 0
    limiter.reset("user:reset", HOURLY)
    assert await charge_once() == 0


async def test_of_200_concurrent_charges_in_two_processes_exactly_the_limit_is_accepted(
    lock_nodes: LockNodes,
) -> None:
    limiters = [RateLimiter(node.pipeline) for node in lock_nodes]
    waits = [limiters[n % 2].charge([("user:rush", WIDE, 1)]) for n in range(200)]
    assert (await asyncio.gather(*waits)).count(0) == 50


async def test_control_a_peek_followed_by_a_charge_accepts_more_than_the_limit(
    lock_nodes: LockNodes,
) -> None:
    limiters = [RateLimiter(node.pipeline) for node in lock_nodes]

    async def peek_then_charge(n: int) -> int:
        wait_ms = await limiters[n % 2].charge([("user:control", WIDE, 1)], ChargeMode.PEEK)
        if not wait_ms:
            await limiters[n % 2].charge([("user:control", WIDE, 1)])
        return wait_ms

    assert (await asyncio.gather(*map(peek_then_charge, range(200)))).count(0) > 50


async def test_every_counter_expires_and_may_be_lost(
    lock_nodes: LockNodes, redis_topology: RedisTopology
) -> None:
    limiter = RateLimiter(lock_nodes[0].pipeline)
    redis_topology.flush_all()
    assert await limiter.charge([(ADDRESS, HOURLY, 5), (ADDRESS, WIDE, 1)]) == 0
    keys = {key for key in redis_topology.all_keys() if "{rate:" in key}
    assert keys == {rate_limit_key(ADDRESS, limit.name) for limit in (HOURLY, WIDE)}
    for key in keys:
        assert 0 < await lock_nodes[0].pipeline.send("PTTL", key) <= 2 * 3600 * 1000
    redis_topology.flush_all()
    assert await limiter.charge([(ADDRESS, HOURLY, 5)]) == 0


async def test_a_full_refund_leaves_no_key(
    lock_nodes: LockNodes, redis_topology: RedisTopology
) -> None:
    limiter = RateLimiter(lock_nodes[0].pipeline)
    redis_topology.flush_all()
    assert await limiter.charge([(ADDRESS, HOURLY, 2), (ADDRESS, WIDE, 2)]) == 0
    refund = [(ADDRESS, HOURLY, 2), (ADDRESS, WIDE, 1)]
    assert await limiter.charge(refund, ChargeMode.REFUND) == 0
    left = {key for key in redis_topology.all_keys() if "{rate:" in key}
    assert left == {rate_limit_key(ADDRESS, WIDE.name)}


# So slow that no time passes during a test.
DAY_MS = 24 * 3600 * 1000
DAILY = Pace("daily", interval_ms=DAY_MS, burst=3, max_delay_ms=2 * DAY_MS)


async def days(paces: Paces, subject: str, count: int, *, is_taken: bool) -> list[int]:
    """Return after how many days so many requests are served."""
    delays = [await paces.reserve(subject, DAILY, is_taken=is_taken) for _ in range(count)]
    return [round(delay / DAY_MS) for delay in delays]


async def test_each_request_after_the_burst_has_a_time_of_its_own(lock_nodes: LockNodes) -> None:
    # One of them has no Redis, and keeps the times itself.
    nobody = AutoPipeline(redis_client(f"redis://127.0.0.1:{free_port()}"))
    for paces in (Paces(lock_nodes[0].pipeline), Paces(nobody)):
        subject = f"user:{time.monotonic_ns()}"
        assert await days(paces, subject, 2, is_taken=False) == [0, 0]
        # Beyond the longest delay, nobody takes a time, and so nobody waits longer for it.
        assert await days(paces, subject, 7, is_taken=True) == [0, 0, 0, 1, 2, 3, 3]
        assert await days(paces, f"{subject}:other", 1, is_taken=True) == [0]
    await nobody.close()
