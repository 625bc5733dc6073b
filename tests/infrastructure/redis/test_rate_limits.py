"""Counts of what somebody does: the same in each shape of Redis, and inside one process."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from inspect import isawaitable

import pytest

from slotlock.infrastructure.redis.keys import rate_limit_key
from slotlock.infrastructure.redis.local_rate_limits import InProcessRateLimiter
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.rate_limits import ChargeMode, RateLimit, RateLimiter
from tests.support.apps.redis_topologies import RedisTopology
from tests.support.polling import eventually

HOURLY = RateLimit("hourly", 5, 3600)
WIDE = RateLimit("wide", 50, 3600)
HERE = "address:192.0.2.7"
QUICK = RateLimit("quick", 4, 1)

Offices = tuple[Locks, Locks]
Ask = Callable[..., Awaitable[int]]


@pytest.fixture(params=["Redis", "process"])
def counts(
    request: pytest.FixtureRequest, lock_nodes: Offices
) -> RateLimiter | InProcessRateLimiter:
    """Counts of either kind."""
    return (
        RateLimiter(lock_nodes[0].pipeline) if request.param == "Redis" else InProcessRateLimiter()
    )


@pytest.fixture
def ask(counts: RateLimiter | InProcessRateLimiter) -> Ask:
    """Asks for so many of each limit; they are the test's own."""
    subject = f"person:{time.monotonic_ns()}"

    async def ask_and_wait(
        wants: dict[RateLimit, int], verb: ChargeMode = ChargeMode.CHARGE
    ) -> int:
        answer = counts.charge([(subject, limit, n) for limit, n in wants.items()], verb)
        return int(await answer if isawaitable(answer) else answer)

    return ask_and_wait


async def test_as_many_as_the_limit_says_are_let_in_and_the_next_is_told_when(ask: Ask) -> None:
    assert [await ask({HOURLY: 1}) for _ in range(3)] == [0, 0, 0]
    assert await ask({HOURLY: 2}) == 0
    assert 0 < await ask({HOURLY: 1}) <= 2 * 3600 * 1000


async def test_what_is_refused_is_not_counted(ask: Ask) -> None:
    assert await ask({HOURLY: 4}) == 0
    for _ in range(10):
        assert await ask({HOURLY: 2}) > 0
    assert await ask({HOURLY: 1}) == 0


async def test_what_is_asked_for_at_once_is_counted_all_or_none(ask: Ask) -> None:
    assert await ask({HOURLY: 5, WIDE: 5}) == 0
    for _ in range(10):
        assert await ask({WIDE: 10, HOURLY: 1}) > 0
    assert await ask({WIDE: 45}) == 0


async def test_there_is_room_when_it_was_told_and_not_before(ask: Ask) -> None:
    began, told_ms = 0.0, 0

    async def is_full() -> bool:
        nonlocal began, told_ms
        began, told_ms = time.monotonic(), await ask({QUICK: 1})
        return told_ms > 0

    async def has_room() -> bool:
        return await ask({QUICK: 1}) == 0

    await eventually(is_full, "as many as the limit says were let in")
    await eventually(has_room, "the window slides on")
    assert (time.monotonic() - began) * 1000 >= told_ms - 2


async def test_to_look_counts_nothing_and_what_is_given_back_can_be_had_again(ask: Ask) -> None:
    for _ in range(10):
        assert await ask({HOURLY: 5}, ChargeMode.PEEK) == 0
    assert await ask({HOURLY: 5}) == 0
    assert await ask({HOURLY: 1}, ChargeMode.PEEK) > 0
    assert await ask({HOURLY: 2}, ChargeMode.REFUND) == 0
    assert await ask({HOURLY: 2}) == 0
    assert await ask({HOURLY: 1}) > 0


async def test_nobody_can_give_back_more_than_was_counted(ask: Ask) -> None:
    assert await ask({HOURLY: 1}) == 0
    assert await ask({HOURLY: 3}, ChargeMode.REFUND) == 0
    assert await ask({HOURLY: 5}) == 0
    assert await ask({HOURLY: 1}) > 0


