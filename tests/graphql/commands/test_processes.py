"""Commands at several processes: a repetition after a crash, and the order of callers."""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import httpx
import pytest
from redis import Redis

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import (
    Deployment,
    PausePoint,
    app_variant,
    assert_slot_consistent,
    lock_key,
    slot_document,
)
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, Pair, app_environment
from tests.support.clients.booking_client import (
    BOOK_WITH_OPTIONS,
    BookingClient,
    create_booking_clients,
)
from tests.support.transport.simultaneous_requests import send_in_order

DATABASE = "crashing"
MEMBER_COUNT = 200
# A busy machine delays requests. A caller may pass those who came this many callers before.
MAX_PASSED = 80


@pytest.fixture(scope="module")
def settings(servers: EmbeddedServers) -> dict[str, str]:
    """Return the settings of a database that only the processes of this module sweep."""
    return app_environment(servers, DATABASE)


@pytest.fixture(scope="module")
def survivor(
    settings: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AppProcess]:
    """Yield the process that is not killed."""
    with forked_app(settings, tmp_path_factory.mktemp("survivor")) as app:
        yield app


def forget_the_dead(redis: Redis) -> None:
    """Expire the locks of the killed process, as time would within seconds."""
    if keys := list(redis.scan_iter("slotlock:{*}:lock")):
        redis.delete(*keys)


async def test_after_a_crash_and_restart_a_key_replays_its_outcome(
    settings: dict[str, str], survivor: AppProcess, log_dir: Path, http: httpx.AsyncClient
) -> None:
    (ada,), organizer = create_booking_clients(http, 1, survivor)
    slot_id, key = await organizer.add_slot(capacity=5), secrets.token_hex(8)
    with forked_app(settings, log_dir / "first") as first:
        there = BookingClient(http, first.url, ada.token)
        outcome = json.dumps(await there.book_slot(slot_id, idempotencyKey=key))
        first.kill()
    with forked_app(settings, log_dir / "second") as second:
        users = [ada, BookingClient(http, second.url, ada.token)] * 10
        # The killed process may not have released its lock yet.
        sends = [user.book_slot(slot_id, idempotencyKey=key, waitMs=20_000) for user in users]
        assert {json.dumps(again) for again in await asyncio.gather(*sends)} == {outcome}
    assert_slot_consistent(slot_document(settings["SLOTLOCK_MONGO_URL"], slot_id), 1)


@pytest.mark.parametrize("moment", ["commit", "release"])
async def test_a_process_killed_before_or_after_the_write_books_exactly_once(
    settings: dict[str, str],
    servers: EmbeddedServers,
    survivor: AppProcess,
    log_dir: Path,
    http: httpx.AsyncClient,
    moment: str,
) -> None:
    (ada,), organizer = create_booking_clients(http, 1, survivor)
    slot_ids, key = [await organizer.add_slot(capacity=5) for _ in range(2)], secrets.token_hex(8)
    claims = [{"slotId": slot_id} for slot_id in slot_ids]
    with Redis.from_url(servers.redis_url) as redis:
        stage = PausePoint(redis)
        with app_variant(settings, log_dir / "dying", pause_at=moment, pause_point=stage) as dying:
            there = BookingClient(http, dying.url, ada.token)
            lost = asyncio.create_task(there.book_all(*claims, idempotencyKey=key))
            await asyncio.to_thread(stage.wait_until_reached)
            dying.kill()
            with contextlib.suppress(httpx.TransportError):
                await lost
        documents = [slot_document(settings["SLOTLOCK_MONGO_URL"], each) for each in slot_ids]
        assert [len(d["bookings"]) for d in documents] == [int(moment == "release")] * 2
        forget_the_dead(redis)
    sends = [ada.book_all(*claims, idempotencyKey=key, waitMs=20_000) for _ in range(20)]
    outcomes = {json.dumps(outcome) for outcome in await asyncio.gather(*sends)}
    assert len(outcomes) == 1
    assert json.loads(outcomes.pop())["__typename"] == "AllBooked"
    for slot_id in slot_ids:
        assert_slot_consistent(slot_document(settings["SLOTLOCK_MONGO_URL"], slot_id), 1)


