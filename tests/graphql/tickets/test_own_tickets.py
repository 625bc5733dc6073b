"""The tickets of the caller: their list, and requests that are cancelled."""

from collections.abc import Iterator

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.admission.tickets import TICKET_TTL
from slotlock.domain.booking.booking import SlotId
from slotlock.infrastructure.redis.admission import ticket_index
from slotlock.infrastructure.redis.keys import ticket_index_key
from slotlock.services.admission.enqueue import request_booking
from slotlock.services.admission.tickets import list_tickets
from slotlock.services.booking.book import BookingOptions
from slotlock.services.container import utc_now
from tests.support.clients.client import open_websocket
from tests.support.model.service_pair import ServicePair, open_service_pair
from tests.support.queue.deployment import (
    QueueClient,
    QueueDeployment,
    queue_partition,
    with_own_redis_database,
)
from tests.support.queue.documents import TICKET_BY_ID, WATCH_TICKET
from tests.support.queue.queued_users import expect_final_status
from tests.support.stores.slots import insert_slot

KEY = {"idempotencyKey": "the key"}


async def positions(clients: list[QueueClient], ticket_ids: list[str]) -> list[int | None]:
    """Return the present positions of tickets."""
    pairs = zip(clients, ticket_ids, strict=True)
    return [(await client.fetch_ticket(id_))["position"] for client, id_ in pairs]


async def test_a_cancelled_request_leaves_the_queue_and_never_books(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app, capacity=3)
    clients = queue.queue_clients(app, 4)
    ids = [(await client.enqueue(slot_id))["id"] for client in clients]
    cancelled = await clients[1].cancel_ticket(ids[1])
    assert cancelled["__typename"] == "TicketCancelled"
    ticket = cancelled["ticket"]
    assert (ticket["id"], ticket["status"], ticket["position"]) == (ids[1], "CANCELLED", None)
    assert await clients[1].fetch_ticket(ids[1]) == ticket
    assert queue.queue_length() == 3
    queue.worker()
    others = [0, 2, 3]
    for number in others:
        assert await clients[number].wait_for_outcome_code(ids[number]) == "Booked"
    assert (await clients[1].fetch_slot(slot_id))["myBooking"] is None
    assert len(queue.consistent_booking_ids(slot_id)) == 3
    await queue.wait_until_empty()  # an answered ticket leaves it a little later
    assert queue.stored_tickets() == {}
    assert list(queue.redis.scan_iter("*:cancelled")) == []


async def test_only_those_behind_a_cancelled_request_move_up(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app, capacity=6)
    clients = queue.queue_clients(app, 6)
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
    assert (await queue.queue_client(app, 6).enqueue(slot_id))["position"] == 3
    assert (await clients[0].enqueue(slot_id))["position"] == 4


async def test_the_subscriptions_of_a_cancelled_ticket_and_of_those_behind_are_updated(
    queue: QueueDeployment,
) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app)
    ada, ben = queue.queue_clients(app, 2)
    adas, bens = [(await client.enqueue(slot_id))["id"] for client in (ada, ben)]
    async with open_websocket(app, ada.token) as first, open_websocket(app, ben.token) as second:
        await first.subscribe("1", WATCH_TICKET, id=adas)
        await second.subscribe("1", WATCH_TICKET, id=bens)
        assert (await first.next_result())["position"] == 1
        assert (await second.next_result())["position"] == 2
        await ada.cancel_ticket(adas)
        await expect_final_status(first, "CANCELLED")
        assert (await second.next_result())["position"] == 1


async def test_cancelling_again_gives_the_same_result(queue: QueueDeployment) -> None:
    apps = [queue.app(), queue.app()]
    slot_id = await queue.add_slot(apps[0])
    clients = [queue.queue_client(app, 0) for app in apps]
    ticket_id = (await clients[0].enqueue(slot_id))["id"]
    first = await clients[0].cancel_ticket(ticket_id)
    queue.worker()
    assert [await client.cancel_ticket(ticket_id) for client in clients * 2] == [first] * 4


async def test_an_answered_ticket_is_not_cancelled(queue: QueueDeployment) -> None:
    app = queue.worker()
    slot_id = await queue.add_slot(app)
    ada = queue.queue_client(app, 0)
    ticket_id = (await ada.request_booking(slot_id))["id"]
    assert await ada.wait_for_outcome_code(ticket_id) == "Booked"
    refusal = await ada.cancel_ticket(ticket_id)
    assert (refusal["__typename"], refusal["code"]) == ("TicketNotQueued", "TICKET_NOT_QUEUED")
    assert refusal["ticket"] == await ada.fetch_ticket(ticket_id)
    assert (await ada.fetch_slot(slot_id))["myBooking"] is not None


async def test_the_key_of_a_cancelled_ticket_is_used_up_and_another_key_queues_again(
    queue: QueueDeployment,
) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app)
    ada = queue.queue_client(app, 0)
    ticket_id = (await ada.enqueue(slot_id, **KEY))["id"]
    await ada.cancel_ticket(ticket_id)
    again = await ada.request_booking(slot_id, **KEY)
    assert (again["id"], again["status"]) == (ticket_id, "CANCELLED")
    assert (await ada.book_slot(slot_id, **KEY))["code"] == "KEY_REUSED"
    assert queue.queue_length() == 0
    other = await ada.enqueue(slot_id)
    assert (other["id"] != ticket_id, other["status"], other["position"]) == (True, "QUEUED", 1)


