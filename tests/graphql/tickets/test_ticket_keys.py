"""Repeated requests with one idempotency key have one effect, one ticket and one outcome."""

import asyncio
import json
from collections import Counter

import pytest

from slotlock.infrastructure.redis.keys import queue_keys
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BOOK_WITH_OPTIONS
from tests.support.clients.client import Json
from tests.support.polling import eventually
from tests.support.queue.deployment import QueueClient, QueueDeployment, queue_partition
from tests.support.queue.documents import REQUEST_BOOKING
from tests.support.transport.simultaneous_requests import send_simultaneously

KEY = {"idempotencyKey": "the key"}


def repeated_requests(
    client: QueueClient, apps: list[AppProcess], slot_id: str, query: str = REQUEST_BOOKING
) -> list[tuple[str, str, str, Json]]:
    """Return 20 equal requests with one key, alternating between two processes."""
    variables = {"input": {"slotId": slot_id, **KEY}}
    return [(apps[number % 2].url, client.token or "", query, variables) for number in range(20)]


async def add_two_slots(
    deployment: QueueDeployment, app: AppProcess, *, same_partition: bool
) -> tuple[str, str]:
    """Create two slots in the same queue partition, or in different ones."""
    first_id = await deployment.add_slot(app, capacity=5)
    while True:
        other = await deployment.add_slot(app, capacity=5)
        partitions = {queue_partition(first_id), queue_partition(other)}
        if len(partitions) == (1 if same_partition else 2):
            return first_id, other


async def test_20_concurrent_requests_of_one_key_make_one_ticket_and_one_booking(
    queue: QueueDeployment,
) -> None:
    apps = [queue.app(), queue.app()]
    slot_id = await queue.add_slot(apps[0], capacity=30)
    ada = queue.queue_client(apps[0], 0)
    tickets = {
        json.dumps(response)
        for response in await send_simultaneously(repeated_requests(ada, apps, slot_id))
    }
    assert (len(tickets), queue.queue_length()) == (1, 1)
    queue.worker()
    ticket = json.loads(tickets.pop())
    outcome = await ada.wait_for_outcome(ticket["id"])
    await queue.wait_until_empty()
    repeated = await send_simultaneously(repeated_requests(ada, apps, slot_id))
    assert {response["id"] for response in repeated} == {ticket["id"]}
    assert {json.dumps(response["outcome"]) for response in repeated} == {json.dumps(outcome)}
    assert (len(queue.consistent_booking_ids(slot_id)), queue.queue_length()) == (1, 0)


async def test_20_requests_during_queue_processing_make_one_booking_and_one_ticket(
    queue: QueueDeployment,
) -> None:
    apps = [queue.worker(), queue.worker()]
    for number in range(5):
        slot_id = await queue.add_slot(apps[0], capacity=30)
        ada = queue.queue_client(apps[0], number)
        responses = await send_simultaneously(repeated_requests(ada, apps, slot_id))
        assert len({response["id"] for response in responses}) == 1
        outcome = await ada.wait_for_outcome(responses[0]["id"])
        outcomes = {
            json.dumps(response["outcome"]) for response in responses if response["outcome"]
        }
        assert outcomes <= {json.dumps(outcome)}
        assert len(queue.consistent_booking_ids(slot_id)) == 1


async def test_a_refusal_by_the_ticket_is_final_for_the_key(queue: QueueDeployment) -> None:
    apps = [queue.app(), queue.app()]
    slot_id = await queue.add_slot(apps[0])
    ada, ben = queue.queue_client(apps[0], 0), queue.queue_client(apps[1], 1)
    first, second = await ada.enqueue(slot_id), await ben.enqueue(slot_id, **KEY)
    queue.worker()
    booking = (await ada.wait_for_outcome(first["id"]))["booking"]
    assert await ben.wait_for_outcome_code(second["id"]) == "SLOT_FULL"
    await queue.wait_until_empty()
    await ada.cancel_booking(booking["id"])
    for app in apps:
        again = await queue.queue_client(app, 1).request_booking(slot_id, **KEY)
        assert (again["id"], again["status"]) == (second["id"], "ANSWERED")
        assert again["outcome"]["code"] == "SLOT_FULL"
        assert (await ben.book_slot(slot_id, **KEY))["code"] == "SLOT_FULL"
    # Another key is another request.
    assert await ben.wait_for_outcome_code((await ben.request_booking(slot_id))["id"]) == "Booked"


