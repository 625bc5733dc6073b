"""Nobody waits for a release, and none is lost: each is counted, repeated and drained."""

import asyncio

import pytest
from redis import Redis

from slotlock.infrastructure.mongo.ids import new_slot_id
from slotlock.infrastructure.redis.keys import lock_keys
from slotlock.infrastructure.redis.locks import redis_locks
from slotlock.infrastructure.redis.locks.locks import Locks
from slotlock.infrastructure.redis.locks.redis_locks import RELEASE_FAILURES, PendingReleases
from tests.support.apps.restartable_servers import RestartableServer
from tests.support.polling import eventually
from tests.support.stores.lock_nodes import acquire_lease, open_lock_node, stored_lock

# Longer than a busy machine may hold up the step after an acquisition.
SHORT_TTL_MS = 3_000


def failure_count() -> float:
    """Return how many releases have failed in this process."""
    return float(RELEASE_FAILURES._value.get())


async def rounds_of_the_loop(count: int = 50) -> None:
    """Let everything run that waits for no server."""
    for _ in range(count):
        await asyncio.sleep(0)


async def test_a_release_does_not_wait_for_redis(locks: Locks, valkey: RestartableServer) -> None:
    slot_id = new_slot_id()
    lease = await acquire_lease(locks, slot_id)
    valkey.pause()
    try:
        await asyncio.wait_for(locks.release(lease), 10)
    finally:
        valkey.resume()
    await locks.wait_for_releases()
    assert await stored_lock(locks, slot_id) is None


async def test_a_release_that_fails_is_counted_and_its_lock_expires(
    valkey: RestartableServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot_id, failures = new_slot_id(), failure_count()
    failing_script = "return redis.error_reply('no release')"
    monkeypatch.setattr("slotlock.infrastructure.redis.locks.redis_locks.RELEASE", failing_script)
    async with (
        open_lock_node(valkey.url, SHORT_TTL_MS) as holder,
        open_lock_node(valkey.url) as other,
    ):
        lease = await acquire_lease(holder, slot_id)
        await holder.release(lease)
        await holder.wait_for_releases()
        assert failure_count() == failures + 1
        assert await stored_lock(other, slot_id) is not None

        async def is_free() -> bool:
            return await stored_lock(other, slot_id) is None

        await eventually(is_free, "the lock expired")  # unless it is renewed


async def test_a_release_that_succeeds_is_not_counted_as_failed(locks: Locks) -> None:
    failures = failure_count()
    await locks.release(await acquire_lease(locks, new_slot_id()))
    await locks.wait_for_releases()
    assert failure_count() == failures


async def ends_before_its_release(valkey: RestartableServer) -> bool:
    """Stop a node while Redis does not reply. Return whether that ends before the release."""
    slot_id = new_slot_id()
    async with open_lock_node(valkey.url) as node:
        lease = await acquire_lease(node, slot_id)
        valkey.pause()
        try:
            await node.release(lease)
            stopping = asyncio.create_task(node.stop())
            await rounds_of_the_loop()
            is_early = stopping.done()
        finally:
            valkey.resume()
        await stopping
        with Redis.from_url(valkey.url) as redis:
            return is_early or bool(redis.exists(lock_keys(slot_id).lock))


async def test_a_stop_waits_for_releases(valkey: RestartableServer) -> None:
    assert not await ends_before_its_release(valkey)


async def test_control_a_stop_that_does_not_wait_ends_before_the_release(
    valkey: RestartableServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def return_at_once(_: PendingReleases) -> None:
        pass

    monkeypatch.setattr(PendingReleases, "drain", return_at_once)
    assert await ends_before_its_release(valkey)


async def test_a_release_waits_while_too_many_others_are_pending(
    locks: Locks, valkey: RestartableServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_locks, "MAX_PENDING_RELEASES", 2)
    leases = [await acquire_lease(locks, new_slot_id()) for _ in range(3)]
    valkey.pause()
    try:
        releasing = [asyncio.create_task(locks.release(lease)) for lease in leases]
        await rounds_of_the_loop()
        are_done = [task.done() for task in releasing]
    finally:
        valkey.resume()
    await asyncio.wait_for(asyncio.gather(*releasing), 10)
    assert are_done == [True, True, False]