@pytest.mark.parametrize("ticket_id", ["", "ticket_", "slot_" + "0" * 24])
async def test_an_id_of_no_ticket_is_refused(queue: QueueDeployment, ticket_id: str) -> None:
    ada = queue.queue_client(queue.app(), 0)
    assert (await ada.cancel_ticket(ticket_id))["code"] == "TICKET_NOT_FOUND"


async def test_only_the_user_who_requested_a_ticket_can_cancel_it(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app)
    ada, ben = queue.queue_clients(app, 2)
    ticket = await ada.enqueue(slot_id)
    organizer = QueueClient(queue.http, app.url, queue.user_tokens.organizer)
    for other in (ben, organizer):
        assert (await other.cancel_ticket(ticket["id"]))["code"] == "TICKET_NOT_FOUND"
    assert (await ada.execute(TICKET_BY_ID, id=ticket["id"]))["status"] == "QUEUED"


@pytest.fixture
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Return services with an adjustable clock and no admission worker."""
    with open_service_pair(with_own_redis_database(servers), "my-tickets") as opened:
        yield opened


async def test_the_tickets_of_the_caller_are_listed_newest_first_with_their_states(
    queue: QueueDeployment,
) -> None:
    apps = [queue.app(), queue.app()]
    slot_ids = [await queue.add_slot(apps[0], capacity=2) for _ in range(5)]
    while len(slot_ids) < 6 or len({queue_partition(slot_id) for slot_id in slot_ids}) == 1:
        slot_ids.append(await queue.add_slot(apps[0], capacity=2))
    ada, ben = queue.queue_clients(apps[0], 2)
    await ben.enqueue(slot_ids[0])
    ids = [(await ada.enqueue(slot_id))["id"] for slot_id in slot_ids]
    again = await ada.enqueue(slot_ids[0])
    assert again["id"] == ids[0]
    await ada.cancel_ticket(ids[3])
    newest_first = ids[::-1]
    reader = QueueClient(queue.http, apps[1].url, ada.token)
    found = (await reader.fetch_own_tickets())["nodes"]
    assert [ticket["id"] for ticket in found] == newest_first
    assert found == [await ada.fetch_ticket(id_) for id_ in newest_first]
    assert {ticket["status"] for ticket in found} == {"QUEUED", "CANCELLED"}
    queue.worker()
    for id_ in (id_ for id_ in ids if id_ != ids[3]):
        assert await ada.wait_for_outcome_code(id_) == "Booked"
    found = (await reader.fetch_own_tickets())["nodes"]
    assert found == [await ada.fetch_ticket(id_) for id_ in newest_first]


async def test_a_request_sent_again_after_a_loss_is_listed_once(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id, ada = await queue.add_slot(app), queue.queue_client(app, 0)
    key = {"idempotencyKey": "the key"}
    lost = (await ada.enqueue(slot_id, **key))["id"]
    for name in queue.redis.scan_iter("slotlock:{queue:*"):
        queue.redis.delete(name)
    (ticket,) = (await ada.fetch_own_tickets())["nodes"]
    assert (ticket["id"], ticket["status"]) == (lost, "LOST")
    again = await ada.enqueue(slot_id, **key)
    (ticket,) = (await ada.fetch_own_tickets())["nodes"]
    assert (ticket["id"], ticket["status"]) == (again["id"], "QUEUED")


def add_slot(pair: ServicePair) -> SlotId:
    """Insert a slot that starts in two days."""
    start = utc_now() + 2 * TICKET_TTL
    return pair.runner.run(insert_slot(pair.services[0], 1, start=start))


def test_tickets_are_listed_for_a_day_and_then_forgotten(pair: ServicePair) -> None:
    pair.clock.now = utc_now()
    services, ada = pair.services[0], pair.callers[0]
    request = request_booking(services, ada, add_slot(pair), ada.user_id, BookingOptions())
    ticket = pair.runner.run(request).outcome
    for elapsed, expected in ((TICKET_TTL * 0.999, (ticket,)), (TICKET_TTL, ())):
        pair.clock.now = ticket.ref.requested_at + elapsed  # type: ignore[union-attr]
        assert pair.runner.run(list_tickets(services, ada, 10, None)).items == expected
    key = ticket_index_key(ada.user_id)
    ttl_ms = pair.runner.run(_send(pair, "PTTL", key))
    assert 0 < ttl_ms <= ticket_index.TTL_MS


async def _send(pair: ServicePair, *command: str) -> int:
    found: int = await pair.services[0].admission_queue.pipeline.send(*command)
    return found


def test_a_user_has_at_most_the_newest_thousand_tickets_in_the_list(
    pair: ServicePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticket_index, "MAX_TICKETS", 2)
    services, ada = pair.services[0], pair.callers[0]
    pair.clock.now = utc_now()
    refs = []
    for _ in range(3):
        slot_id = add_slot(pair)
        request = request_booking(services, ada, slot_id, ada.user_id, BookingOptions())
        refs.append(pair.runner.run(request).outcome.ref)  # type: ignore[union-attr]
        pair.clock.now += TICKET_TTL / 1000
    listed = pair.runner.run(list_tickets(services, ada, 10, None)).items
    assert [ticket.ref for ticket in listed] == refs[:0:-1]
