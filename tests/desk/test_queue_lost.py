"""Redis loses the admission queue, or is away: what tickets tell, and what is booked."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from slotlock.api.embedded import Servers
from tests.support.client import Json
from tests.support.desk import wait_for
from tests.support.queue_scenes import (
    Hall,
    heard_the_end,
    name_of,
    open_hall,
    stand,
    watching,
)
from tests.support.stage import Scene, scene_on


@pytest.fixture(scope="module")
def hall(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    """Where they stand in line."""
    with open_hall(servers, tmp_path_factory.mktemp("hall"), "queue_lost") as hall:
        yield hall


@pytest.fixture
async def scene(hall: Hall, logs: Path) -> AsyncIterator[Scene]:
    """People, and an empty Redis."""
    async with scene_on(hall.environment, logs, people=6) as scene:
        scene.redis.flushall()
        yield scene
        await restart(hall)


async def go_away(hall: Hall, how: str) -> None:
    """Redis is killed or hangs, and the front has noticed."""
    getattr(hall.valkey, how)()

    async def look() -> Json:
        readiness: Json = (await fetched(hall, "/readyz")).json()
        return readiness

    await wait_for(look, lambda seen: seen["redis"] == "away", "Redis is away")


async def come_back(hall: Hall, how: str) -> None:
    """Redis is started or goes on, and the front uses it again."""
    getattr(hall.valkey, how)()

    async def look() -> Json:
        return {"metrics": (await fetched(hall, "/metrics")).text}

    await wait_for(look, lambda seen: "slotlock_redis_degraded 0.0" in seen["metrics"], "used")


async def fetched(hall: Hall, path: str) -> httpx.Response:
    """A plain page of the front."""
    async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
        return await http.get(hall.front.url + path)


async def restart(hall: Hall) -> None:
    """Redis is another process, and has nothing."""
    await go_away(hall, "kill")
    await come_back(hall, "start")


async def lose_all(hall: Hall, scene: Scene, how: str) -> None:
    """Redis has nothing any more."""
    if how == "flushed":
        scene.redis.flushall()
    else:
        await restart(hall)


@pytest.mark.parametrize("how", ["flushed", "restarted"])
async def test_who_was_in_line_is_told_lost_and_may_ask_again_under_the_same_key(
    scene: Scene, hall: Hall, how: str
) -> None:
    line = await stand(scene, hall.front, size=4, places=2)
    async with watching(line, 3) as watcher:
        assert (await watcher.next())["status"] == "QUEUED"
        await lose_all(hall, scene, how)
        assert await line.told() == ["LOST"] * 4
        await heard_the_end(watcher, "LOST")
    worker = scene.worker()
    assert await line.told() == ["LOST"] * 4
    assert scene.live(line.slot_id) == set()
    worker.kill()
    again = [await line.ask_again(number) for number in range(4)]
    assert [(ticket["status"], ticket["place"]) for ticket in again] == [
        ("QUEUED", place) for place in (1, 2, 3, 4)
    ]
    # The ids of before tell of the new tickets, and are still the ids that were asked for.
    old = await line.look()
    assert [ticket["id"] for ticket in old] == line.tickets
    assert [ticket["status"] for ticket in old] == ["QUEUED"] * 4
    line.tickets = [ticket["id"] for ticket in again]
    line.let_locks_run_out()
    scene.worker()
    await line.assert_served("Booked", "Booked", "SlotFull", "SlotFull")


async def test_who_serves_goes_on_with_those_who_come_after_the_loss(
    scene: Scene, hall: Hall
) -> None:
    scene.worker()
    line = await stand(scene, hall.front, size=1, places=3)
    await line.assert_served("Booked")
    for how, person in (("flushed", 1), ("restarted", 2)):
        await lose_all(hall, scene, how)
        await line.arrive(scene.person(hall.front, person))
    await line.assert_served("Booked", "Booked", "Booked")


async def test_what_was_answered_stays_answered(scene: Scene, hall: Hall) -> None:
    line = await stand(scene, hall.front, size=2, places=1)
    scene.worker()
    await line.assert_served("Booked", "SlotFull")
    before = await line.look()
    await lose_all(hall, scene, "flushed")
    assert await line.look() == before
    await go_away(hall, "kill")
    assert await line.look() == before


async def test_who_asks_again_after_a_loss_is_booked_once_though_the_first_request_comes_back(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=2, places=2)
    slow, stage = scene.paused_worker("commit")
    await asyncio.to_thread(stage.wait_until_reached)
    copies = line.entries
    await lose_all(hall, scene, "flushed")
    assert await line.told() == ["LOST"] * 2
    again = await line.ask_again(0)
    line.put_back(copies)
    stage.go()
    assert slow.stop() == 0
    scene.worker()
    await line.until("ANSWERED", 0)
    line.tickets[0] = again["id"]
    assert await line.told() == ["Booked", "LOST"]
    line.assert_roster(await line.look())


async def test_while_redis_is_away_a_request_is_served_at_once_and_tickets_are_told(
    scene: Scene, hall: Hall
) -> None:
    worker = scene.worker()
    line = await stand(scene, hall.front, size=1, places=3)
    await line.assert_served("Booked")
    worker.kill()
    line.let_locks_run_out()
    await line.arrive(scene.person(hall.front, 1))
    await go_away(hall, "pause")
    served = await line.arrive(scene.person(hall.front, 2))
    assert (served["status"], name_of(served)) == ("ANSWERED", "Booked")
    first, waiting, at_once = await line.look()
    assert name_of(first) == name_of(at_once) == "Booked"
    assert (waiting["status"], waiting["place"]) == ("QUEUED", None)
    await come_back(hall, "resume")
    scene.worker()
    await line.assert_served("Booked", "Booked", "Booked")


async def test_who_is_served_at_once_while_their_request_is_in_line_is_booked_once(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=2, places=2)
    await go_away(hall, "pause")
    assert name_of(await line.ask_again(0)) == "Booked"
    await line.cancel(0)
    await come_back(hall, "resume")
    scene.worker()
    await line.until("ANSWERED")
    assert await line.told() == ["Booked", "Booked"]
    assert len(scene.live(line.slot_id)) == 1


async def test_who_serves_finds_redis_again_by_itself(scene: Scene, hall: Hall) -> None:
    scene.worker()
    await restart(hall)
    line = await stand(scene, hall.front, size=3, places=3)
    await line.assert_served(*["Booked"] * 3)


@pytest.mark.parametrize("asked", ["requestBooking", "bookSlot"])
async def test_who_was_told_lost_and_is_refused_when_they_ask_again_is_not_booked_later(
    scene: Scene, hall: Hall, asked: str
) -> None:
    line = await stand(scene, hall.front, size=2, places=1)
    entries = line.entries
    scene.redis.flushall()
    assert await line.told() == ["LOST", "LOST"]
    ada, other = scene.people(hall.front, 2)[0], scene.person(hall.front, 5)
    taken = await other.book(line.slot_id)
    if asked == "bookSlot":
        refused = await ada.wish(line.slot_id, idempotencyKey=line.asked_under[0])
    else:
        refused = await line.ask_again(0)
    assert refused["__typename"] == "SlotFull"
    await other.give_back(taken["booking"]["id"])
    line.put_back(entries)
    scene.worker()
    await line.until_empty()
    assert scene.live(line.slot_id) == set()
    assert await line.told() == ["LOST", "LOST"]


async def test_who_stands_in_line_and_is_refused_while_redis_is_away_is_not_booked_later(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=1, places=1)
    other = scene.person(hall.front, 5)
    taken = await other.book(line.slot_id)
    await go_away(hall, "pause")
    assert (await line.ask_again(0))["__typename"] == "SlotFull"
    await come_back(hall, "resume")
    await other.give_back(taken["booking"]["id"])
    scene.worker()
    await line.until_empty()
    assert scene.live(line.slot_id) == set()
    assert await line.told() == ["LOST"]