async def wait_for_arrivals(
    deployment: Deployment, apps: Sequence[AppProcess], slot_id: str
) -> None:
    """Wait until the processes have responded to a request that came after all others."""
    for app in apps:
        await deployment.organizer(app).fetch_slot(slot_id)


async def book_in_order(
    deployment: Deployment,
    apps: Sequence[AppProcess],
    slot_id: str,
    callers: int,
    after_each: Callable[[int], Awaitable[None]],
) -> list[int]:
    """Let callers who wait reach two processes by turns; return the numbers of the winners."""
    booking = {"input": {"slotId": slot_id, "waitMs": 20_000}}
    calls = [
        (apps[number % 2].url, token, BOOK_WITH_OPTIONS, booking)
        for number, token in enumerate(deployment.user_tokens.members[:callers])
    ]
    outcomes = await send_in_order(calls, after_each)
    names = [outcome["__typename"] for outcome in outcomes]
    assert set(names) == {"Booked", "SlotFull"}
    return [number for number, name in enumerate(names) if name == "Booked"]


async def winners_behind_a_lock(deployment: Deployment, apps: Sequence[AppProcess]) -> list[int]:
    """Let 12 callers come 0.25 s apart for three places while somebody else has the lock."""
    slot_id = await deployment.add_slot(apps[0], capacity=3)
    deployment.redis.set(lock_key(slot_id), "somebody-else:1")

    async def after_each(number: int) -> None:
        await wait_for_arrivals(deployment, [apps[number % 2]], slot_id)
        await asyncio.sleep(0.25)
        if number == 11:
            deployment.redis.delete(lock_key(slot_id))

    return await book_in_order(deployment, apps, slot_id, 12, after_each)


async def winners_of_a_crowd(
    deployment: Deployment, apps: Sequence[AppProcess], *, is_locked: bool
) -> list[int]:
    """Let 200 callers come 4 ms apart for 100 places, perhaps while somebody else has the lock."""
    slot_id = await deployment.add_slot(apps[0], capacity=100)
    if is_locked:
        deployment.redis.set(lock_key(slot_id), "somebody-else:1")

    async def after_each(number: int) -> None:
        await asyncio.sleep(0.004)
        if number % 20 == 19:
            await wait_for_arrivals(deployment, apps, slot_id)
        if is_locked and number == 199:
            deployment.redis.delete(lock_key(slot_id))

    winners = await book_in_order(deployment, apps, slot_id, 200, after_each)
    assert len(winners) == 100
    return winners


async def test_the_first_of_12_callers_behind_a_lock_get_the_places(
    deployment: Deployment, two_apps: Pair
) -> None:
    assert await winners_behind_a_lock(deployment, two_apps) == [0, 1, 2]


@pytest.mark.parametrize("is_locked", [True, False])
async def test_the_first_half_of_200_callers_gets_the_100_places(
    deployment: Deployment, two_apps: Pair, *, is_locked: bool
) -> None:
    winners = await winners_of_a_crowd(deployment, two_apps, is_locked=is_locked)
    assert winners[:MAX_PASSED] == list(range(MAX_PASSED))
    assert winners[-1] < 100 + MAX_PASSED


async def test_control_without_the_order_between_processes_later_callers_get_the_places(
    deployment: Deployment,
) -> None:
    apps = [deployment.app("order-between-processes") for _ in range(2)]
    assert await winners_behind_a_lock(deployment, apps) in ([0, 2, 4], [1, 3, 5])
    winners = await winners_of_a_crowd(deployment, apps, is_locked=True)
    assert winners[-1] >= 100 + MAX_PASSED
    assert winners[:MAX_PASSED] != list(range(MAX_PASSED))
