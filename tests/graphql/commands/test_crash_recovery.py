"""A process is killed while a user books under a key: a repeated request has one effect."""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from redis import Redis

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import (
    PausePoint,
    app_variant,
    assert_slot_consistent,
    slot_document,
)
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient, create_booking_clients

DATABASE = "crashing"


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
