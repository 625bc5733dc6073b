"""Callers who wait are served in order of arrival; a refusal waits for no lock."""

import asyncio
import json
import secrets
from collections import Counter

import httpx
import pytest
from redis import Redis

from tests.support.apps.deployment import assert_slot_consistent, lock_key, slot_document
from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import (
    BOOK_WITH_OPTIONS,
    CANCEL_WITH_OPTIONS,
    BookingClient,
    create_booking_clients,
)
from tests.support.clients.client import Json
from tests.support.clients.fixtures import Three
from tests.support.stores.users import UserTokens
from tests.support.transport.simultaneous_requests import send_simultaneously

LONGEST_MS = 20_000
SOON = "mutation($id: ID!) { %s(slotId: $id, waitMs: 0) { __typename ...on Refusal { code } } }"
# Less than the callers' wait timeout, and far more than the responses take.
AT_ONCE_S = 18
LONG_WAIT = {"waitMs": 20_000}


def acquire_lock(redis: Redis, slot_id: str, px: int | None = None) -> None:
    """Acquire the lock of a slot for this many ms or until `release_lock`."""
    assert redis.set(lock_key(slot_id), "somebody-else:1", px=px)


def release_lock(redis: Redis, slot_id: str) -> None:
    """Release the lock of a slot."""
    redis.delete(lock_key(slot_id))


async def rush(apps: Pair, user_tokens: UserTokens, slot_id: str, wait_ms: int) -> list[Json]:
    """Book one slot for all clients at the same instant, with this wait timeout."""
    variables = {"input": {"slotId": slot_id, "waitMs": wait_ms}}
    tokens = enumerate(user_tokens.members)
    return await send_simultaneously(
        [(apps[i % 2].url, token, BOOK_WITH_OPTIONS, variables) for i, token in tokens]
    )


@pytest.mark.parametrize(
    ("places", "expected"), [(200, {"Booked": 200}), (10, {"Booked": 10, "SlotFull": 190})]
)
async def test_200_waiting_callers_get_all_200_places_and_none_receives_locked(
    two_apps: Pair,
    user_tokens: UserTokens,
    http: httpx.AsyncClient,
    places: int,
    expected: dict[str, int],
) -> None:
    organizer = BookingClient(http, two_apps[0].url, user_tokens.organizer)
    slot_id = await organizer.add_slot(capacity=places)
    outcomes = await rush(two_apps, user_tokens, slot_id, LONGEST_MS)
    assert Counter(outcome["__typename"] for outcome in outcomes) == expected
    document = slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id)
    assert_slot_consistent(document, places)
    booked_ids = {o["booking"]["id"][-24:] for o in outcomes if o["__typename"] == "Booked"}
    assert booked_ids == {str(booking["id"]) for booking in document["bookings"]}


async def test_200_waiting_callers_with_keys_get_all_200_places(
    two_apps: Pair, user_tokens: UserTokens, http: httpx.AsyncClient
) -> None:
    organizer = BookingClient(http, two_apps[0].url, user_tokens.organizer)
    slot_id = await organizer.add_slot(capacity=200)
    options = {"slotId": slot_id, "waitMs": LONGEST_MS, "idempotencyKey": "mine", "hold": True}
    shots = [
        (two_apps[i % 2].url, token, BOOK_WITH_OPTIONS, {"input": options})
        for i, token in enumerate(user_tokens.members)
    ]
    first = await send_simultaneously(shots)
    assert Counter(outcome["__typename"] for outcome in first) == {"Booked": 200}
    again = await send_simultaneously(shots)
    assert list(map(json.dumps, again)) == list(map(json.dumps, first))
    url = two_apps[0].environment["SLOTLOCK_MONGO_URL"]
    assert_slot_consistent(slot_document(url, slot_id), 200)


async def test_places_cancelled_and_booked_by_many_waiting_callers_add_up(
    two_apps: Pair, user_tokens: UserTokens, http: httpx.AsyncClient
) -> None:
    organizer = BookingClient(http, two_apps[0].url, user_tokens.organizer)
    slot_id = await organizer.add_slot(capacity=40)
    first = [
        BookingClient(http, two_apps[i % 2].url, token)
        for i, token in enumerate(user_tokens.members[:40])
    ]
    booked = await asyncio.gather(*(user.book_slot(slot_id, waitMs=LONGEST_MS) for user in first))
    back = [
        (
            user.url,
            user.token or "",
            CANCEL_WITH_OPTIONS,
            {"booking": b["booking"]["id"], "wait": 20_000},
        )
        for user, b in zip(first, booked, strict=True)
    ]
    variables = {"input": {"slotId": slot_id, "waitMs": LONGEST_MS}}
    come = [
        (two_apps[i % 2].url, token, BOOK_WITH_OPTIONS, variables)
        for i, token in enumerate(user_tokens.members[40:140])
    ]
    shots = [shot for pair in zip(come, back, strict=False) for shot in pair] + come[40:]
    counts = Counter(outcome["__typename"] for outcome in await send_simultaneously(shots))
    assert counts["BookingCancelled"] == 40
    assert counts["Booked"] + counts["SlotFull"] == 100
    url = two_apps[0].environment["SLOTLOCK_MONGO_URL"]
    assert_slot_consistent(slot_document(url, slot_id), counts["Booked"])


