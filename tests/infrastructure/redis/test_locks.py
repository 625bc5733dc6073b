"""The lock on real servers: exclusive, owned, renewed, and gone when nobody holds it."""

import asyncio
import random

import pytest

from slotlock.domain.booking.booking import SlotId
from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks import leases as leases_module
from slotlock.infrastructure.redis.locks import locks as locks_module
from slotlock.infrastructure.redis.locks.leases import Lease, RedisLease
from slotlock.infrastructure.redis.locks.locks import LOCK_TTL_MS, Locks
from tests.support.apps.redis_topologies import RedisTopology
from tests.support.apps.variants.locks import RELEASE_WITHOUT_OWNER, RENEW_NOTHING
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import acquire_lease, open_lock_node, stored_lock

CANCELLATIONS = 10_000
SHORT_MS = 300

Offices = tuple[Locks, Locks]


only_one = pytest.mark.parametrize("redis_topology", ["one server"], indirect=True)


async def ttl(locks: Locks, slot_id: SlotId) -> int:
    """What is left of a lock, in ms; -2 when there is none."""
    return int(await locks.pipeline.send("PTTL", lock_keys(slot_id).lock))


async def test_of_many_who_ask_at_once_one_gets_the_lease(lock_nodes: Offices) -> None:
    slot_id = new_slot_id()
    leases = await asyncio.gather(*(lock_nodes[n % 2].acquire(slot_id) for n in range(200)))
    assert len([lease for lease in leases if lease]) == 1


async def test_a_lease_lasts_ten_seconds_and_ends_with_its_release(lock_nodes: Offices) -> None:
    slot_id, lock_node = new_slot_id(), lock_nodes[0]
    lease = await acquire_lease(lock_node, slot_id)
    assert LOCK_TTL_MS - 2_000 < await ttl(lock_node, slot_id) <= LOCK_TTL_MS
    await lock_node.release(lease)
    assert await ttl(lock_node, slot_id) == -2
    assert not lease.lost.is_set()


async def test_slots_do_not_wait_for_each_other(lock_nodes: Offices) -> None:
    leases = await asyncio.gather(*(lock_nodes[0].acquire(new_slot_id()) for _ in range(50)))
    assert all(leases)


