"""A request is either cancelled or answered, never both, whatever becomes of its queue worker."""

import asyncio

import pytest
from bson import ObjectId

from slotlock.domain.users.user import Role
from tests.support.apps.deployment import Deployment, PausePoint
from tests.support.clients.booking_client import BookingClient
from tests.support.queue.queued_users import (
    IsolatedQueue,
    QueuedUsers,
    enqueue_users,
    expect_final_status,
    result_name,
    watch_ticket,
)
from tests.support.stores.users import auth_for_database, sign_in_new_user

CLAIM = """mutation($user: ID!, $cancel: Boolean) {
  claimUser(userId: $user, cancelPlaces: $cancel) {
    __typename ... on AccountHoldsPlaces { tickets } ... on UserClaimed { tickets } } }"""
# A queue worker has the requests: before the decision, and before the write.
BEFORE_THE_WRITE = ["batch-read", "commit"]
# After the write: before the refusals are stored, and before the acknowledgment.
AFTER_THE_WRITE = ["decided", "saved"]


async def pause_worker_at(deployment: Deployment, step: str) -> PausePoint:
    """Let a worker take the requests and pause at this step."""
    _, pause_point = deployment.paused_worker(step)
    await asyncio.to_thread(pause_point.wait_until_reached)
    return pause_point


async def assert_cancelled(queued: QueuedUsers, index: int, others: list[str]) -> None:
    """Assert that one request is cancelled for good, and these results of the others."""
    await queued.wait_until_empty()
    tickets = await queued.fetch_tickets()
    names = [result_name(ticket) for ticket in tickets]
    assert names == [*others[:index], "CANCELLED", *others[index:]]
    queued.assert_roster(tickets)


@pytest.mark.parametrize("step", BEFORE_THE_WRITE)
async def test_a_request_that_a_worker_has_taken_is_cancelled_before_the_write(
    deployment: Deployment, isolated_queue: IsolatedQueue, step: str
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=3, capacity=2)
    pause_point = await pause_worker_at(deployment, step)
    async with watch_ticket(queued, 0) as watcher:
        assert (await queued.cancel_ticket(0))["__typename"] == "TicketCancelled"
        await expect_final_status(watcher, "CANCELLED")
    pause_point.resume()
    await queued.wait_for_status("ANSWERED", 1, 2)
    await assert_cancelled(queued, 0, ["Booked", "Booked"])


@pytest.mark.parametrize("step", AFTER_THE_WRITE)
async def test_a_request_that_was_booked_is_not_cancelled_though_it_is_still_queued(
    deployment: Deployment, isolated_queue: IsolatedQueue, step: str
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=1)
    pause_point = await pause_worker_at(deployment, step)
    assert len(queued.entries) == 2
    refusal = await queued.cancel_ticket(0)
    assert refusal["__typename"] == "TicketNotQueued"
    assert refusal["ticket"]["outcome"]["__typename"] == "Booked"
    pause_point.resume()
    await queued.assert_results("Booked", "SlotFull")


async def test_a_request_that_was_refused_but_not_yet_recorded_can_be_cancelled(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=1)
    pause_point = await pause_worker_at(deployment, "decided")
    assert (await queued.cancel_ticket(1))["__typename"] == "TicketCancelled"
    pause_point.resume()
    await queued.wait_for_status("ANSWERED", 0)
    await assert_cancelled(queued, 1, ["Booked"])


@pytest.mark.parametrize("step", [*BEFORE_THE_WRITE, *AFTER_THE_WRITE])
async def test_after_a_crash_of_the_worker_a_request_is_cancelled_or_answered(
    deployment: Deployment, isolated_queue: IsolatedQueue, step: str
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=2)
    worker, pause_point = deployment.paused_worker(step)
    await asyncio.to_thread(pause_point.wait_until_reached)
    worker.kill()
    outcome = await queued.cancel_ticket(0)
    queued.expire_locks()
    deployment.worker()
    await queued.wait_for_status("ANSWERED", 1)
    if step in BEFORE_THE_WRITE:
        assert outcome["__typename"] == "TicketCancelled"
        await assert_cancelled(queued, 0, ["Booked"])
    else:
        assert outcome["__typename"] == "TicketNotQueued"
        await queued.assert_results("Booked", "Booked")


async def test_a_cancelled_request_that_redis_has_again_is_not_booked(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=2, capacity=2)
    entries = queued.entries
    assert (await queued.cancel_ticket(0))["__typename"] == "TicketCancelled"
    assert len(queued.entries) == 1
    queued.redeliver(entries)
    deployment.worker()
    await queued.wait_for_status("ANSWERED", 1)
    await assert_cancelled(queued, 0, ["Booked"])


async def test_a_request_that_redis_lost_can_be_cancelled_and_stays_cancelled(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=1)
    deployment.redis.flushall()
    assert (await queued.cancel_ticket(0))["__typename"] == "TicketCancelled"
    assert await queued.result_names() == ["CANCELLED"]
    assert (await queued.resend(0))["status"] == "CANCELLED"
    assert queued.entries == []


async def test_a_ticket_that_was_reported_as_lost_is_not_cancelled(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    queued = await enqueue_users(deployment, isolated_queue.frontend, user_count=1, capacity=1)
    deployment.redis.flushall()
    assert await queued.result_names() == ["LOST"]
    refusal = await queued.cancel_ticket(0)
    assert (refusal["code"], refusal["ticket"]["status"]) == ("TICKET_NOT_QUEUED", "LOST")
    assert (await queued.resend(0))["status"] == "QUEUED"


async def test_control_without_the_record_a_cancelled_request_is_booked(
    deployment: Deployment,
) -> None:
    frontend = deployment.app("lost-records")
    queued = await enqueue_users(deployment, frontend, user_count=1, capacity=1)
    pause_point = await pause_worker_at(deployment, "commit")
    assert (await queued.cancel_ticket(0))["__typename"] == "TicketCancelled"
    pause_point.resume()
    await queued.wait_for_status("ANSWERED")
    assert await queued.result_names() == ["Booked"]


async def test_a_claim_of_an_account_cancels_its_queued_requests(
    deployment: Deployment, isolated_queue: IsolatedQueue
) -> None:
    frontend = isolated_queue.frontend
    queued = await enqueue_users(deployment, frontend, user_count=2, capacity=2)
    user_id = await queued.clients[0].fetch_user_id()
    users = deployment.mongo.get_default_database()["users"]
    query = {"_id": ObjectId(user_id.removeprefix("user_"))}
    users.update_one(query, {"$set": {"selfRegistered": True}})
    async with auth_for_database(isolated_queue.environment["SLOTLOCK_MONGO_URL"]) as auth:
        token = await sign_in_new_user(auth, Role.ADMIN)
    admin = BookingClient(queued.clients[0].http, frontend.url, token)
    asked = await admin.execute(CLAIM, user=user_id)
    assert asked == {"__typename": "AccountHoldsPlaces", "tickets": 1}
    claimed = await admin.execute(CLAIM, user=user_id, cancel=True)
    assert claimed == {"__typename": "UserClaimed", "tickets": 1}
    assert len(queued.entries) == 1
