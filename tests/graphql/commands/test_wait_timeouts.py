"""No caller waits longer than its timeout for locks and idempotency keys."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable

import pytest
from redis import Redis

from tests.support.apps.deployment import lock_key
from tests.support.clients.booking_client import BOOK_WITH_OPTIONS
from tests.support.clients.client import Json
from tests.support.clients.fixtures import Three
from tests.support.polling import eventually

TEAM_SIZE = 2
# A busy machine is slow; a wait that begins anew would take a whole `PATIENCE_S` more.
PATIENCE_S = 6.0
SLACK_S = 3.0
# A request that repeats a key waits at least this long for the first outcome.
KEY_WAIT_S = 5.0


@pytest.fixture
async def busy(clients: Three, redis: Redis) -> AsyncIterator[list[str]]:
    """Yield slots whose locks are held until the test ends."""
    slot_ids = [await clients[2].add_slot(capacity=5) for _ in range(6)]
    for slot_id in slot_ids:
        assert redis.set(lock_key(slot_id), "somebody-else:1")
    yield slot_ids
    redis.delete(*map(lock_key, slot_ids))


async def timed(call: Awaitable[Json]) -> tuple[str, float]:
    """Return the type name of a response and its duration in seconds."""
    began = time.monotonic()
    outcome = await call
    return outcome["__typename"], time.monotonic() - began


def outcome_or_code(response: Json) -> str:
    """Return the type name of an outcome, or the code of the error."""
    if "errors" in response:
        return str(response["errors"][0]["extensions"]["code"])
    return str(response["data"]["bookSlot"]["__typename"])


async def test_a_caller_waits_for_a_held_lock_no_longer_than_its_limit(
    clients: Three, busy: list[str]
) -> None:
    ada, ben, organizer = clients
    bens, long_wait = await ben.fetch_user_id(), {"waitMs": int(1000 * PATIENCE_S)}
    await ada.fetch_user_id()  # so that no session is loaded while the time is measured
    outcomes = await asyncio.gather(
        timed(ada.book_slot(busy[0], **long_wait)),
        timed(ada.book_slot(busy[1], idempotencyKey=secrets.token_hex(8), **long_wait)),
        timed(ada.book_slot(busy[2], userId=bens, **long_wait)),
        timed(
            ada.book_slot(busy[3], userId=bens, idempotencyKey=secrets.token_hex(8), **long_wait)
        ),
        timed(ada.book_all({"slotId": busy[4]}, {"slotId": busy[5], "userId": bens}, **long_wait)),
        timed(organizer.book_slot(busy[5], userId=bens, **long_wait)),
    )
    assert {name for name, _ in outcomes} == {"Locked"}
    for _, took in outcomes:
        assert PATIENCE_S - 0.5 < took < 2 * PATIENCE_S - 0.5, outcomes


async def test_a_repeated_key_waits_no_longer_than_its_limit_in_total(
    clients: Three, busy: list[str], redis: Redis
) -> None:
    ada, *_ = clients

    async def resent(slot_id: str, first_s: float, again_s: float) -> tuple[str, float]:
        """Send a request again while its first send is in progress and return both results."""
        options = {"idempotencyKey": secrets.token_hex(8)}
        first = asyncio.create_task(ada.book_slot(slot_id, waitMs=int(1000 * first_s), **options))

        async def stands() -> bool:
            return bool(redis.exists(lock_key(slot_id).replace(":lock", ":queue")))

        await eventually(stands, "the first request waits for the lock")
        again = {"slotId": slot_id, "waitMs": int(1000 * again_s), **options}
        began = time.monotonic()
        response = await ada.send(BOOK_WITH_OPTIONS, input=again)
        took = time.monotonic() - began
        redis.delete(lock_key(slot_id))
        await first
        return outcome_or_code(response), took

    longer = KEY_WAIT_S + 2
    # The first request holds the key all the time; or for a while, so that some time is left for
    # the lock of the slot; or longer than the repeated request would wait for a place.
    sends = ((20.0, longer), (longer / 2, longer), (20.0, 0.0))
    resending = (resent(slot_id, *each) for slot_id, each in zip(busy, sends, strict=False))
    results = await asyncio.gather(*resending)
    # While the first request holds the key, it may still book.
    assert [name for name, _ in results] == ["OUTCOME_UNKNOWN", "Locked", "OUTCOME_UNKNOWN"]
    for (_, took), (_, again_s) in zip(results, sends, strict=True):
        patience_s = max(again_s, KEY_WAIT_S)
        assert patience_s - 0.5 < took < patience_s + SLACK_S
