"""Places go in order of arrival, and whoever sends more often than others gains nothing by it."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence

import pytest

from slotlock.domain.bookings import SlotId
from slotlock.stores import lock_scripts
from tests.support.client import Json
from tests.support.offices import until
from tests.support.processes import AppProcess
from tests.support.tickets import REQUEST, Customer, QueueScene, crowded, line, partition_of
from tests.support.volley import volley

__all__ = ["crowded", "line"]

PLACES, GREED = 20, 100


async def stand_one_by_one(
    scene: QueueScene, apps: Sequence[AppProcess], slot_id: str
) -> list[Json]:
    """The tickets of everybody, by turns at the processes, one after the other."""
    return [
        await scene.customer(apps[n % len(apps)], n).stand(slot_id)
        for n in range(len(scene.crowd.members))
    ]


async def test_places_go_to_those_who_came_first_whoever_serves_them(crowded: QueueScene) -> None:
    apps = [crowded.app(), crowded.app()]
    slot_id = await crowded.slot(apps[0], capacity=PLACES)
    tickets = await stand_one_by_one(crowded, apps, slot_id)
    assert [ticket["place"] for ticket in tickets] == list(range(1, 201))
    for _ in range(2):
        crowded.worker()
    codes = [
        await crowded.customer(apps[0], n).code(ticket["id"]) for n, ticket in enumerate(tickets)
    ]
    assert codes == ["Booked"] * PLACES + ["SLOT_FULL"] * (200 - PLACES)
    assert len(crowded.live(slot_id)) == PLACES


async def test_those_who_come_while_others_are_served_are_served_after_them(
    crowded: QueueScene,
) -> None:
    apps = [crowded.worker(), crowded.worker()]
    slot_id = await crowded.slot(apps[0], capacity=PLACES)
    codes = list[str]()
    for number in range(200):
        customer = crowded.customer(apps[number % 2], number)
        asked = await customer.request(slot_id)
        codes.append(asked["id"] if asked["__typename"] == "Ticket" else asked["code"])
    for number, told in enumerate(codes):
        if told.startswith("ticket_"):
            codes[number] = await crowded.customer(apps[0], number).code(told)
    assert codes == ["Booked"] * PLACES + ["SLOT_FULL"] * (200 - PLACES)


async def greed(
    scene: QueueScene, apps: Sequence[AppProcess], slot_id: str, *, keys: bool
) -> list[Json]:
    """What one person is told who asks a hundred times at once, at each of the processes."""
    token = scene.crowd.members[0]
    wishes: list[Json] = [{"slotId": slot_id} for _ in range(GREED)]
    for wish in wishes if keys else ():
        wish["idempotencyKey"] = secrets.token_hex(8)
    shots = [
        (apps[n % len(apps)].url, token, REQUEST, {"input": wish}) for n, wish in enumerate(wishes)
    ]
    return await volley(shots)


@pytest.mark.parametrize("keys", [False, True])
async def test_who_asks_a_hundred_times_stands_in_line_once_and_pushes_nobody_back(
    line: QueueScene, keys: bool
) -> None:
    apps = [line.counter(length=50), line.counter(length=50)]
    slot_id = await line.slot(apps[0], capacity=3)
    ada, ben, cleo = line.customers(apps[0], 3)
    before = await ben.stand(slot_id)
    told = await greed(line, apps, slot_id, keys=keys)
    assert {(ticket["id"], ticket["place"]) for ticket in told} == {(told[0]["id"], 2)}
    after = await cleo.stand(slot_id)
    assert (after["place"], line.in_line()) == (3, 3)
    line.worker()
    for customer, ticket in ((ben, before), (ada, told[0]), (cleo, after)):
        assert await customer.code(ticket["id"]) == "Booked"
    assert len(line.live(slot_id)) == 3
    await line.until_served()
    assert line.known() == {}


async def test_control_where_nobody_knows_who_stands_there_one_person_takes_the_line(
    line: QueueScene,
) -> None:
    apps = [line.counter("claim", 50), line.counter("claim", 50)]
    roomy, slot_id = await line.slot(apps[0], capacity=3), await line.slot(apps[0], capacity=3)
    told = await greed(line, apps[:1], slot_id, keys=True)
    tickets = [each for each in told if each["__typename"] == "Ticket"]
    assert len({ticket["id"] for ticket in tickets}) == line.in_line() == 50
    assert (await line.customer(apps[1], 1).request(slot_id))["__typename"] == "QueueFull"
    line.redis.flushdb()
    apps = [line.counter("claim")]
    await greed(line, apps, roomy, keys=True)
    assert (await line.customer(apps[0], 1).stand(roomy))["place"] == GREED + 1


async def test_who_asked_before_others_and_asks_again_keeps_their_place(line: QueueScene) -> None:
    app = line.app()
    slot_id = await line.slot(app)
    ada, ben = line.customers(app, 2)
    first = await ada.stand(slot_id)
    await ben.stand(slot_id)
    for _ in range(3):
        assert await ada.stand(slot_id) == first
        assert await ada.stand(slot_id, idempotencyKey=secrets.token_hex(8)) == first


async def stands_for_the_lease(line: QueueScene, slot_id: str) -> None:
    """Wait until another process waits to serve the part of the line that one serves."""
    waiting = lock_scripts.keys(SlotId(f"queue:{partition_of(slot_id)}"))[1]

    async def waits() -> bool:
        return bool(line.redis.zcard(waiting))

    await until(waits, "somebody who waits for the lease")


async def overtaking(
    line: QueueScene, off: str, between: Callable[[Customer, str], Awaitable[None]]
) -> list[str]:
    """What Ada and then Ben are told who want one place, when whoever serves Ada is slow."""
    app = line.app()
    slot_id = await line.slot(app)
    ada, ben = line.customers(app, 2)
    slow = line.slow_worker(off)
    first = await ada.stand(slot_id)
    await asyncio.to_thread(slow.wait_until_reached)
    line.worker(off)
    second = await ben.stand(slot_id)
    await between(ben, second["id"])
    slow.go()
    return [await ada.code(first["id"]), await ben.code(second["id"])]


async def test_nobody_is_overtaken_while_whoever_serves_them_is_slow(line: QueueScene) -> None:
    async def waits_for_its_turn(ben: Customer, ticket_id: str) -> None:
        seen = await ben.ticket(ticket_id)
        await stands_for_the_lease(line, seen["slotId"])
        assert await ben.ticket(ticket_id) == seen

    assert await overtaking(line, "", waits_for_its_turn) == ["Booked", "SLOT_FULL"]


async def test_control_with_consumers_side_by_side_who_came_later_overtakes(
    line: QueueScene,
) -> None:
    async def is_served(ben: Customer, ticket_id: str) -> None:
        assert await ben.code(ticket_id) == "Booked"

    assert await overtaking(line, "lease", is_served) == ["SLOT_FULL", "Booked"]
