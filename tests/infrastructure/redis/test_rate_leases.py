"""Leases save commands, and never let a subject exceed its limit by more than a lease."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.rate_leases import RateLeases
from slotlock.infrastructure.redis.rate_limits import RateCharge, RateLimit, RateLimiter
from tests.support.stores.lock_nodes import LockNodes

LIMIT = RateLimit("leased", 1_000, 36_000, max_lease=10)
WIDE = RateLimit("leased", 100_000, 36_000, max_lease=1_000)
EXACT = RateLimit("exact", 5, 36_000)


class CountingLimiter(RateLimiter):
    """A limiter that records the amounts that it charges."""

    def __init__(self, nodes: LockNodes) -> None:
        super().__init__(nodes[0].pipeline)
        self.amounts: list[list[int]] = []

    def charge(  # type: ignore[override]
        self, charges: Sequence[RateCharge]
    ) -> "asyncio.Future[int]":
        """Charge all limits or none."""
        self.amounts.append([amount for _, _, amount in charges])
        return super().charge(charges)


@pytest.fixture
def limiter(lock_nodes: LockNodes) -> CountingLimiter:
    return CountingLimiter(lock_nodes)


@pytest.fixture
def subject() -> str:
    """Return a subject that only this test charges."""
    return f"user:{time.monotonic_ns()}"


async def is_accepted(leases: RateLeases, *charges: RateCharge) -> bool:
    """Charge once; return whether it was accepted."""
    wait_ms = leases.charge(charges)
    return wait_ms is None or await wait_ms == 0


async def count_accepted(leases: RateLeases, charge: RateCharge, attempts: int) -> int:
    """Return how many of so many charges, one after the other, were accepted."""
    return sum([await is_accepted(leases, charge) for _ in range(attempts)])


async def test_a_process_serves_exactly_the_limit_with_few_commands(
    limiter: CountingLimiter, subject: str
) -> None:
    leases = RateLeases(limiter)
    served = await count_accepted(leases, (subject, LIMIT, 1), LIMIT.max_count + 50)
    assert served == LIMIT.max_count
    assert len(limiter.amounts) < LIMIT.max_count // LIMIT.max_lease + 100


async def test_processes_together_serve_at_most_the_limit_and_miss_at_most_the_leases_of_others(
    limiter: CountingLimiter, subject: str
) -> None:
    first, second, third = (RateLeases(limiter) for _ in range(3))
    charge = (subject, LIMIT, 1)
    assert await count_accepted(first, charge, 1) == await count_accepted(second, charge, 1) == 1
    in_third = await count_accepted(third, charge, LIMIT.max_count)
    assert in_third == LIMIT.max_count - 2 * (1 + LIMIT.max_lease)
    later = [await count_accepted(each, charge, 50) for each in (first, second)]
    assert later == [LIMIT.max_lease, LIMIT.max_lease]


async def test_concurrent_charges_take_one_lease(limiter: CountingLimiter, subject: str) -> None:
    leases = RateLeases(limiter)
    accepted = await asyncio.gather(*(is_accepted(leases, (subject, WIDE, 1)) for _ in range(50)))
    assert all(accepted)
    assert sorted(limiter.amounts) == [[1]] * 49 + [[1 + WIDE.max_lease]]


async def test_a_rejected_operation_is_charged_to_no_limit(
    limiter: CountingLimiter, subject: str
) -> None:
    leases = RateLeases(limiter)
    own, shared = (subject, EXACT, 1), (f"address of {subject}", LIMIT, 1)
    assert sum([await is_accepted(leases, own, shared) for _ in range(50)]) == EXACT.max_count
    served = await count_accepted(leases, shared, LIMIT.max_count)
    assert served == LIMIT.max_count - EXACT.max_count


async def test_limits_without_a_lease_are_charged_for_each_operation(
    limiter: CountingLimiter, subject: str
) -> None:
    assert await count_accepted(RateLeases(limiter), (subject, EXACT, 1), 10) == EXACT.max_count
    assert limiter.amounts == [[1]] * 10


async def test_a_canceled_operation_leaves_the_leases_of_its_neighbors_unharmed(
    limiter: CountingLimiter, subject: str
) -> None:
    leases, charge = RateLeases(limiter), (subject, LIMIT, 1)
    canceled = asyncio.create_task(is_accepted(leases, charge))
    neighbor = asyncio.create_task(is_accepted(leases, charge))
    await asyncio.sleep(0)
    canceled.cancel()
    assert await neighbor
    assert await count_accepted(leases, charge, 1 + LIMIT.max_lease) == 1 + LIMIT.max_lease
    command_count = len(limiter.amounts)
    assert await is_accepted(leases, charge)
    assert len(limiter.amounts) == command_count + 1


async def test_an_unavailable_redis_gives_no_lease(
    limiter: CountingLimiter, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases, charge = RateLeases(limiter), (subject, LIMIT, 1)

    def fail(charges: Sequence[RateCharge]) -> "asyncio.Future[int]":
        failed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        failed.set_exception(RedisUnavailableError("a test"))
        return failed

    with monkeypatch.context() as patch:
        patch.setattr(limiter, "charge", fail)
        for _ in range(2):
            with pytest.raises(RedisUnavailableError):
                await is_accepted(leases, charge)
    assert await count_accepted(leases, charge, LIMIT.max_count + 50) == LIMIT.max_count
