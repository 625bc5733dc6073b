"""Tickets belong to their requester; unknown and forged ids return null."""

from collections.abc import Iterator

import pytest

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.admission.tickets import TICKET_TTL, Ticket, TicketStatus
from slotlock.infrastructure.redis.keys import queue_keys
from slotlock.services.admission.enqueue import request_booking
from slotlock.services.admission.tickets import find_ticket, load_ticket
from slotlock.services.booking.book import BookingOptions
from slotlock.services.container import utc_now
from tests.support.clients.client import open_websocket
from tests.support.model.service_pair import ServicePair, open_service_pair
from tests.support.queue.deployment import (
    QueueClient,
    QueueDeployment,
    queue_partition,
    serve_queued_requests,
    with_own_redis_database,
)
from tests.support.queue.documents import REQUEST_BOOKING, TICKETS_BY_ID, WATCH_TICKET
from tests.support.stores.slots import insert_slot

MALFORMED = [
    "", "ticket_", "ticket", "\x00", "ticket_" + "0" * 106, "ticket_" + "0" * 108,
    "ticket_" + "g" * 107, "ticket_" + "A" * 107, "ticket_" + "٣" * 107, "slot_" + "0" * 24,
    "ticket_" + "0" * 107 + "\n", "x" * 10_000, "ticket_{queue:0}",
]  # fmt: skip


@pytest.fixture
def pair(servers: EmbeddedServers) -> Iterator[ServicePair]:
    """Return services with an adjustable clock and no admission worker."""
    with open_service_pair(with_own_redis_database(servers), "tickets") as opened:
        yield opened


