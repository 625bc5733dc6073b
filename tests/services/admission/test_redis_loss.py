"""Redis loses the admission queue, or is away: what tickets tell, and what is booked."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.deployment import Deployment, open_deployment
from tests.support.clients.client import Json
from tests.support.polling import poll_until
from tests.support.queue.queued_users import (
    IsolatedQueue,
    enqueue_users,
    expect_final_status,
    open_isolated_queue,
    result_name,
    watch_ticket,
)


@pytest.fixture(scope="module")
def isolated_queue(
    servers: EmbeddedServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolatedQueue]:
    """Where they stand in line."""
    with open_isolated_queue(
        servers, tmp_path_factory.mktemp("queue"), "queue_lost"
    ) as isolated_queue:
        yield isolated_queue


@pytest.fixture
async def deployment(isolated_queue: IsolatedQueue, log_dir: Path) -> AsyncIterator[Deployment]:
    """People, and an empty Redis."""
    async with open_deployment(isolated_queue.environment, log_dir, member_count=6) as deployment:
        deployment.redis.flushall()
        yield deployment
        await restart(isolated_queue)


async def go_away(isolated_queue: IsolatedQueue, how: str) -> None:
    """Redis is killed or hangs, and the front has noticed."""
    getattr(isolated_queue.valkey, how)()

    async def look() -> Json:
        readiness: Json = (await fetched(isolated_queue, "/readyz")).json()
        return readiness

    await poll_until(look, lambda seen: seen["redis"] == "unavailable", "Redis is away")


async def come_back(isolated_queue: IsolatedQueue, how: str) -> None:
    """Redis is started or goes on, and the front uses it again."""
    getattr(isolated_queue.valkey, how)()

    async def look() -> Json:
        return {"metrics": (await fetched(isolated_queue, "/metrics")).text}

    await poll_until(look, lambda seen: "slotlock_redis_degraded 0.0" in seen["metrics"], "used")


async def fetched(isolated_queue: IsolatedQueue, path: str) -> httpx.Response:
    """A plain page of the front."""
    async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
        return await http.get(isolated_queue.frontend.url + path)


async def restart(isolated_queue: IsolatedQueue) -> None:
    """Redis is another process, and has nothing."""
    await go_away(isolated_queue, "kill")
    await come_back(isolated_queue, "start")


async def lose_all(isolated_queue: IsolatedQueue, deployment: Deployment, how: str) -> None:
    """Redis has nothing any more."""
    if how == "flushed":
        deployment.redis.flushall()
    else:
        await restart(isolated_queue)


@pytest.mark.parametrize("how", ["flushed", "restarted"])
async def test_who_was_in_line_is_told_lost_and_may_ask_again_under_the_same_key(
    deployment: Deployment, isolated_queue: IsolatedQueue, how: str
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=4, capacity=2)
    async with watch_ticket(line, 3) as watcher:
        assert (await watcher.next_result())["status"] == "QUEUED"
        await lose_all(isolated_queue, deployment, how)
        assert await line.result_names() == ["LOST"] * 4
        await expect_final_status(watcher, "LOST")
    worker = deployment.worker()
    assert await line.result_names() == ["LOST"] * 4
    assert deployment.consistent_booking_ids(line.slot_id) == set()
    worker.kill()
    again = [await line.resend(number) for number in range(4)]
    assert [(ticket["status"], ticket["position"]) for ticket in again] == [
        ("QUEUED", place) for place in (1, 2, 3, 4)
    ]
    # The ids of before tell of the new tickets, and are still the ids that were asked for.
    old = await line.fetch_tickets()
    assert [ticket["id"] for ticket in old] == line.ticket_ids
    assert [ticket["status"] for ticket in old] == ["QUEUED"] * 4
    line.ticket_ids = [ticket["id"] for ticket in again]
    line.expire_locks()
    deployment.worker()
    await line.assert_results("Booked", "Booked", "SlotFull", "SlotFull")


async def test_who_serves_goes_on_with_those_who_come_after_the_loss(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    deployment.worker()
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=3)
    await line.assert_results("Booked")
    for how, person in (("flushed", 1), ("restarted", 2)):
        await lose_all(isolated_queue, deployment, how)
        await line.enqueue(deployment.client(isolated_queue.frontend, person))
    await line.assert_results("Booked", "Booked", "Booked")


async def test_what_was_answered_stays_answered(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=1)
    deployment.worker()
    await line.assert_results("Booked", "SlotFull")
    before = await line.fetch_tickets()
    await lose_all(isolated_queue, deployment, "flushed")
    assert await line.fetch_tickets() == before
    await go_away(isolated_queue, "kill")
    assert await line.fetch_tickets() == before


async def test_who_asks_again_after_a_loss_is_booked_once_though_the_first_request_comes_back(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=2)
    slow, stage = deployment.paused_worker("commit")
    await asyncio.to_thread(stage.wait_until_reached)
    copies = line.entries
    await lose_all(isolated_queue, deployment, "flushed")
    assert await line.result_names() == ["LOST"] * 2
    again = await line.resend(0)
    line.redeliver(copies)
    stage.resume()
    assert slow.stop() == 0
    deployment.worker()
    await line.wait_for_status("ANSWERED", 0)
    line.ticket_ids[0] = again["id"]
    assert await line.result_names() == ["Booked", "LOST"]
    line.assert_roster(await line.fetch_tickets())


async def test_while_redis_is_away_a_request_is_served_at_once_and_tickets_are_told(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    worker = deployment.worker()
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=3)
    await line.assert_results("Booked")
    worker.kill()
    line.expire_locks()
    await line.enqueue(deployment.client(isolated_queue.frontend, 1))
    await go_away(isolated_queue, "pause")
    served = await line.enqueue(deployment.client(isolated_queue.frontend, 2))
    assert (served["status"], result_name(served)) == ("ANSWERED", "Booked")
    first, waiting, at_once = await line.fetch_tickets()
    assert result_name(first) == result_name(at_once) == "Booked"
    assert (waiting["status"], waiting["position"]) == ("QUEUED", None)
    await come_back(isolated_queue, "resume")
    deployment.worker()
    await line.assert_results("Booked", "Booked", "Booked")


async def test_who_is_served_at_once_while_their_request_is_in_line_is_booked_once(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=2)
    await go_away(isolated_queue, "pause")
    assert result_name(await line.resend(0)) == "Booked"
    await line.cancel(0)
    await come_back(isolated_queue, "resume")
    deployment.worker()
    await line.wait_for_status("ANSWERED")
    assert await line.result_names() == ["Booked", "Booked"]
    assert len(deployment.consistent_booking_ids(line.slot_id)) == 1


async def test_who_serves_finds_redis_again_by_itself(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    deployment.worker()
    await restart(isolated_queue)
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=3, capacity=3)
    await line.assert_results(*["Booked"] * 3)


@pytest.mark.parametrize("asked", ["requestBooking", "bookSlot"])
async def test_who_was_told_lost_and_is_refused_when_they_ask_again_is_not_booked_later(
    deployment: Deployment, isolated_queue: IsolatedQueue, asked: str
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=1)
    entries = line.entries
    deployment.redis.flushall()
    assert await line.result_names() == ["LOST", "LOST"]
    ada, other = (
        deployment.clients(isolated_queue.frontend, 2)[0],
        deployment.client(isolated_queue.frontend, 5),
    )
    taken = await other.book(line.slot_id)
    if asked == "bookSlot":
        refused = await ada.book_slot(line.slot_id, idempotencyKey=line.idempotency_keys[0])
    else:
        refused = await line.resend(0)
    assert refused["__typename"] == "SlotFull"
    await other.cancel_booking(taken["booking"]["id"])
    line.redeliver(entries)
    deployment.worker()
    await line.wait_until_empty()
    assert deployment.consistent_booking_ids(line.slot_id) == set()
    assert await line.result_names() == ["LOST", "LOST"]


async def test_who_stands_in_line_and_is_refused_while_redis_is_away_is_not_booked_later(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    line = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=1)
    other = deployment.client(isolated_queue.frontend, 5)
    taken = await other.book(line.slot_id)
    await go_away(isolated_queue, "pause")
    assert (await line.resend(0))["__typename"] == "SlotFull"
    await come_back(isolated_queue, "resume")
    await other.cancel_booking(taken["booking"]["id"])
    deployment.worker()
    await line.wait_until_empty()
    assert deployment.consistent_booking_ids(line.slot_id) == set()
    assert await line.result_names() == ["LOST"]
