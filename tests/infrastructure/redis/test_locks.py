"""A lock has one holder, is renewed while it is held, and leaves no keys when it is released."""

import asyncio
import random
import time

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks import lock_leases, redis_locks
from slotlock.infrastructure.redis.locks.lock_leases import (
    FencingTokens,
    InProcessLockLease,
    LockLease,
    RedisLockLease,
)
from slotlock.infrastructure.redis.locks.locks import LOCK_TTL_MS, Locks
from tests.support.apps.redis_topologies import RedisTopology
from tests.support.apps.variants.locks import RELEASE_WITHOUT_OWNER, RENEW_NOTHING
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import (
    ON_ONE_SERVER,
    LockNodes,
    acquire_lease,
    open_lock_node,
    release_lease,
    start_waiter,
    stored_lock,
)

CANCELLATIONS = 4_000
# A lease is renewed after a third of it: a busy machine may hold up each step for 2 s.
SHORT_TTL_MS = 3_000
# More than the messages about the last grants need.
CLEANUP_ROUNDS = 100
HOUR_US = 3_600_000_000


async def ttl_ms(node: Locks, slot_id: SlotId) -> int:
    """Return the remaining time to live of a lock; -2 if there is none."""
    return int(await node.pipeline.send("PTTL", lock_keys(slot_id).lock))


async def test_of_200_concurrent_callers_one_gets_the_lease(lock_nodes: LockNodes) -> None:
    slot_id = new_slot_id()
    results = await asyncio.gather(*(lock_nodes[n % 2].acquire(slot_id) for n in range(200)))
    assert len([lease for lease in results if lease]) == 1


async def test_a_lease_lasts_ten_seconds_and_ends_with_its_release(lock_nodes: LockNodes) -> None:
    slot_id, node = new_slot_id(), lock_nodes[0]
    lease = await acquire_lease(node, slot_id)
    assert LOCK_TTL_MS / 2 < await ttl_ms(node, slot_id) <= LOCK_TTL_MS
    await release_lease(node, lease)
    assert await ttl_ms(node, slot_id) == -2
    assert not lease.lost.is_set()


async def test_the_locks_of_different_slots_are_independent(lock_nodes: LockNodes) -> None:
    assert all(await asyncio.gather(*(lock_nodes[0].acquire(new_slot_id()) for _ in range(50))))


async def test_locks_that_are_acquired_and_released_together_have_a_lease_each(
    lock_nodes: LockNodes,
) -> None:
    node, other = lock_nodes
    names = [new_slot_id() for _ in range(5)]
    taken = await acquire_lease(other, names[0])
    none, first, *others = await node.acquire_each(names)
    assert none is None
    for lease in others:
        assert lease is not None
        node.release_soon(lease)
    await node.wait_for_releases()
    is_held = [await stored_lock(node, name) is not None for name in names]
    assert is_held == [True, True, False, False, False]
    assert first is not None
    await release_lease(node, first)
    await release_lease(other, taken)


