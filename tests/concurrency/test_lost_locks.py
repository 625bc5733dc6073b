"""A lock that expires, is deleted by another client, or outlives its holder; over real HTTP.

Each operation pauses at a point, an event that must do no harm happens, and the operation goes on.
The same scene without the guard is the control, in which the event does harm.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from redis import Redis

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.infrastructure.redis.keys import HOLD_SWEEPER_LOCK
from tests.support.apps.deployment import (
    PausePoint,
    app_variant,
    assert_slot_consistent,
    lock_key,
    slot_document,
)
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient, Json, http_client
from tests.support.polling import wait_until
from tests.support.stores.users import UserTokens

Pair = tuple[AppProcess, AppProcess]


@pytest.fixture
def redis(servers: EmbeddedServers) -> Iterator[Redis]:
    """Return a client of the apps' Redis."""
    with Redis.from_url(servers.redis_url) as client:
        yield client


@contextmanager
def paused(
    apps: Pair, log_dir: Path, redis: Redis, point: str, off: str = ""
) -> Iterator[tuple[AppProcess, PausePoint]]:
    """Start a process whose next operation pauses at the point, and return its pause point."""
    stage = PausePoint(redis)
    name = stage.key.replace(":", "-")
    with app_variant(
        apps[0].environment, log_dir / name, without_guards=off, pause_at=point, pause_point=stage
    ) as app:
        yield app, stage


def run_out(redis: Redis, slot_id: str) -> None:
    """Expire the lock of a slot now instead of in ten seconds."""
    assert redis.pexpire(lock_key(slot_id), 1)
    wait_until(lambda: not redis.exists(lock_key(slot_id)), "the lock ran out")


async def late_write(
    apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path, *, off: str, flush: bool
) -> tuple[Json, Json, str]:
    """Expire Ada's lock before her write, let Ben book, then let Ada's write arrive."""
    with paused(apps, log_dir, redis, "commit", off) as (slow, stage):
        async with http_client() as http:
            organizer = GraphQLTestClient(http, apps[0].url, user_tokens.organizer)
            slot_id = (await organizer.create_slot(capacity=1))["id"]
            ada = asyncio.create_task(
                GraphQLTestClient(http, slow.url, user_tokens.members[0]).book(slot_id)
            )
            await asyncio.to_thread(stage.wait_until_reached)
            if flush:
                redis.flushall()
            else:
                run_out(redis, slot_id)
            ben = await GraphQLTestClient(http, apps[0].url, user_tokens.members[1]).book(slot_id)
            stage.resume()
            return await ada, ben, slot_id


@pytest.mark.parametrize("flush", [False, True], ids=["ran out", "flushed"])
async def test_a_write_after_a_lost_lock_does_not_overwrite_another(
    two_apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path, flush: bool
) -> None:
    ada, ben, slot_id = await late_write(two_apps, user_tokens, redis, log_dir, off="", flush=flush)
    assert (ada["__typename"], ben["__typename"]) == ("SlotFull", "Booked")
    document = slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    assert_slot_consistent(document, 1)
    assert str(document["bookings"][0]["id"]) == ben["booking"]["id"][-24:]


@pytest.mark.parametrize("flush", [False, True], ids=["ran out", "flushed"])
async def test_control_without_the_version_the_late_write_books_the_place_twice(
    two_apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path, flush: bool
) -> None:
    ada, ben, slot_id = await late_write(
        two_apps, user_tokens, redis, log_dir, off="slot-version", flush=flush
    )
    assert (ada["__typename"], ben["__typename"]) == ("Booked", "Booked")
    document = slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    assert len(document["bookings"]) == 2


async def late_release(
    apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path, off: str
) -> tuple[object, object]:
    """Expire Ada's lock before its release while Ben holds it; return the lock before and after."""
    with (
        paused(apps, log_dir, redis, "release", off) as (slow, before_release),
        paused(apps, log_dir, redis, "commit") as (other, before_commit),
    ):
        async with http_client() as http:
            organizer = GraphQLTestClient(http, apps[0].url, user_tokens.organizer)
            slot_id = (await organizer.create_slot(capacity=2))["id"]
            ada = asyncio.create_task(
                GraphQLTestClient(http, slow.url, user_tokens.members[0]).book(slot_id)
            )
            await asyncio.to_thread(before_release.wait_until_reached)
            run_out(redis, slot_id)
            ben = asyncio.create_task(
                GraphQLTestClient(http, other.url, user_tokens.members[1]).book(slot_id)
            )
            await asyncio.to_thread(before_commit.wait_until_reached)
            bens = redis.get(lock_key(slot_id))
            before_release.resume()
            await ada
            # The response does not wait for the release, but the next acquisition comes after it.
            other_id = (await organizer.create_slot(capacity=1))["id"]
            await GraphQLTestClient(http, slow.url, user_tokens.members[2]).book(other_id)
            left = redis.get(lock_key(slot_id))
            before_commit.resume()
            assert (await ben)["__typename"] == "Booked"
            return bens, left


async def test_a_release_never_deletes_the_lock_of_another_holder(
    two_apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path
) -> None:
    held, left = await late_release(two_apps, user_tokens, redis, log_dir, off="")
    assert held is not None
    assert left == held


async def test_control_without_the_owner_check_a_release_deletes_the_lock_of_another(
    two_apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path
) -> None:
    held, left = await late_release(two_apps, user_tokens, redis, log_dir, off="lock-owner")
    assert held is not None
    assert left is None


async def killed_before_release(
    apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path, off: str
) -> str:
    """Write Ada's booking and kill her process before it releases the lock."""
    with paused(apps, log_dir, redis, "release", off) as (doomed, stage):
        async with http_client() as http:
            organizer = GraphQLTestClient(http, apps[0].url, user_tokens.organizer)
            slot_id: str = (await organizer.create_slot(capacity=2))["id"]
            ada = asyncio.create_task(
                GraphQLTestClient(http, doomed.url, user_tokens.members[0]).book(slot_id)
            )
            await asyncio.to_thread(stage.wait_until_reached)
            doomed.kill()
            await asyncio.gather(ada, return_exceptions=True)
            return slot_id


async def test_a_process_killed_between_write_and_release_loses_no_booking(
    two_apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path
) -> None:
    slot_id = await killed_before_release(two_apps, user_tokens, redis, log_dir, off="")
    assert 0 < redis.pttl(lock_key(slot_id)) <= 10_000
    async with http_client() as http:
        ben = GraphQLTestClient(http, two_apps[0].url, user_tokens.members[1])
        assert (await ben.book(slot_id))["__typename"] == "Locked"
        wait_until(lambda: not redis.exists(lock_key(slot_id)), "the dead process's lock ran out")
        assert (await ben.book(slot_id))["__typename"] == "Booked"
        ada = await GraphQLTestClient(http, two_apps[1].url, user_tokens.members[0]).book(slot_id)
    assert ada["__typename"] == "AlreadyBooked"
    assert_slot_consistent(slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id), 2)


async def test_control_without_a_ttl_the_lock_of_a_killed_process_never_expires(
    two_apps: Pair, user_tokens: UserTokens, redis: Redis, log_dir: Path
) -> None:
    slot_id = await killed_before_release(two_apps, user_tokens, redis, log_dir, off="ttl")
    assert redis.pttl(lock_key(slot_id)) == -1
    # The killed process may also have had the lease of the sweeper, which later tests need.
    redis.delete(lock_key(slot_id), lock_key(HOLD_SWEEPER_LOCK))