async def test_an_immediate_refusal_does_not_use_up_the_key(queue: QueueDeployment) -> None:
    app = queue.worker()
    slot_id = await queue.add_slot(app)
    ada, ben = queue.queue_clients(app, 2)
    booking = (await ada.book_slot(slot_id))["booking"]
    assert (await ben.request_booking(slot_id, **KEY))["code"] == "SLOT_FULL"
    await ada.cancel_booking(booking["id"])
    assert (
        await ben.wait_for_outcome_code((await ben.request_booking(slot_id, **KEY))["id"])
        == "Booked"
    )


async def test_the_outcome_of_a_key_survives_changes_of_the_booking(queue: QueueDeployment) -> None:
    app = queue.worker()
    slot_id = await queue.add_slot(app, capacity=3)
    ada, ben = queue.queue_clients(app, 2)
    ticket = await ada.request_booking(slot_id, **KEY)
    first = await ada.wait_for_outcome(ticket["id"])
    await ben.book_slot(slot_id)
    await ada.cancel_booking(first["booking"]["id"])
    assert await ada.wait_for_outcome(ticket["id"]) == first
    assert (await ada.request_booking(slot_id, **KEY))["outcome"] == first
    assert (await ada.fetch_slot(slot_id))["myBooking"] is None


async def test_a_key_with_other_arguments_is_key_reused_while_queued_and_later(
    queue: QueueDeployment,
) -> None:
    app = queue.app()
    slot_id, other_id = await add_two_slots(queue, app, same_partition=True)
    ada, ben = queue.queue_clients(app, 2)
    await ada.create_team_with(ben)
    ticket = await ada.enqueue(slot_id, **KEY)
    others: list[tuple[str, Json]] = [
        (other_id, {}),
        (slot_id, {"hold": True}),
        (slot_id, {"userId": await ben.fetch_user_id()}),
    ]
    for other, options in others:
        assert (await ada.request_booking(other, **KEY, **options))["code"] == "KEY_REUSED"
    assert (await ben.enqueue(other_id, **KEY))["position"] == 1
    queue.worker()
    assert await ada.wait_for_outcome_code(ticket["id"]) == "Booked"
    for other, options in others:
        reused = await ada.request_booking(other, **KEY, **options)
        assert (reused["code"], reused["idempotencyKey"]) == ("KEY_REUSED", "the key")


async def send_for_two_slots(
    queue: QueueDeployment, apps: list[AppProcess]
) -> tuple[QueueClient, list[Json]]:
    """Send one key for two slots of different partitions, 20 times each, at two processes."""
    slot_ids = await add_two_slots(queue, apps[0], same_partition=False)
    ada = queue.queue_client(apps[0], 0)
    requests = [repeated_requests(ada, apps, slot_id) for slot_id in slot_ids]
    mixed = [request for pair in zip(*requests, strict=True) for request in pair]
    return ada, await send_simultaneously(mixed)


async def test_a_key_sent_for_two_slots_at_once_makes_one_ticket(queue: QueueDeployment) -> None:
    apps = [queue.frontend(), queue.frontend()]
    _, responses = await send_for_two_slots(queue, apps)
    assert Counter(response["__typename"] for response in responses) == {
        "Ticket": 20,
        "KeyReused": 20,
    }
    tickets = {response["id"] for response in responses if response["__typename"] == "Ticket"}
    assert (len(tickets), queue.queue_length()) == (1, 1)


async def test_control_without_the_reservation_of_keys_a_second_ticket_is_key_reused_later(
    queue: QueueDeployment,
) -> None:
    apps = [queue.frontend("key-reservation") for _ in range(2)]
    ada, responses = await send_for_two_slots(queue, apps)
    tickets = {response["id"] for response in responses}
    assert (len(tickets), queue.queue_length()) == (2, 2)
    queue.worker()
    codes = Counter([await ada.wait_for_outcome_code(ticket) for ticket in tickets])
    # The record in MongoDB decides, as after a loss of Redis.
    assert codes == {"Booked": 1, "KEY_REUSED": 1}
    await queue.wait_until_empty()
    assert queue.stored_tickets() == {}


@pytest.mark.parametrize(("without", "code"), [("", "KEY_REUSED"), ("locked-keys", None)])
async def test_a_key_that_books_another_slot_at_the_moment_is_key_reused_at_once(
    queue: QueueDeployment, without: str, code: str | None
) -> None:
    slow, pause_point = queue.paused_app("commit")
    frontend = queue.frontend(without)
    slot_ids = await add_two_slots(queue, frontend, same_partition=False)
    booking = asyncio.create_task(queue.queue_client(slow, 0).book_slot(slot_ids[0], **KEY))
    await asyncio.to_thread(pause_point.wait_until_reached)
    ada = queue.queue_client(frontend, 0)
    request = asyncio.create_task(ada.request_booking(slot_ids[1], **KEY))
    await eventually(
        lambda: request.done() or bool(queue.redis.keys("slotlock:{idempotency:*:queue")),
        "the request waits for its key",
    )
    pause_point.resume()
    assert (await booking)["__typename"] == "Booked"
    requested = await request
    assert requested.get("code") == code
    if without:
        queue.worker()
        assert await ada.wait_for_outcome_code(requested["id"]) == "KEY_REUSED"
    else:
        assert (queue.queue_length(), (await ada.fetch_own_tickets())["nodes"]) == (0, [])
        assert (await ada.book_slot(slot_ids[0], **KEY)) == await booking


