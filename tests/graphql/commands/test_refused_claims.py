"""Many claims at once: a refusal needs no lock, and a choice group gives each user one place."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest
from redis import Redis

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import lock_key
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import Json

Pair = tuple[AppProcess, AppProcess]
Three = tuple[BookingClient, BookingClient, BookingClient]
# Far less than the callers' wait timeout, and far more than a response takes.
AT_ONCE_S = 12
LONG_WAIT = {"waitMs": 20_000}


@pytest.fixture
def clients(two_apps: Pair, http: httpx.AsyncClient) -> Three:
    """Return clients for Ada at one process, Ben at the other, and an organizer."""
    (ada, ben), organizer = create_booking_clients(http, 2, *two_apps)
    return ada, ben, organizer


@pytest.fixture
def redis(servers: EmbeddedServers) -> Iterator[Redis]:
    """Yield the Redis of the apps."""
    with Redis.from_url(servers.redis_url) as client:
        yield client


def refused(outcome: Json) -> dict[int, str]:
    """Return the code of each claim that was refused."""
    assert outcome["__typename"] == "ClaimsRefused", outcome
    return {each["claim"]: each["refusal"]["code"] for each in outcome["refusals"]}


async def test_claims_that_will_be_refused_do_not_wait(clients: Three, redis: Redis) -> None:
    ada, ben, organizer = clients
    full, free, own = [await organizer.add_slot() for _ in range(3)]
    off = await organizer.add_slot()
    await ada.book_slot(full)
    await ben.book_slot(own)
    await organizer.cancel_slot(off)
    locked = [full, free, own, off]
    for slot_id in locked:
        assert redis.set(lock_key(slot_id), "somebody-else:1")
    try:
        async with asyncio.timeout(AT_ONCE_S):
            for refusing, code in ((full, "SLOT_FULL"), (off, "SLOT_CANCELLED")):
                claims = {"slotId": free}, {"slotId": refusing}
                assert refused(await ben.book_all(*claims, **LONG_WAIT)) == {1: code}
                assert refused(await ben.book_all(*claims)) == {1: code}
                key = secrets.token_hex(8)
                again = await ben.book_all(*claims, **LONG_WAIT, idempotencyKey=key)
                assert refused(again) == {1: code}
            claims = {"slotId": own}, {"slotId": free}
            assert refused(await ben.book_all(*claims, **LONG_WAIT)) == {0: "ALREADY_BOOKED"}
        for slot_id in locked:
            assert redis.get(lock_key(slot_id)) == b"somebody-else:1"
            assert not redis.exists(lock_key(slot_id).replace(":lock", ":queue"))
    finally:
        redis.delete(*map(lock_key, locked))
    assert (await ben.fetch_slot(free))["remaining"] == 1


async def test_claims_that_can_succeed_wait_for_the_locks(clients: Three, redis: Redis) -> None:
    """The control: a claim that is not refused does wait for the lock."""
    _, ben, organizer = clients
    slot_ids = [await organizer.add_slot() for _ in range(2)]
    assert redis.set(lock_key(slot_ids[1]), "somebody-else:1")
    try:
        claims = [{"slotId": slot_id} for slot_id in slot_ids]
        assert (await ben.book_all(*claims))["__typename"] == "Locked"
    finally:
        redis.delete(lock_key(slot_ids[1]))
    assert (await ben.book_all(*claims))["__typename"] == "AllBooked"


async def test_20_users_who_claim_a_choice_group_at_once_each_get_one_place(
    two_apps: Pair, http: httpx.AsyncClient
) -> None:
    users, organizer = create_booking_clients(http, 20, *two_apps)
    await users[0].create_team_with(*users[1:])
    ids = await asyncio.gather(*(user.fetch_user_id() for user in users))
    room = secrets.token_hex(8)
    beds = [await organizer.add_slot(choiceGroup=room, capacity=20) for _ in range(2)]
    each = [{"slotId": beds[n % 2], "userId": user_id} for n, user_id in enumerate(ids)]
    other = [{"slotId": beds[1 - n % 2], "userId": user_id} for n, user_id in enumerate(ids)]

    twice = await users[0].book_all(*each, *other, **LONG_WAIT)
    assert refused(twice) == dict.fromkeys(range(20, 40), "LIMIT_REACHED")
    assert [(await organizer.fetch_slot(bed))["remaining"] for bed in beds] == [20, 20]

    booked = await users[0].book_all(*each, **LONG_WAIT)
    assert booked["__typename"] == "AllBooked"
    assert [booking["user"]["id"] for booking in booked["bookings"]] == ids
    assert Counter(b["slot"]["id"] for b in booked["bookings"]) == dict.fromkeys(beds, 10)

    again = await users[0].book_all(*other, **LONG_WAIT)
    assert refused(again) == dict.fromkeys(range(20), "LIMIT_REACHED")
    own = await asyncio.gather(*(p.book_slot(beds[1 - n % 2]) for n, p in enumerate(users)))
    assert {outcome["code"] for outcome in own} == {"LIMIT_REACHED"}
    assert [(await organizer.fetch_slot(bed))["remaining"] for bed in beds] == [10, 10]
