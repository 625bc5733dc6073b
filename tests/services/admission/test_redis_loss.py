"""Redis loses the queue or is unavailable: tickets report the loss, and nothing is booked twice."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.support.apps.deployment import Deployment
from tests.support.polling import eventually
from tests.support.queue.documents import MY_TICKETS
from tests.support.queue.queued_users import (
    IsolatedQueue,
    enqueue_users,
    expect_final_status,
    result_name,
    watch_ticket,
)


@pytest.fixture
async def deployment(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> AsyncIterator[Deployment]:
    """Yield a deployment whose Redis a test may kill or pause."""
    yield deployment
    await restart_redis(isolated_queue)


async def fetch(isolated_queue: IsolatedQueue, path: str) -> httpx.Response:
    """Get a path of the frontend over HTTP."""
    async with httpx.AsyncClient(trust_env=False, timeout=10) as http:
        return await http.get(isolated_queue.frontend.url + path)


async def take_redis_down(isolated_queue: IsolatedQueue, action: str) -> None:
    """Kill or pause Redis and wait until the frontend notices."""
    getattr(isolated_queue.valkey, action)()

    async def is_noticed() -> bool:
        readiness = (await fetch(isolated_queue, "/readyz")).json()
        return bool(readiness["redis"] == "unavailable")

    await eventually(is_noticed, "Redis unavailable")


async def bring_redis_up(isolated_queue: IsolatedQueue, action: str) -> None:
    """Start or resume Redis and wait until the frontend uses it again."""
    getattr(isolated_queue.valkey, action)()

    async def is_used() -> bool:
        return "slotlock_redis_degraded 0.0" in (await fetch(isolated_queue, "/metrics")).text

    await eventually(is_used, "Redis in use")


async def restart_redis(isolated_queue: IsolatedQueue) -> None:
    """Replace Redis with an empty one."""
    await take_redis_down(isolated_queue, "kill")
    await bring_redis_up(isolated_queue, "start")


async def lose_all(isolated_queue: IsolatedQueue, deployment: Deployment, cause: str) -> None:
    """Let Redis lose all its data."""
    if cause == "flush":
        deployment.redis.flushall()
    else:
        await restart_redis(isolated_queue)


@pytest.mark.parametrize("cause", ["flush", "restart"])
async def test_lost_requests_are_reported_and_can_be_sent_again_with_the_same_key(
    deployment: Deployment, isolated_queue: IsolatedQueue, cause: str
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=4, capacity=2)
    async with watch_ticket(queued, 3) as watcher:
        assert (await watcher.next_result())["status"] == "QUEUED"
        await lose_all(isolated_queue, deployment, cause)
        assert await queued.result_names() == ["LOST"] * 4
        await expect_final_status(watcher, "LOST")
    worker = deployment.worker()
    assert await queued.result_names() == ["LOST"] * 4
    assert deployment.consistent_booking_ids(queued.slot_id) == set()
    worker.kill()
    resent = [await queued.resend(number) for number in range(4)]
    assert [(ticket["status"], ticket["position"]) for ticket in resent] == [
        ("QUEUED", position) for position in (1, 2, 3, 4)
    ]
    # The old ids return the state of the new tickets, under the id that was requested.
    old = await queued.fetch_tickets()
    assert [ticket["id"] for ticket in old] == queued.ticket_ids
    assert [ticket["status"] for ticket in old] == ["QUEUED"] * 4
    queued.ticket_ids = [ticket["id"] for ticket in resent]
    queued.expire_locks()
    deployment.worker()
    await queued.assert_results("Booked", "Booked", "SlotFull", "SlotFull")


async def test_a_worker_continues_with_requests_that_arrive_after_a_loss(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    deployment.worker()
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=3)
    await queued.assert_results("Booked")
    for cause, number in (("flush", 1), ("restart", 2)):
        await lose_all(isolated_queue, deployment, cause)
        await queued.enqueue(deployment.client(isolated_queue.frontend, number))
        await queued.assert_results(*["Booked"] * (number + 1))


async def test_answered_tickets_survive_the_loss_of_redis(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=1)
    deployment.worker()
    await queued.assert_results("Booked", "SlotFull")
    before = await queued.fetch_tickets()
    await lose_all(isolated_queue, deployment, "flush")
    assert await queued.fetch_tickets() == before
    await take_redis_down(isolated_queue, "kill")
    assert await queued.fetch_tickets() == before


async def test_a_request_sent_again_after_a_loss_is_booked_once_though_the_first_is_restored(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=2)
    slow, pause_point = deployment.paused_worker("commit")
    await asyncio.to_thread(pause_point.wait_until_reached)
    entries = queued.entries
    await lose_all(isolated_queue, deployment, "flush")
    assert await queued.result_names() == ["LOST"] * 2
    resent = await queued.resend(0)
    queued.redeliver(entries)
    pause_point.resume()
    assert slow.stop() == 0
    deployment.worker()
    await queued.wait_for_status("ANSWERED", 0)
    queued.ticket_ids[0] = resent["id"]
    assert await queued.result_names() == ["Booked", "LOST"]
    queued.assert_roster(await queued.fetch_tickets())


async def test_while_redis_is_unavailable_requests_are_executed_and_tickets_can_be_read(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    worker = deployment.worker()
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=3)
    await queued.assert_results("Booked")
    worker.kill()
    queued.expire_locks()
    await queued.enqueue(deployment.client(isolated_queue.frontend, 1))
    await take_redis_down(isolated_queue, "pause")
    executed = await queued.enqueue(deployment.client(isolated_queue.frontend, 2))
    assert (executed["status"], result_name(executed)) == ("ANSWERED", "Booked")
    first, waiting, last = await queued.fetch_tickets()
    assert result_name(first) == result_name(last) == "Booked"
    assert (waiting["status"], waiting["position"]) == ("QUEUED", None)
    await bring_redis_up(isolated_queue, "resume")
    deployment.worker()
    await queued.assert_results("Booked", "Booked", "Booked")


async def test_a_queued_request_that_is_executed_meanwhile_is_booked_once(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=2)
    await take_redis_down(isolated_queue, "pause")
    assert result_name(await queued.resend(0)) == "Booked"
    await queued.cancel(0)
    await bring_redis_up(isolated_queue, "resume")
    deployment.worker()
    await queued.wait_for_status("ANSWERED")
    assert await queued.result_names() == ["Booked", "Booked"]
    assert len(deployment.consistent_booking_ids(queued.slot_id)) == 1


@pytest.mark.parametrize("operation", ["requestBooking", "bookSlot"])
async def test_a_lost_request_that_is_refused_when_it_is_sent_again_is_not_booked_later(
    deployment: Deployment, isolated_queue: IsolatedQueue, operation: str
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=1)
    entries = queued.entries
    deployment.redis.flushall()
    assert await queued.result_names() == ["LOST", "LOST"]
    other = deployment.client(isolated_queue.frontend, 5)
    booked = await other.book(queued.slot_id)
    if operation == "bookSlot":
        key = queued.idempotency_keys[0]
        refused = await queued.clients[0].book_slot(queued.slot_id, idempotencyKey=key)
    else:
        refused = await queued.resend(0)
    assert refused["__typename"] == "SlotFull"
    await other.cancel_booking(booked["booking"]["id"])
    queued.redeliver(entries)
    deployment.worker()
    await queued.wait_until_empty()
    assert deployment.consistent_booking_ids(queued.slot_id) == set()
    assert await queued.result_names() == ["LOST", "LOST"]


async def test_a_request_that_reaches_the_queue_after_its_repetition_was_refused_is_not_booked(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=1)
    entries = queued.entries  # of a request whose key is reserved, and that is still under way
    deployment.redis.delete(*deployment.redis.keys("slotlock:{queue:*"))
    other = deployment.client(isolated_queue.frontend, 5)
    booked = await other.book(queued.slot_id)
    assert (await queued.resend(0))["__typename"] == "SlotFull"
    await other.cancel_booking(booked["booking"]["id"])
    queued.redeliver(entries)
    deployment.worker()
    await queued.wait_until_empty()
    assert deployment.consistent_booking_ids(queued.slot_id) == set()
    assert await queued.result_names() == ["LOST"]


async def test_a_queued_request_refused_while_redis_is_unavailable_is_not_booked_later(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=1)
    other = deployment.client(isolated_queue.frontend, 5)
    booked = await other.book(queued.slot_id)
    await take_redis_down(isolated_queue, "pause")
    assert (await queued.resend(0))["__typename"] == "SlotFull"
    await bring_redis_up(isolated_queue, "resume")
    await other.cancel_booking(booked["booking"]["id"])
    deployment.worker()
    await queued.wait_until_empty()
    assert deployment.consistent_booking_ids(queued.slot_id) == set()
    assert await queued.result_names() == ["LOST"]


async def test_while_redis_is_frozen_a_request_is_cancelled_and_leaves_the_queue_afterwards(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=1)
    await take_redis_down(isolated_queue, "pause")
    assert (await queued.cancel_ticket(0))["__typename"] == "TicketCancelled"
    assert await queued.result_names() == ["CANCELLED", "QUEUED"]
    # The list is in Redis alone; without it an empty one would be wrong.
    response = await queued.clients[0].send(MY_TICKETS)
    extensions = response["errors"][0]["extensions"]
    assert (extensions["code"], extensions["retryAfterMs"]) == ("INTERNAL", 1000)
    await bring_redis_up(isolated_queue, "resume")

    await eventually(lambda: len(queued.entries) == 1, "the cancelled request has left the queue")
    assert (await queued.fetch_tickets())[1]["position"] == 1
