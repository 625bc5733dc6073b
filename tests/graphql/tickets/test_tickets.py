"""A booking request returns a ticket at once, and the ticket gets exactly one outcome."""

import json

import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign, unpublish_campaign
from tests.support.clients.client import Json, hours_from_now, open_websocket
from tests.support.queue.deployment import QueueClient, QueueDeployment
from tests.support.queue.documents import TICKETS_BY_ID, WATCH_TICKET


async def ticket_states(app: AppProcess, client: QueueClient, ticket_id: str) -> list[Json]:
    """Return all states that a ticket subscription sends until it completes."""
    async with open_websocket(app, client.token) as opened:
        await opened.subscribe("1", WATCH_TICKET, id=ticket_id)
        states = []
        while (message := await opened.receive())["type"] == "next":
            states.append(message["payload"]["data"]["ticket"])
        assert message == {"id": "1", "type": "complete"}
    return states


def without_typename(ticket: Json) -> Json:
    """Return the fields of a ticket without `__typename`, as its query returns them."""
    return {name: value for name, value in ticket.items() if name != "__typename"}


async def test_a_ticket_is_returned_at_once_with_its_position(queue: QueueDeployment) -> None:
    apps = [queue.app(), queue.app()]
    slot_id = await queue.add_slot(apps[0], capacity=2)
    other_id = await queue.add_slot(apps[0])
    for position in range(1, 6):
        client = queue.queue_client(apps[position % 2], position)
        ticket = await client.enqueue(slot_id)
        assert (ticket["position"], ticket["slotId"], ticket["outcome"]) == (
            position,
            slot_id,
            None,
        )
    # Each slot has its own positions.
    assert (await queue.queue_client(apps[0], 1).enqueue(other_id))["position"] == 1
    assert queue.consistent_booking_ids(slot_id) == set()


@pytest.mark.parametrize("hold", [False, True])
async def test_the_outcome_of_a_ticket_is_a_booking(queue: QueueDeployment, hold: bool) -> None:
    apps = [queue.worker(), queue.app()]
    slot_id = await queue.add_slot(apps[0], capacity=2)
    ada = queue.queue_client(apps[1], 0)
    ticket = await ada.request_booking(slot_id, hold=hold)
    outcome = await ada.wait_for_outcome(ticket["id"])
    assert outcome["__typename"] == "Booked"
    assert outcome["booking"]["status"] == ("HELD" if hold else "CONFIRMED")
    assert outcome["slot"]["remaining"] == 1
    assert (await ada.fetch_slot(slot_id))["myBooking"]["id"] == outcome["booking"]["id"]


async def test_a_late_request_is_refused_by_the_ticket_or_at_once(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app)
    ada, ben, cleo = queue.queue_clients(app, 3)
    tickets = [(await client.enqueue(slot_id))["id"] for client in (ada, ben)]
    queue.worker()
    assert await ada.wait_for_outcome_code(tickets[0]) == "Booked"
    assert await ben.wait_for_outcome_code(tickets[1]) == "SLOT_FULL"
    await queue.wait_until_empty()  # until then, a repeated request returns its ticket
    for client, code in ((cleo, "SLOT_FULL"), (ben, "SLOT_FULL"), (ada, "ALREADY_BOOKED")):
        assert (await client.request_booking(slot_id))["code"] == code
    assert queue.queue_length() == 0


async def add_refusing_slot(organizer: BookingClient, refusal_code: str) -> str:
    """Create a slot that refuses every booking with a code and return its id."""
    fields: Json = {}
    match refusal_code:
        case "NOT_YET_OPEN":
            fields = {"campaignId": await create_campaign(organizer, opensAt=hours_from_now(1))}
        case "CLOSED":
            past_times = {"opensAt": hours_from_now(-2), "closesAt": hours_from_now(-1)}
            fields = {"campaignId": await create_campaign(organizer, **past_times, allowPast=True)}
        case "NOT_ELIGIBLE":
            fields = {"campaignId": await create_campaign(organizer, eligibleGroups=[["5a"]])}
        case "SLOT_NOT_FOUND":
            fields = {"draft": True}
    slot_id = await organizer.add_slot(**fields)
    if refusal_code == "SLOT_CANCELLED":
        await organizer.cancel_slot(slot_id)
    return slot_id


@pytest.mark.parametrize(
    "refusal_code", ["NOT_YET_OPEN", "CLOSED", "NOT_ELIGIBLE", "SLOT_NOT_FOUND", "SLOT_CANCELLED"]
)
async def test_a_request_that_would_be_refused_now_is_refused_at_once(
    queue: QueueDeployment, refusal_code: str
) -> None:
    app = queue.app()
    slot_id = await add_refusing_slot(queue.organizer(app), refusal_code)
    ada = queue.queue_client(app, 0)
    first = await ada.request_booking(slot_id, idempotencyKey="once")
    assert (first["code"], queue.queue_length(), queue.stored_tickets()) == (refusal_code, 0, {})
    assert await ada.book_slot(slot_id) == first


