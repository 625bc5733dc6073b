"""What a ticket was told in the end is not taken back, whatever is asked or comes back then."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from slotlock.api.embedded import Servers
from slotlock.stores.queue_scripts import keys
from tests.support.queue_scenes import (
    Hall,
    InLine,
    ask,
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
    with open_hall(servers, tmp_path_factory.mktemp("hall"), "queue_final") as hall:
        yield hall


@pytest.fixture
async def scene(hall: Hall, logs: Path) -> AsyncIterator[Scene]:
    """People, and an empty Redis."""
    async with scene_on(hall.environment, logs, people=3) as scene:
        scene.redis.flushall()
        yield scene


async def lost_and_its_key_sent_for_something_else(
    scene: Scene, hall: Hall, way: str, off: str = ""
) -> tuple[InLine, str]:
    """Somebody who was told that they are lost, whose request alone comes back after they sent its
    key for something else; and what they were answered to that.
    """
    line = await stand(scene, scene.app(off) if off else hall.front, size=1, places=2)
    entries = line.entries
    scene.redis.flushall()
    assert await line.told() == ["LOST"]
    ada, key = line.people[0], {"idempotencyKey": line.asked_under[0]}
    other = line.slot_id if "hold" in way else await scene.slot(line.front, capacity=1)
    wish = {**key, "hold": "hold" in way}
    if "bookSlot" in way:
        answer = await ada.wish(other, **wish)
    else:
        answer = await ask(ada, other, **wish)
    scene.redis.flushall()
    line.put_back(entries)
    scene.worker(off)
    await line.until_empty()
    return line, str(answer["__typename"])


@pytest.mark.parametrize("way", ["requestBooking", "requestBooking, hold", "bookSlot, hold"])
async def test_who_was_told_lost_is_not_booked_when_its_key_is_sent_for_something_else(
    scene: Scene, hall: Hall, way: str
) -> None:
    line, answer = await lost_and_its_key_sent_for_something_else(scene, hall, way)
    assert answer == "KeyReused"
    assert await line.told() == ["LOST"]
    assert scene.live(line.slot_id) == set()
    assert (await line.ask_again(0))["status"] == "QUEUED"
    await line.until("ANSWERED")
    assert await line.told() == ["Booked"]


async def test_control_with_marks_of_no_question_who_was_told_lost_is_booked(
    scene: Scene, hall: Hall
) -> None:
    line, _ = await lost_and_its_key_sent_for_something_else(
        scene, hall, "requestBooking", "lost-question"
    )
    assert len(scene.live(line.slot_id)) == 1


async def test_who_is_told_lost_while_the_key_stands_for_something_else_is_granted_by_nobody(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=1, places=2)
    entries = line.entries
    scene.redis.flushall()
    other = await line.ask_again(0, hold=True)
    assert other["status"] == "QUEUED"
    assert await line.told() == ["LOST"]
    line.put_back(entries)
    scene.worker()
    await line.until_empty()
    line.tickets.append(other["id"])
    line.people.append(line.people[0])
    assert await line.told() == ["LOST", "KeyReused"]
    assert scene.live(line.slot_id) == set()


async def test_who_books_under_the_key_of_their_ticket_is_told_so_at_once_and_for_good(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=3, places=3)
    cid = line.people[2]
    await cid.wish(line.slot_id, idempotencyKey=line.asked_under[2])
    told: list[Any] = [await line.ask_again(2), await ask(cid, line.slot_id)]
    assert [name_of(ticket) for ticket in told] == ["Booked"] * 2
    assert await line.told() == ["QUEUED", "QUEUED", "Booked"]
    async with watching(line, 2) as watcher:
        await heard_the_end(watcher, "ANSWERED")
    scene.worker()
    await line.until("ANSWERED")
    line.assert_roster(await line.look())
    assert await line.told() == ["Booked"] * 3


async def test_who_was_told_lost_stays_lost_though_redis_comes_back_with_what_it_had(
    scene: Scene, hall: Hall
) -> None:
    line = await stand(scene, hall.front, size=1, places=1)
    stream, tickets, _ = keys(line.partition)
    kept: Any = scene.redis.xrange(stream)
    known: Any = scene.redis.hgetall(tickets)
    scene.redis.flushall()
    assert await line.told() == ["LOST"]
    for entry, fields in kept:
        scene.redis.xadd(stream, fields, id=entry)
    scene.redis.hset(tickets, mapping=known)
    assert await line.told() == ["LOST"]
    scene.worker()
    await line.until_empty()
    assert await line.told() == ["LOST"]