async def test_the_key_of_a_queued_ticket_is_key_reused_for_every_other_request(
    queue: QueueDeployment,
) -> None:
    app = queue.frontend()
    slot_id, other_id = await add_two_slots(queue, app, same_partition=False)
    full_id = await queue.add_slot(app)
    ada, ben = queue.queue_clients(app, 2)
    await ben.book_slot(full_id)
    ticket = await ada.enqueue(slot_id, **KEY)
    for other in (other_id, full_id):
        assert (await ada.request_booking(other, **KEY))["code"] == "KEY_REUSED"
        assert (await ada.book_slot(other, **KEY))["code"] == "KEY_REUSED"
    # Redis has lost the request, but not for which request the key was used.
    queue.redis.delete(*queue_keys(queue_partition(slot_id)))
    assert (await ada.request_booking(other_id, **KEY))["code"] == "KEY_REUSED"
    again = await ada.enqueue(slot_id, **KEY)
    queue.worker()
    assert await ada.wait_for_outcome_code(again["id"]) == "Booked"
    assert await ada.wait_for_outcome_code(ticket["id"]) == "Booked"


async def test_a_request_that_is_not_queued_does_not_use_up_its_key(queue: QueueDeployment) -> None:
    app = queue.frontend(max_queue_length=1)
    slot_id, other_id = await add_two_slots(queue, app, same_partition=False)
    ada, ben = queue.queue_clients(app, 2)
    ticket = await ada.enqueue(slot_id, **KEY)
    assert await ada.enqueue(slot_id, idempotencyKey="other key") == ticket
    assert (await ben.request_booking(slot_id, **KEY))["code"] == "QUEUE_FULL"
    assert (await ada.enqueue(other_id, idempotencyKey="other key"))["id"] != ticket["id"]
    assert (await ben.book_slot(other_id, **KEY))["__typename"] == "Booked"


async def test_a_key_used_to_book_returns_an_answered_ticket(queue: QueueDeployment) -> None:
    apps = [queue.app(), queue.app()]
    slot_id = await queue.add_slot(apps[0], capacity=3)
    ada = queue.queue_client(apps[0], 0)
    booked = await ada.book_slot(slot_id, **KEY)
    tickets = [await queue.queue_client(app, 0).request_booking(slot_id, **KEY) for app in apps]
    assert tickets[0] == tickets[1]
    assert (tickets[0]["status"], tickets[0]["outcome"]) == ("ANSWERED", booked)
    assert (await ada.fetch_ticket(tickets[0]["id"]))["outcome"] == booked
    assert (len(queue.consistent_booking_ids(slot_id)), queue.queue_length()) == (1, 0)


async def test_booking_with_the_key_of_a_ticket_makes_one_booking(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app, capacity=3)
    ada = queue.queue_client(app, 0)
    ticket = await ada.enqueue(slot_id, **KEY)
    booked = await ada.book_slot(slot_id, **KEY)
    assert booked["__typename"] == "Booked"
    queue.worker()
    assert await ada.wait_for_outcome(ticket["id"]) == booked
    assert await ada.book_slot(slot_id, **KEY) == booked
    assert queue.consistent_booking_ids(slot_id) == {booked["booking"]["id"][-24:]}


async def test_a_key_to_book_and_to_queue_at_once_has_one_effect(queue: QueueDeployment) -> None:
    apps = [queue.worker(), queue.worker()]
    for number in range(5):
        slot_id = await queue.add_slot(apps[0], capacity=30)
        ada = queue.queue_client(apps[0], number)
        mixed = [
            *repeated_requests(ada, apps, slot_id),
            *repeated_requests(ada, apps, slot_id, BOOK_WITH_OPTIONS),
        ]
        responses = await send_simultaneously(mixed)
        tickets = {response["id"] for response in responses if response["__typename"] == "Ticket"}
        booked = {
            json.dumps(response) for response in responses if response["__typename"] == "Booked"
        }
        # Requests that arrive during processing return the outcome of the first.
        outcomes = [await ada.wait_for_outcome(ticket) for ticket in tickets]
        assert len(booked | {json.dumps(outcome) for outcome in outcomes}) == 1
        assert len(queue.consistent_booking_ids(slot_id)) == 1