async def cancel_at_random(lock_nodes: LockNodes, slot_ids: list[SlotId], count: int) -> None:
    """Acquire one lock or two, waiting or not, and cancel each acquisition at some moment."""
    rng = random.Random(20_301)

    async def hold(node: Locks) -> None:
        names = rng.sample(slot_ids, rng.choice([1, 1, 2]))
        lease = await node.acquire(*names, wait_s=rng.choice([0, 0.001, 5]))
        if lease is not None:
            try:
                await asyncio.sleep(rng.random() / 1000)
            finally:
                await node.release(lease)

    for _ in range(count // 100):
        tasks = [asyncio.create_task(hold(lock_nodes[n % 2])) for n in range(100)]
        for task in rng.sample(tasks, len(tasks)):
            if rng.random() < 0.2:
                await asyncio.sleep(rng.random() / 2000)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_acquisitions_cancelled_at_any_moment_leave_no_keys(
    lock_nodes: LockNodes, redis_topology: RedisTopology
) -> None:
    slot_ids = [new_slot_id() for _ in range(20)]
    await cancel_at_random(lock_nodes, slot_ids, CANCELLATIONS)

    async def no_keys_left() -> bool:
        for node in lock_nodes:  # a reply means that all commands before it were sent
            await node.pipeline.send("GET", lock_keys(slot_ids[0]).lock)
        return not any(slot_id in key for slot_id in slot_ids for key in redis_topology.all_keys())

    # Rounds, not seconds: on an idle machine, they take less than any time to live.
    for _ in range(CLEANUP_ROUNDS):
        if await no_keys_left():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("keys are left")


@pytest.mark.parametrize("wait_s", [0.0, 20.0])
async def test_an_acquisition_that_is_cancelled_while_redis_grants_it_leaves_no_lock(
    lock_nodes: LockNodes, wait_s: float
) -> None:
    node, slot_id = lock_nodes[0], new_slot_id()
    acquiring = asyncio.create_task(node.acquire(slot_id, wait_s=wait_s))
    await asyncio.sleep(0)  # the command is sent
    acquiring.cancel()
    await asyncio.gather(acquiring, return_exceptions=True)
    await node.wait_for_releases()
    assert await stored_lock(node, slot_id) is None


@ON_ONE_SERVER
async def test_control_if_cancelled_acquisitions_release_nothing_keys_are_left(
    lock_nodes: LockNodes, redis_topology: RedisTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_locks, "RELEASE", "return {false}")
    slot_ids = [new_slot_id() for _ in range(20)]
    await cancel_at_random(lock_nodes, slot_ids, 100)
    assert any(slot_id in key for slot_id in slot_ids for key in redis_topology.all_keys())


async def wait_for_renewals(node: Locks, slot_id: SlotId, count: int) -> None:
    """Wait until a lock was renewed this many times. Fails if it expires."""
    renewals, previous = 0, await ttl_ms(node, slot_id)

    async def is_renewed() -> bool:
        nonlocal renewals, previous
        current = await ttl_ms(node, slot_id)
        assert current > 0, "the lock expired"
        renewals, previous = renewals + (current > previous), current
        return renewals == count

    await eventually(is_renewed, "renewals")


async def test_a_lease_is_renewed_while_it_is_held(redis_topology: RedisTopology) -> None:
    slot_id = new_slot_id()
    async with (
        open_lock_node(redis_topology.url, SHORT_TTL_MS) as holder,
        open_lock_node(redis_topology.url) as other,
    ):
        lease = await acquire_lease(holder, slot_id)
        await wait_for_renewals(holder, slot_id, 4)  # longer than its time to live
        assert await other.acquire(slot_id) is None
        assert not lease.lost.is_set()
        await release_lease(holder, lease)
        await release_lease(other, await acquire_lease(other, slot_id))


@ON_ONE_SERVER
async def test_control_without_renewal_a_lease_expires_while_it_is_held(
    redis_topology: RedisTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_leases, "RENEW", RENEW_NOTHING)
    slot_id = new_slot_id()
    async with open_lock_node(redis_topology.url, SHORT_TTL_MS) as node:
        await acquire_lease(node, slot_id)
        with pytest.raises(AssertionError, match="expired"):
            await wait_for_renewals(node, slot_id, 4)


async def lose_to(holder: Locks, other: Locks, slot_id: SlotId) -> tuple[LockLease, LockLease]:
    """Let a lock vanish and another node acquire it. Return the lost lease and the new one."""
    lease = await acquire_lease(holder, slot_id)
    await holder.pipeline.send("DEL", lock_keys(slot_id).lock)
    return lease, await acquire_lease(other, slot_id)


async def test_a_lease_knows_that_its_lock_vanished_or_has_another_holder(
    redis_topology: RedisTopology,
) -> None:
    async with (
        open_lock_node(redis_topology.url, SHORT_TTL_MS) as holder,
        open_lock_node(redis_topology.url) as other,
    ):
        lease = await acquire_lease(holder, new_slot_id())
        await holder.pipeline.send("DEL", lock_keys(lease.names[0]).lock)
        await asyncio.wait_for(lease.lost.wait(), 10)
        lease, new_lease = await lose_to(holder, other, new_slot_id())
        await asyncio.wait_for(lease.lost.wait(), 10)
        assert not new_lease.lost.is_set()


async def test_renewal_and_release_never_change_the_lock_of_another_holder(
    redis_topology: RedisTopology,
) -> None:
    slot_id = new_slot_id()
    async with (
        open_lock_node(redis_topology.url, SHORT_TTL_MS) as holder,
        open_lock_node(redis_topology.url) as other,
    ):
        lease, new_lease = await lose_to(holder, other, slot_id)
        await asyncio.wait_for(lease.lost.wait(), 10)
        assert await ttl_ms(other, slot_id) > SHORT_TTL_MS
        await release_lease(holder, lease)
        assert isinstance(new_lease, RedisLockLease)
        assert (await stored_lock(other, slot_id) or b"").startswith(new_lease.token.encode())


@ON_ONE_SERVER
async def test_control_without_the_owner_check_a_release_frees_the_lock_of_another_holder(
    lock_nodes: LockNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id = new_slot_id()
    lease, _ = await lose_to(*lock_nodes, slot_id)
    monkeypatch.setattr(redis_locks, "RELEASE", RELEASE_WITHOUT_OWNER)
    await release_lease(lock_nodes[0], lease)
    assert await stored_lock(lock_nodes[1], slot_id) is None


async def test_a_release_is_sent_though_its_caller_is_cancelled(lock_nodes: LockNodes) -> None:
    slot_id = new_slot_id()
    lease = await acquire_lease(lock_nodes[0], slot_id)
    releasing = asyncio.create_task(lock_nodes[0].release(lease))
    await asyncio.sleep(0)
    releasing.cancel()
    await asyncio.gather(releasing, return_exceptions=True)
    assert await acquire_lease(lock_nodes[0], slot_id)


async def test_each_lease_has_a_new_token_and_a_higher_fencing_token(
    lock_nodes: LockNodes, redis_topology: RedisTopology
) -> None:
    slot_id, issued = new_slot_id(), list[RedisLockLease]()
    for n in range(20):
        lease = await acquire_lease(lock_nodes[n % 2], slot_id)
        assert isinstance(lease, RedisLockLease)
        issued.append(lease)
        if n % 5 == 4:
            redis_topology.flush_all()
        await release_lease(lock_nodes[n % 2], lease)
    fencing_tokens = [lease.fencing_token for lease in issued]
    assert fencing_tokens == sorted(set(fencing_tokens))
    assert len({lease.token for lease in issued}) == 20


async def test_fencing_tokens_rise_though_the_clock_of_redis_falls_back(
    lock_nodes: LockNodes,
) -> None:
    slot_id, node = new_slot_id(), lock_nodes[0]
    ahead = (await acquire_lease(node, new_slot_id())).fencing_token + HOUR_US
    node._fencing_tokens.observe(ahead)  # as a server issued it whose replica is behind
    first = await acquire_lease(node, slot_id)
    waiter = await start_waiter(node, slot_id)
    await release_lease(node, first)
    second = await waiter
    assert second is not None
    assert [first.fencing_token, second.fencing_token] == [ahead + 1, ahead + 2]


async def test_without_redis_a_process_grants_a_lock_to_one_caller_at_a_time() -> None:
    slot_id = new_slot_id()
    # Nobody listens at this port.
    async with open_lock_node("redis://127.0.0.1:1", subscribe=False) as node:
        lease = await acquire_lease(node, slot_id)
        assert isinstance(lease, InProcessLockLease)
        assert await node.acquire(slot_id) is None
        await release_lease(node, lease)
        assert await node.acquire(slot_id) is not None


def test_without_redis_a_host_clock_that_is_ahead_raises_no_token_of_redis(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Redis gives this process more than the highest token, and other processes its own time.
    monkeypatch.setattr(time, "time_ns", lambda: 10**20)
    tokens = FencingTokens()
    tokens.observe(1_000)
    assert [tokens.issue(), tokens.issue()] == [1_001, 1_002]
    assert tokens.highest == 1_000
    tokens.observe(2_000)
    assert tokens.issue() == 2_001