async def test_a_caller_that_does_not_wait_receives_locked_with_retry_after_ms(
    clients: Three, redis: Redis
) -> None:
    ada, ben, organizer = clients
    slot_id, other_id = await organizer.add_slot(capacity=5), await organizer.add_slot(capacity=5)
    full_id = await organizer.add_slot()
    hold = await ada.hold(slot_id)
    await ada.book_slot(full_id)
    for each in (slot_id, full_id):
        acquire_lock(redis, each)
    try:
        locked = await ben.execute(
            "mutation($id: ID!) { bookSlot(input: {slotId: $id}) {"
            " ...on Locked { code slotId retryAfterMs } } }",
            id=slot_id,
        )
        assert (locked["code"], locked["slotId"]) == ("LOCKED", slot_id)
        assert 0 < locked["retryAfterMs"] <= 1000
        for outcome in (
            await ben.book_all({"slotId": other_id}, {"slotId": slot_id}, waitMs=0),
            await ada.confirm(hold["id"], wait=0),
            await ada.cancel_booking(hold["id"], wait=0),
            await ada.move(hold["id"], other_id, waitMs=0),
            await ben.execute(SOON % "joinWaitlist", id=full_id),
        ):
            assert outcome["__typename"] == "Locked"
        # A refusal needs no lock.
        assert (await ben.book_slot(full_id, waitMs=0))["code"] == "SLOT_FULL"
        assert (await ada.book_slot(slot_id, waitMs=0))["code"] == "ALREADY_BOOKED"
        assert (await ben.execute(SOON % "leaveWaitlist", id=full_id))["code"] == "NOT_WAITING"
    finally:
        for each in (slot_id, full_id):
            release_lock(redis, each)
    assert await ada.fetch_booking(hold["id"]) == hold
    assert (await ben.book_slot(slot_id))["__typename"] == "Booked"
    assert (await ben.fetch_slot(other_id))["remaining"] == 5


async def test_a_caller_whose_wait_ends_receives_locked(clients: Three, redis: Redis) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(capacity=5)
    acquire_lock(redis, slot_id)
    try:
        outcomes = await asyncio.gather(
            *(user.book_slot(slot_id, waitMs=300) for user in (ada, ben) * 5)
        )
    finally:
        release_lock(redis, slot_id)
    assert {outcome["__typename"] for outcome in outcomes} == {"Locked"}
    assert (await ada.book_slot(slot_id))["__typename"] == "Booked"
    assert (await ben.book_slot(slot_id))["__typename"] == "Booked"


async def test_a_waiting_caller_is_served_after_the_one_ahead_disconnects(
    clients: Three, redis: Redis
) -> None:
    ada, ben, organizer = clients
    slot_id = await organizer.add_slot(capacity=5)
    acquire_lock(redis, slot_id, px=1_000)  # a dead holder never releases it
    outcomes = await asyncio.gather(
        *(user.book_slot(slot_id, waitMs=LONGEST_MS) for user in (ada, ben))
    )
    assert {outcome["__typename"] for outcome in outcomes} == {"Booked"}


async def test_a_longer_wait_outlasts_those_ahead(clients: Three, redis: Redis) -> None:
    ada, ben, organizer = clients
    here = BookingClient(ben.http, ada.url, ben.token)
    slot_id = await organizer.add_slot(capacity=5)
    acquire_lock(redis, slot_id)
    hasty = asyncio.create_task(ada.book_slot(slot_id, waitMs=700))
    await here.fetch_user_id()  # Ada's request is on its way before Ben's
    waiting = asyncio.create_task(here.book_slot(slot_id, waitMs=LONGEST_MS))
    assert (await hasty)["__typename"] == "Locked"
    release_lock(redis, slot_id)
    assert (await waiting)["__typename"] == "Booked"


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
        assert (await ben.book_all(*claims, waitMs=0))["__typename"] == "Locked"
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
