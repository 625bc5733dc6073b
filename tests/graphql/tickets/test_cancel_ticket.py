"""A queued request can be cancelled: it never books, and those behind it move up."""

import pytest

from tests.support.clients.client import open_websocket
from tests.support.queue.deployment import (
    QueueClient,
    QueueDeployment,
    queue_deployment,
)
from tests.support.queue.documents import TICKET_BY_ID, WATCH_TICKET
from tests.support.queue.queued_users import expect_final_status

__all__ = ["queue_deployment"]

KEY = {"idempotencyKey": "the key"}


async def positions(clients: list[QueueClient], ticket_ids: list[str]) -> list[int | None]:
    """Return the present positions of tickets."""
    pairs = zip(clients, ticket_ids, strict=True)
    return [(await client.fetch_ticket(id_))["position"] for client, id_ in pairs]


async def test_a_cancelled_request_leaves_the_queue_and_never_books(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.app()
    slot_id = await queue_deployment.add_slot(app, capacity=3)
    clients = queue_deployment.queue_clients(app, 4)
    ids = [(await client.enqueue(slot_id))["id"] for client in clients]
    cancelled = await clients[1].cancel_ticket(ids[1])
    assert cancelled["__typename"] == "TicketCancelled"
    ticket = cancelled["ticket"]
    assert (ticket["id"], ticket["status"], ticket["position"]) == (ids[1], "CANCELLED", None)
    assert await clients[1].fetch_ticket(ids[1]) == ticket
    assert queue_deployment.queue_length() == 3
    queue_deployment.worker()
    others = [0, 2, 3]
    for number in others:
        assert await clients[number].wait_for_outcome_code(ids[number]) == "Booked"
    assert (await clients[1].fetch_slot(slot_id))["myBooking"] is None
    assert len(queue_deployment.consistent_booking_ids(slot_id)) == 3
    assert queue_deployment.stored_tickets() == {}
    assert list(queue_deployment.redis.scan_iter("*:cancelled")) == []


async def test_only_those_behind_a_cancelled_request_move_up(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.app()
    slot_id = await queue_deployment.add_slot(app, capacity=6)
    clients = queue_deployment.queue_clients(app, 6)
    ids = [(await client.enqueue(slot_id))["id"] for client in clients]
    for cancelled, expected in (
        (3, [1, 2, 3, None, 4, 5]),
        (1, [1, None, 2, None, 3, 4]),
        (0, [None, None, 1, None, 2, 3]),
        (5, [None, None, 1, None, 2, None]),
    ):
        await clients[cancelled].cancel_ticket(ids[cancelled])
        assert await positions(clients, ids) == expected
    # A new request is behind all of them, and the first two are the only ones ahead.
    assert (await queue_deployment.queue_client(app, 6).enqueue(slot_id))["position"] == 3
    assert (await clients[0].enqueue(slot_id))["position"] == 4


async def test_the_subscriptions_of_a_cancelled_ticket_and_of_those_behind_are_updated(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.app()
    slot_id = await queue_deployment.add_slot(app)
    ada, ben = queue_deployment.queue_clients(app, 2)
    adas, bens = [(await client.enqueue(slot_id))["id"] for client in (ada, ben)]
    async with open_websocket(app, ada.token) as first, open_websocket(app, ben.token) as second:
        await first.subscribe("1", WATCH_TICKET, id=adas)
        await second.subscribe("1", WATCH_TICKET, id=bens)
        assert (await first.next_result())["position"] == 1
        assert (await second.next_result())["position"] == 2
        await ada.cancel_ticket(adas)
        await expect_final_status(first, "CANCELLED")
        assert (await second.next_result())["position"] == 1


async def test_cancelling_again_gives_the_same_result(queue_deployment: QueueDeployment) -> None:
    apps = [queue_deployment.app(), queue_deployment.app()]
    slot_id = await queue_deployment.add_slot(apps[0])
    clients = [queue_deployment.queue_client(app, 0) for app in apps]
    ticket_id = (await clients[0].enqueue(slot_id))["id"]
    first = await clients[0].cancel_ticket(ticket_id)
    queue_deployment.worker()
    assert [await client.cancel_ticket(ticket_id) for client in clients * 2] == [first] * 4


async def test_an_answered_ticket_is_not_cancelled(queue_deployment: QueueDeployment) -> None:
    app = queue_deployment.worker()
    slot_id = await queue_deployment.add_slot(app)
    ada = queue_deployment.queue_client(app, 0)
    ticket_id = (await ada.request_booking(slot_id))["id"]
    assert await ada.wait_for_outcome_code(ticket_id) == "Booked"
    refusal = await ada.cancel_ticket(ticket_id)
    assert (refusal["__typename"], refusal["code"]) == ("TicketNotQueued", "TICKET_NOT_QUEUED")
    assert refusal["ticket"] == await ada.fetch_ticket(ticket_id)
    assert (await ada.fetch_slot(slot_id))["myBooking"] is not None


async def test_the_key_of_a_cancelled_ticket_is_used_up_and_another_key_queues_again(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.app()
    slot_id = await queue_deployment.add_slot(app)
    ada = queue_deployment.queue_client(app, 0)
    ticket_id = (await ada.enqueue(slot_id, **KEY))["id"]
    await ada.cancel_ticket(ticket_id)
    again = await ada.request_booking(slot_id, **KEY)
    assert (again["id"], again["status"]) == (ticket_id, "CANCELLED")
    assert (await ada.book_slot(slot_id, **KEY))["code"] == "KEY_REUSED"
    assert queue_deployment.queue_length() == 0
    other = await ada.enqueue(slot_id)
    assert (other["id"] != ticket_id, other["status"], other["position"]) == (True, "QUEUED", 1)


@pytest.mark.parametrize("ticket_id", ["", "ticket_", "slot_" + "0" * 24])
async def test_an_id_of_no_ticket_is_refused(
    queue_deployment: QueueDeployment, ticket_id: str
) -> None:
    ada = queue_deployment.queue_client(queue_deployment.app(), 0)
    assert (await ada.cancel_ticket(ticket_id))["code"] == "TICKET_NOT_FOUND"


async def test_only_the_user_who_requested_a_ticket_can_cancel_it(
    queue_deployment: QueueDeployment,
) -> None:
    app = queue_deployment.app()
    slot_id = await queue_deployment.add_slot(app)
    ada, ben = queue_deployment.queue_clients(app, 2)
    ticket = await ada.enqueue(slot_id)
    organizer = QueueClient(queue_deployment.http, app.url, queue_deployment.user_tokens.organizer)
    for other in (ben, organizer):
        assert (await other.cancel_ticket(ticket["id"]))["code"] == "TICKET_NOT_FOUND"
    assert (await ada.execute(TICKET_BY_ID, id=ticket["id"]))["status"] == "QUEUED"