async def test_a_request_without_permission_is_refused_at_once(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app)
    ada, ben = queue.queue_clients(app, 2)
    unknown_user = f"user_{'0' * 24}"
    assert (await ada.request_booking(slot_id, userId=await ben.fetch_user_id()))[
        "code"
    ] == "NOT_TEAMMATE"
    organizer = QueueClient(queue.http, app.url, queue.user_tokens.organizer)
    assert (await organizer.request_booking(slot_id, userId=unknown_user))[
        "code"
    ] == "USER_NOT_FOUND"
    assert (await ada.request_booking(f"slot_{'0' * 24}"))["code"] == "SLOT_NOT_FOUND"
    assert queue.queue_length() == 0


async def test_the_subscription_sends_the_outcome_and_completes(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app)
    ada, ben = queue.queue_clients(app, 2)
    first, second = await ada.enqueue(slot_id), await ben.enqueue(slot_id)
    async with open_websocket(app, ada.token) as opened:
        await opened.subscribe("1", WATCH_TICKET, id=first["id"])
        assert await opened.next_result() == {**without_typename(first), "position": 1}
        queue.worker()
        answered = await opened.next_result()
        assert (answered["status"], answered["outcome"]["__typename"]) == ("ANSWERED", "Booked")
        assert await opened.receive() == {"id": "1", "type": "complete"}
    # A subscription that starts after the outcome receives it once.
    assert await ticket_states(app, ada, first["id"]) == [answered]
    (refused,) = (await ticket_states(app, ben, second["id"]))[-1:]
    assert refused["outcome"]["__typename"] == "SlotFull"
    assert await ticket_states(app, ben, second["id"]) == [refused]


async def test_ticket_query_and_nodes_return_the_same_each_time(queue: QueueDeployment) -> None:
    apps = [queue.app(), queue.app()]
    slot_id = await queue.add_slot(apps[0])
    ada, ben = queue.queue_clients(apps[0], 2)
    tickets = [without_typename(await client.enqueue(slot_id)) for client in (ada, ben)]
    assert await ada.fetch_ticket(tickets[0]["id"]) == tickets[0]
    queue.worker()
    assert [
        await ada.wait_for_outcome_code(tickets[0]["id"]),
        await ben.wait_for_outcome_code(tickets[1]["id"]),
    ] == ["Booked", "SLOT_FULL"]
    for user_number, ticket in ((0, tickets[0]), (1, tickets[1])):
        states = set()
        for app in apps * 2:
            client = queue.queue_client(app, user_number)
            states.add(json.dumps(await client.fetch_ticket(ticket["id"])))
            (node,) = await client.execute(TICKETS_BY_ID, ids=[ticket["id"]])
            states.add(json.dumps(node))
        assert len(states) == 1


async def test_the_wait_limit_is_not_part_of_the_request_hash(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app)
    ada = queue.queue_client(app, 0)
    ticket = await ada.enqueue(slot_id, idempotencyKey="patient", waitMs=20_000)
    assert await ada.enqueue(slot_id, idempotencyKey="patient", waitMs=0) == ticket
    assert await ada.enqueue(slot_id, waitMs=1) == ticket


async def test_a_ticket_shows_a_hidden_slot_only_to_permitted_users(queue: QueueDeployment) -> None:
    app = queue.app()
    organizer = QueueClient(queue.http, app.url, queue.user_tokens.organizer)
    campaign_id = await create_campaign(organizer)
    slot_id = await queue.add_slot(app, campaignId=campaign_id)
    clients = [*queue.queue_clients(app, 2), organizer]
    key = {"idempotencyKey": "the key"}
    tickets = [(await client.enqueue(slot_id, **key))["id"] for client in clients]
    queue.worker()
    client_tickets = list(zip(clients, tickets, strict=True))
    assert [await client.wait_for_outcome_code(ticket) for client, ticket in client_tickets] == [
        "Booked",
        *["SLOT_FULL"] * 2,
    ]
    await unpublish_campaign(organizer, campaign_id)
    assert [await client.wait_for_outcome_code(ticket) for client, ticket in client_tickets] == [
        "Booked", "SLOT_NOT_FOUND", "SLOT_FULL"
    ]  # fmt: skip
    assert (await clients[1].book_slot(slot_id, **key))["code"] == "SLOT_NOT_FOUND"
    assert (await clients[1].request_booking(slot_id, **key))["outcome"]["code"] == "SLOT_NOT_FOUND"
