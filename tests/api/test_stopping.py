"""Stopping loses nothing: what is under way finishes, sockets are told, no lock stays."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from redis import Redis
from websockets.exceptions import ConnectionClosed

from slotlock.api.embedded import Servers
from tests.support.client import BOOK, WATCH, Client, http_client, socket
from tests.support.people import Crowd
from tests.support.processes import AppProcess, app_process, wait_until
from tests.support.stage import Stage, assert_whole, lock_key, slot_document, variant

Pair = tuple[AppProcess, AppProcess]


@pytest.fixture
def redis(servers: Servers) -> Iterator[Redis]:
    """The Redis of the apps, looked at from outside."""
    with Redis.from_url(servers.redis_url) as client:
        yield client


async def test_a_stop_closes_sockets_with_1001_and_ends_with_success(
    two_apps: Pair, crowd: Crowd, logs: Path
) -> None:
    with app_process(two_apps[0].environment, logs) as app:
        async with http_client() as http, socket(app) as watcher:
            slot = await Client(http, app.url, crowd.organiser).create_slot()
            await watcher.subscribe("1", WATCH, slots=[slot["id"]])
            await watcher.next()
            stopping = asyncio.create_task(asyncio.to_thread(app.stop))
            with pytest.raises(ConnectionClosed) as closed:
                await watcher.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
        assert await stopping == 0
        assert "Traceback" not in app.log


@pytest.mark.parametrize("transport", ["http", "websocket"])
async def test_a_booking_under_way_finishes_when_the_app_is_stopped(
    two_apps: Pair, crowd: Crowd, redis: Redis, logs: Path, transport: str
) -> None:
    stage = Stage(redis)
    async with http_client() as http:
        organiser = Client(http, two_apps[0].url, crowd.organiser)
        slot_id = (await organiser.create_slot(capacity=1))["id"]
    with variant(two_apps[0].environment, logs, pause="commit", stage=stage) as app:
        async with http_client() as http, socket(app, crowd.members[0]) as opened:
            if transport == "http":
                person = Client(http, app.url, crowd.members[0])
                booking = asyncio.create_task(person.book(slot_id))
            else:
                await opened.subscribe("1", BOOK, slot=slot_id)
                booking = asyncio.create_task(opened.next())
            await asyncio.to_thread(stage.wait_until_reached)
            stopping = asyncio.create_task(asyncio.to_thread(app.stop))
            if transport == "http":  # only once the app is stopping may the act go on
                with pytest.raises(ConnectionClosed):
                    await opened.receive()
            stage.go()
            assert (await booking)["__typename"] == "Booked"
        assert await stopping == 0
    assert_whole(slot_document(two_apps[0].environment["SLOTLOCK_MONGO_URL"], slot_id), 1)
    assert not redis.exists(lock_key(slot_id))


async def test_an_event_stream_ends_with_the_app(two_apps: Pair, crowd: Crowd, logs: Path) -> None:
    with app_process(two_apps[0].environment, logs) as app:
        async with http_client() as http:
            slot = await Client(http, app.url, crowd.organiser).create_slot()
            body = {"query": WATCH, "variables": {"slots": [slot["id"]]}}
            headers = {"Accept": "text/event-stream"}
            async with http.stream("POST", app.url + "/graphql", json=body, headers=headers) as got:
                lines = got.aiter_lines()
                assert await anext(lines) == "event: next"
                stopping = asyncio.create_task(asyncio.to_thread(app.stop))
                rest = [line async for line in lines]
                assert "event: complete" in rest
            assert await stopping == 0


async def test_workers_stop_together(two_apps: Pair, logs: Path) -> None:
    command = (sys.executable, "-m", "slotlock", "serve", "--workers", "2")
    with app_process(two_apps[0].environment, logs, command) as app:
        assert await asyncio.to_thread(app.stop) == 0
        wait_until(lambda: not _answers(app), "no worker answers any more")


async def test_workers_end_when_the_process_that_started_them_is_killed(
    two_apps: Pair, logs: Path
) -> None:
    command = (sys.executable, "-m", "slotlock", "serve", "--workers", "2")
    with app_process(two_apps[0].environment, logs, command) as app:
        assert "with 2 workers" in app.log
        app.kill()
        wait_until(lambda: not _answers(app), "no worker answers any more")


def _answers(app: AppProcess) -> bool:
    try:
        return httpx.get(app.url + "/healthz", trust_env=False).is_success
    except httpx.TransportError:
        return False