@pytest.mark.parametrize("processed", [False, True])
async def test_a_ticket_of_another_user_is_null(queue: QueueDeployment, processed: bool) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app)
    ada, ben = queue.queue_clients(app, 2)
    ticket_id = (await ada.enqueue(slot_id))["id"]
    if processed:
        queue.worker()
        assert await ada.wait_for_outcome_code(ticket_id) == "Booked"
    for other in (ben, QueueClient(queue.http, app.url, queue.user_tokens.organizer)):
        assert await other.fetch_ticket(ticket_id) is None
        assert await other.execute(TICKETS_BY_ID, ids=[ticket_id]) == [None]
        async with open_websocket(app, other.token) as opened:
            await opened.subscribe("1", WATCH_TICKET, id=ticket_id)
            message = await opened.receive()
            assert message["payload"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_an_unknown_or_malformed_id_is_null_without_errors(queue: QueueDeployment) -> None:
    app = queue.app()
    ada = queue.queue_client(app, 0)
    async with open_websocket(app, ada.token) as opened:
        for number, malformed in enumerate(MALFORMED):
            assert await ada.fetch_ticket(malformed) is None
            assert await ada.execute(TICKETS_BY_ID, ids=[malformed]) == [None]
            await opened.subscribe(str(number), WATCH_TICKET, id=malformed)
            message = await opened.receive()
            assert message["payload"][0]["extensions"]["code"] == "BAD_USER_INPUT"
    for other_id in (await queue.add_slot(app), await ada.fetch_user_id()):
        assert await ada.fetch_ticket(other_id) is None
    assert " ERROR " not in app.log


async def test_a_forged_ticket_id_does_not_reach_requests_of_others(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app)
    ada, ben = queue.queue_clients(app, 2)
    ticket_id = (await ada.enqueue(slot_id))["id"]
    forged = ticket_id.replace((await ada.fetch_user_id())[-24:], (await ben.fetch_user_id())[-24:])
    forged_ticket = await ben.fetch_ticket(forged)
    assert (forged_ticket["status"], forged_ticket["position"], forged_ticket["outcome"]) == (
        "LOST",
        None,
        None,
    )
    queue.worker()
    assert await ada.wait_for_outcome_code(ticket_id) == "Booked"
    # The forged id reveals nothing about the request whose key it contains.
    assert await ben.fetch_ticket(forged) == forged_ticket


async def test_an_id_with_another_time_or_slot_shows_nothing_wrong(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id, other_id = await queue.add_slot(app), await queue.add_slot(app)
    ada = queue.queue_client(app, 0)
    ticket = await ada.enqueue(slot_id)
    requested_at_ms = int(ticket["id"][-11:], 16)
    later, much_later = (
        f"{ticket['id'][:-11]}{ms:011x}"
        for ms in (requested_at_ms + 1000, requested_at_ms + 3_600_000)
    )
    later_ticket = await ada.fetch_ticket(later)
    assert (later_ticket["id"], later_ticket["status"], later_ticket["position"]) == (
        later,
        "QUEUED",
        1,
    )
    assert await ada.fetch_ticket(much_later) is None
    queue.worker()
    assert await ada.wait_for_outcome_code(ticket["id"]) == "Booked"
    other_slot_ticket_id = ticket["id"].replace(slot_id[-24:], other_id[-24:])
    assert (await ada.fetch_ticket(other_slot_ticket_id))["outcome"]["booking"]["slot"][
        "id"
    ] == slot_id


@pytest.mark.parametrize(
    "options", [{"waitMs": -1}, {"waitMs": 20_001}, {"idempotencyKey": ""},
             {"idempotencyKey": "k" * 256}, {"idempotencyKey": "a\nb"}]
)  # fmt: skip
async def test_bad_arguments_are_named(queue: QueueDeployment, options: dict[str, object]) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app)
    input_ = {"slotId": slot_id, **options}
    assert (
        await queue.queue_client(app, 0).error_code(REQUEST_BOOKING, input=input_)
        == "BAD_USER_INPUT"
    )
    ada = queue.queue_client(app, 0)
    assert (await ada.request_booking("no slot"))["code"] == "SLOT_NOT_FOUND"
    assert (await ada.request_booking(slot_id, userId="nobody"))["code"] == "USER_NOT_FOUND"
    assert queue.queue_length() == 0


async def test_teammates_and_organizers_queue_for_others(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id = await queue.add_slot(app, capacity=5)
    ada, ben, cleo = queue.queue_clients(app, 3)
    organizer = QueueClient(queue.http, app.url, queue.user_tokens.organizer)
    await ada.create_team_with(ben)
    requests = [
        (ada, await ben.fetch_user_id()),
        (organizer, await cleo.fetch_user_id()),
        (ada, None),
    ]
    tickets = [await client.enqueue(slot_id, userId=user_id) for client, user_id in requests]
    assert [ticket["position"] for ticket in tickets] == [1, 2, 3]
    queue.worker()
    for (client, user_id), ticket in zip(requests, tickets, strict=True):
        booking = (await client.wait_for_outcome(ticket["id"]))["booking"]
        assert booking["user"]["id"] == (user_id or await client.fetch_user_id())
        assert booking["madeBy"]["id"] == await client.fetch_user_id()
        assert booking["onBehalf"] is (user_id is not None)
    assert await ben.fetch_ticket(tickets[0]["id"]) is None
    assert (await ben.fetch_slot(slot_id))["myBooking"] is not None


@pytest.mark.parametrize("processed", [False, True])
def test_a_ticket_is_readable_for_a_day_only(pair: ServicePair, processed: bool) -> None:
    pair.clock.now = utc_now()
    services, ada = pair.services[0], pair.callers[0]
    slot_id = pair.runner.run(insert_slot(services, 1, start=utc_now() + 2 * TICKET_TTL))
    request = request_booking(services, ada, slot_id, ada.user_id, BookingOptions())
    ticket = pair.runner.run(request).outcome
    assert isinstance(ticket, Ticket)
    if processed:
        pair.runner.run(serve_queued_requests(services, slot_id))
        ticket = pair.runner.run(load_ticket(services, ticket.ref))
    assert ticket.status is (TicketStatus.ANSWERED if processed else TicketStatus.QUEUED)
    pair.clock.now = ticket.ref.requested_at + TICKET_TTL * 0.999
    assert pair.runner.run(find_ticket(services, ticket.ref, ada)) == ticket
    pair.clock.now = ticket.ref.requested_at + TICKET_TTL
    assert pair.runner.run(find_ticket(services, ticket.ref, ada)) is None


async def test_a_ticket_is_readable_if_the_clock_was_ahead(queue: QueueDeployment) -> None:
    app = queue.app()
    slot_id, ada = await queue.add_slot(app), queue.queue_client(app, 0)
    stream, ahead = queue_keys(queue_partition(slot_id)).requests, utc_now() + TICKET_TTL
    # A stream never generates an id below its last one, which is in the future here.
    entry = queue.redis.xadd(stream, {"x": "y"}, id=f"{ahead.timestamp() * 1000:.0f}-0")
    queue.redis.xdel(stream, entry)
    ticket = await ada.enqueue(slot_id)
    assert await ada.fetch_ticket(ticket["id"]) == {
        k: ticket[k] for k in ticket if k != "__typename"
    }
    queue.worker()
    assert await ada.wait_for_outcome_code(ticket["id"]) == "Booked"
