"""MongoDB is away while people stand in line: they wait, and nobody is lost or set aside."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from slotlock.api.embedded import Servers
from slotlock.stores.queue_scripts import keys
from tests.support.client import CREATE, Json, slot_fields
from tests.support.desk import wait_for
from tests.support.processes import AppProcess
from tests.support.queue_scenes import Hall, heard_the_end, open_hall, stand, watching
from tests.support.servers import OwnServer, own_server
from tests.support.stage import Scene, scene_on

TWO_OF_FOUR = ["Booked", "Booked", "SlotFull", "SlotFull"]
BACK = {"kill": "start", "pause": "resume"}


@pytest.fixture(scope="module")
def mongo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    """A MongoDB that may be harmed."""
    with own_server(tmp_path_factory.mktemp("truth") / "mongo", "mongo") as mongo:
        yield mongo


@pytest.fixture(scope="module")
def hall(
    servers: Servers, mongo: OwnServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hall]:
    """Where they stand in line."""
    with open_hall(servers, tmp_path_factory.mktemp("hall"), "own", mongo.url) as hall:
        yield hall


@pytest.fixture
async def scene(hall: Hall, logs: Path) -> AsyncIterator[Scene]:
    """People, and an empty Redis."""
    async with scene_on(hall.environment, logs, people=4) as scene:
        scene.redis.flushall()
        await takes_writes(scene, hall.front)
        yield scene


async def takes_writes(scene: Scene, app: AppProcess) -> None:
    """Wait until the app writes again, after what the test before did to MongoDB."""

    async def create() -> Json:
        return await scene.organiser(app).send(CREATE, input=slot_fields())

    await wait_for(create, lambda answer: "errors" not in answer, "a slot can be created")


async def says_of_mongodb(app: AppProcess, state: str) -> None:
    """Wait until the app has noticed."""

    async def look() -> Json:
        async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
            readiness: Json = (await http.get(app.url + "/readyz")).json()
            return readiness

    await wait_for(look, lambda seen: seen["mongodb"] == state, f"MongoDB is {state}")


@contextmanager
def away(mongo: OwnServer, harm: str) -> Iterator[None]:
    """Harm MongoDB for a while."""
    getattr(mongo, harm)()
    try:
        yield
    finally:
        getattr(mongo, BACK[harm])()


@pytest.mark.parametrize("harm", BACK)
async def test_however_often_it_is_tried_while_mongodb_is_away_all_are_answered_when_it_is_back(
    scene: Scene, hall: Hall, mongo: OwnServer, harm: str
) -> None:
    line = await stand(scene, hall.front, size=4, places=2)
    doomed, before = scene.paused_worker("taken")
    await asyncio.to_thread(before.wait_until_reached)
    _, tried = scene.paused_worker("retried", "impatient")
    async with watching(line, 0) as watcher:
        assert (await watcher.next())["status"] == "QUEUED"
        with away(mongo, harm):
            doomed.kill()
            line.let_locks_run_out()
            await asyncio.to_thread(tried.wait_until_reached)
            assert len(line.entries) == 4
        tried.go()
        await heard_the_end(watcher, "ANSWERED")
    await says_of_mongodb(hall.front, "up")
    await line.assert_served(*TWO_OF_FOUR)
    assert scene.redis.xlen(keys(line.partition)[2]) == 0


@contextmanager
def closed_to_writes(scene: Scene) -> Iterator[None]:
    """Let MongoDB refuse all writes for a while, as one that is full does."""
    admin = scene.mongo.admin
    admin.command({"setUserWriteBlockMode": 1, "global": True})
    try:
        yield
    finally:
        admin.command({"setUserWriteBlockMode": 1, "global": False})


async def test_while_mongodb_refuses_all_writes_nobody_is_set_aside(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=4, places=2)
    with closed_to_writes(scene):
        _, tried = scene.paused_worker("retried", "impatient")
        await asyncio.to_thread(tried.wait_until_reached)
        assert await line.told() == ["QUEUED"] * 4
    tried.go()
    await line.assert_served(*TWO_OF_FOUR)
    assert scene.redis.xlen(keys(line.partition)[2]) == 0


async def test_who_alone_cannot_be_written_is_set_aside_by_a_mongodb_that_takes_other_writes(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=1, places=2)
    database = scene.mongo.get_default_database()
    database.command("collMod", "answers", validator={"never": True})
    try:
        scene.worker("impatient")
        await line.until("SET_ASIDE")
    finally:
        database.command("collMod", "answers", validator={})


@pytest.mark.parametrize("step", ["taken", "commit", "granted", "kept"])
async def test_at_whatever_step_mongodb_goes_away_each_request_has_one_outcome(
    scene: Scene, hall: Hall, mongo: OwnServer, step: str
) -> None:
    line = await stand(scene, hall.front, size=4, places=2)
    _, stage = scene.paused_worker(step, "impatient")
    await asyncio.to_thread(stage.wait_until_reached)
    with away(mongo, "kill"):
        await says_of_mongodb(hall.front, "away")
        stage.go()
    await says_of_mongodb(hall.front, "up")
    await line.assert_served(*TWO_OF_FOUR)
    assert scene.redis.xlen(keys(line.partition)[2]) == 0