async def cancelled_at_random(lock_nodes: Offices, slot_ids: list[SlotId], count: int) -> None:
    """Acquisitions of one slot or two, that wait or do not, each cancelled at some moment."""
    chance = random.Random(20_301)

    async def hold(lock_node: Locks) -> None:
        wanted = chance.sample(slot_ids, chance.choice([1, 1, 2]))
        lease = await lock_node.acquire(*wanted, wait_s=chance.choice([0, 0.001, 5]))
        if lease is not None:
            try:
                await asyncio.sleep(chance.random() / 1000)
            finally:
                await lock_node.release(lease)

    for _ in range(count // 100):
        tasks = [asyncio.create_task(hold(lock_nodes[n % 2])) for n in range(100)]
        for task in chance.sample(tasks, len(tasks)):
            if chance.random() < 0.2:
                await asyncio.sleep(chance.random() / 2000)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_acquisitions_cancelled_at_any_moment_leave_no_key(
    lock_nodes: Offices, redis_topology: RedisTopology
) -> None:
    slot_ids = [new_slot_id() for _ in range(20)]
    await cancelled_at_random(lock_nodes, slot_ids, CANCELLATIONS)

    async def nothing_is_left() -> bool:
        for locks in lock_nodes:  # whatever was in line before this has been sent
            await locks.pipeline.send("GET", lock_keys(slot_ids[0]).lock)
        return not any(slot_id in key for slot_id in slot_ids for key in redis_topology.all_keys())

    # Long before anything would run out.
    async with asyncio.timeout(1):
        await eventually(nothing_is_left, "no key")


@only_one
async def test_control_if_the_cancelled_give_nothing_back_keys_are_left(
    lock_nodes: Offices, redis_topology: RedisTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks_module, "RELEASE", "return false")
    slot_ids = [new_slot_id() for _ in range(20)]
    await cancelled_at_random(lock_nodes, slot_ids, 100)
    assert any(slot_id in key for slot_id in slot_ids for key in redis_topology.all_keys())


async def renewals(lock_node: Locks, slot_id: SlotId, count: int) -> None:
    """Wait until a lock was renewed so often."""
    seen, last = 0, await ttl(lock_node, slot_id)

    async def renewed() -> bool:
        nonlocal seen, last
        now = await ttl(lock_node, slot_id)
        assert now > 0, "the lock ran out"
        seen, last = seen + (now > last), now
        return seen == count

    await eventually(renewed, "renewals")


async def test_a_lease_is_renewed_for_as_long_as_it_is_held(redis_topology: RedisTopology) -> None:
    slot_id = new_slot_id()
    async with (
        open_lock_node(redis_topology.url, SHORT_MS) as ours,
        open_lock_node(redis_topology.url) as other,
    ):
        lease = await acquire_lease(ours, slot_id)
        await renewals(ours, slot_id, 6)  # twice its time to live
        assert await other.acquire(slot_id) is None
        assert not lease.lost.is_set()
        await ours.release(lease)
        await other.release(await acquire_lease(other, slot_id))


@only_one
async def test_control_without_renewal_a_lease_runs_out_under_its_holder(
    redis_topology: RedisTopology, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases_module, "RENEW", RENEW_NOTHING)
    slot_id = new_slot_id()
    async with open_lock_node(redis_topology.url, SHORT_MS) as ours:
        await acquire_lease(ours, slot_id)
        with pytest.raises(AssertionError, match="ran out"):
            await renewals(ours, slot_id, 6)


async def lost_to_another(ours: Locks, other: Locks, slot_id: SlotId) -> tuple[Lease, Lease]:
    """A lease whose lock was lost and given to another."""
    lease = await acquire_lease(ours, slot_id)
    await ours.pipeline.send("DEL", lock_keys(slot_id).lock)
    return lease, await acquire_lease(other, slot_id)


async def test_the_holder_of_a_lost_lease_is_told(redis_topology: RedisTopology) -> None:
    async with (
        open_lock_node(redis_topology.url, SHORT_MS) as ours,
        open_lock_node(redis_topology.url) as other,
    ):
        lease = await acquire_lease(ours, new_slot_id())
        await ours.pipeline.send("DEL", lock_keys(lease.names[0]).lock)
        await asyncio.wait_for(lease.lost.wait(), 10)
        lease, theirs = await lost_to_another(ours, other, new_slot_id())
        await asyncio.wait_for(lease.lost.wait(), 10)
        assert not theirs.lost.is_set()


async def test_neither_renewal_nor_release_touches_the_lock_of_another(
    redis_topology: RedisTopology,
) -> None:
    slot_id = new_slot_id()
    async with (
        open_lock_node(redis_topology.url, SHORT_MS) as ours,
        open_lock_node(redis_topology.url) as other,
    ):
        lease, theirs = await lost_to_another(ours, other, slot_id)
        await asyncio.wait_for(lease.lost.wait(), 10)
        assert await ttl(other, slot_id) > SHORT_MS
        await ours.release(lease)
        assert isinstance(theirs, RedisLease)
        assert (await stored_lock(other, slot_id) or b"").startswith(theirs.token.encode())


@only_one
async def test_control_without_the_owner_check_a_release_frees_the_lock_of_another(
    lock_nodes: Offices, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id = new_slot_id()
    lease, _ = await lost_to_another(*lock_nodes, slot_id)
    monkeypatch.setattr(locks_module, "RELEASE", RELEASE_WITHOUT_OWNER)
    await lock_nodes[0].release(lease)
    assert await stored_lock(lock_nodes[1], slot_id) is None


async def test_a_release_is_sent_though_its_caller_is_cancelled(lock_nodes: Offices) -> None:
    slot_id = new_slot_id()
    lease = await acquire_lease(lock_nodes[0], slot_id)
    releasing = asyncio.create_task(lock_nodes[0].release(lease))
    await asyncio.sleep(0)
    releasing.cancel()
    await asyncio.gather(releasing, return_exceptions=True)
    assert await acquire_lease(lock_nodes[0], slot_id)


async def test_each_lease_has_a_token_of_its_own_and_a_higher_fence(
    lock_nodes: Offices, redis_topology: RedisTopology
) -> None:
    slot_id, before = new_slot_id(), []
    for turn in range(20):
        lease = await acquire_lease(lock_nodes[turn % 2], slot_id)
        before.append(lease)
        if turn % 5 == 4:
            redis_topology.flush_all()
        await lock_nodes[turn % 2].release(lease)
    fences = [lease.fencing_token for lease in before]
    assert fences == sorted(set(fences))
    assert len({lease.token for lease in before if isinstance(lease, RedisLease)}) == 20
