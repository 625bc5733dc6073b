"""On a Cluster, rate limits of many users use all nodes, and still hold for each of them."""

import asyncio

import pytest

from slotlock.infrastructure.redis import rate_limits
from slotlock.infrastructure.redis.auto_pipeline import RedisUnavailableError
from slotlock.infrastructure.redis.rate_limits import ChargeMode, RateLimit, RateLimiter
from tests.support.apps.redis_topologies import RedisTopology
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import LockNodes

pytestmark = pytest.mark.parametrize("redis_topology", ["Cluster"], indirect=True)

USERS, ATTEMPTS = 40, 8
OF_USER = RateLimit("of-user", 5, 3600)
OF_ADDRESS = RateLimit("of-address", 1000, 3600)
ADDRESS = "address:192.0.2.9"


def nodes_with_counts(topology: RedisTopology) -> int:
    """Return how many nodes store a counter."""
    return sum("{rate" in node.run_command("KEYS *") for node in topology.nodes)


async def charge_users(limiters: list[RateLimiter]) -> list[int]:
    """Let many users at one address make more attempts than they may; return each one's number."""
    waits = [
        [
            limiters[attempt % 2].charge([(f"user:{user}", OF_USER, 1), (ADDRESS, OF_ADDRESS, 1)])
            for attempt in range(ATTEMPTS)
        ]
        for user in range(USERS)
    ]
    return [(await asyncio.gather(*of_user)).count(0) for of_user in waits]


async def test_the_counts_of_many_users_lie_on_all_nodes_and_each_limit_holds(
    lock_nodes: LockNodes, redis_topology: RedisTopology
) -> None:
    redis_topology.flush_all()
    limiters = [RateLimiter(node.pipeline) for node in lock_nodes]
    assert await charge_users(limiters) == [OF_USER.max_count] * USERS
    assert nodes_with_counts(redis_topology) == len(redis_topology.nodes)
    free = OF_ADDRESS.max_count - USERS * OF_USER.max_count

    async def room(amount: int) -> bool:
        return await limiters[0].charge([(ADDRESS, OF_ADDRESS, amount)], ChargeMode.PEEK) == 0

    # The requests that a user's limit rejected are refunded to the address, and no others.
    await eventually(lambda: room(free), "the refunds of the address")
    assert not await room(free + 1)


async def test_control_with_one_hash_tag_one_node_stores_all_counts(
    lock_nodes: LockNodes, redis_topology: RedisTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key_with_one_tag(subject: str, limit_name: str) -> str:
        return f"slotlock:{{rate}}:{subject}:{limit_name}"

    redis_topology.flush_all()
    monkeypatch.setattr(rate_limits, "rate_limit_key", key_with_one_tag)
    limiters = [RateLimiter(node.pipeline) for node in lock_nodes]
    assert await charge_users(limiters) == [OF_USER.max_count] * USERS
    assert nodes_with_counts(redis_topology) == 1


async def test_control_one_script_cannot_charge_subjects_of_different_nodes(
    lock_nodes: LockNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_nodes[0].pipeline, "is_cluster", False)
    limiter = RateLimiter(lock_nodes[0].pipeline)
    with pytest.raises(RedisUnavailableError):
        await limiter.charge([("user:1", OF_USER, 1), (ADDRESS, OF_ADDRESS, 1)])