async def test_more_than_the_limit_is_let_in_alone(ask: Ask) -> None:
    assert await ask({HOURLY: 7}) == 0
    assert await ask({HOURLY: 7}) > 0


async def test_a_refused_subject_costs_the_other_subjects_nothing(
    counts: RateLimiter | InProcessRateLimiter,
) -> None:
    async def ask_both(person: int, address: int) -> int:
        wants = [("person:greedy", HOURLY, person), ("address:shared", WIDE, address)]
        answer = counts.charge([want for want in wants if want[2]])
        return int(await answer if isawaitable(answer) else answer)

    counts.reset("person:greedy", HOURLY)
    counts.reset("address:shared", WIDE)
    assert await ask_both(5, 5) == 0
    for _ in range(10):
        assert await ask_both(1, 10) > 0
    assert await ask_both(0, 45) == 0


async def test_what_is_forgotten_is_counted_anew(
    counts: RateLimiter | InProcessRateLimiter,
) -> None:
    async def ask_once() -> int:
        answer = counts.charge([("person:forgotten", HOURLY, 5)])
        return int(await answer if isawaitable(answer) else answer)

    counts.reset("person:forgotten", HOURLY)
    assert await ask_once() == 0
    assert await ask_once() > 0
    counts.reset("person:forgotten", HOURLY)
    assert await ask_once() == 0


async def let_in(lock_nodes: Offices, subject: str) -> int:
    """How many of 200 who ask two processes at once are let in."""
    both = [RateLimiter(office.pipeline) for office in lock_nodes]
    answers = [both[n % 2].charge([(subject, WIDE, 1)]) for n in range(200)]
    return (await asyncio.gather(*answers)).count(0)


async def test_of_many_at_once_at_two_processes_exactly_as_many_are_let_in(
    lock_nodes: Offices,
) -> None:
    assert await let_in(lock_nodes, "person:rush") == 50


async def test_control_a_count_that_is_looked_at_first_and_raised_then_lets_more_in(
    lock_nodes: Offices,
) -> None:
    both = [RateLimiter(office.pipeline) for office in lock_nodes]

    async def check_then_count(n: int) -> int:
        wait = await both[n % 2].charge([("person:control", WIDE, 1)], ChargeMode.PEEK)
        if not wait:
            await both[n % 2].charge([("person:control", WIDE, 1)])
        return wait

    assert (await asyncio.gather(*map(check_then_count, range(200)))).count(0) > 50


async def test_every_count_ends_by_itself_and_redis_may_lose_it(
    lock_nodes: Offices, redis_topology: RedisTopology
) -> None:
    counts = RateLimiter(lock_nodes[0].pipeline)
    redis_topology.flush_all()
    assert await counts.charge([(HERE, HOURLY, 5), (HERE, WIDE, 1)]) == 0
    keys = {key for key in redis_topology.all_keys() if "{rate}" in key}
    assert keys == {rate_limit_key(HERE, limit.name) for limit in (HOURLY, WIDE)}
    for key in keys:
        assert 0 < await lock_nodes[0].pipeline.send("PTTL", key) <= 2 * 3600 * 1000
    redis_topology.flush_all()
    assert await counts.charge([(HERE, HOURLY, 5)]) == 0


async def test_what_is_given_back_wholly_leaves_nothing_in_redis(
    lock_nodes: Offices, redis_topology: RedisTopology
) -> None:
    counts, kept = RateLimiter(lock_nodes[0].pipeline), rate_limit_key(HERE, WIDE.name)
    redis_topology.flush_all()
    assert await counts.charge([(HERE, HOURLY, 2), (HERE, WIDE, 2)]) == 0
    assert await counts.charge([(HERE, HOURLY, 2), (HERE, WIDE, 1)], ChargeMode.REFUND) == 0
    assert {key for key in redis_topology.all_keys() if "{rate}" in key} == {kept}
