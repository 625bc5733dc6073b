"""Whose a ticket is, who asks for whom, and ids that name no ticket of the caller's."""

from collections.abc import Iterator

import pytest

from slotlock.api.embedded import Servers
from slotlock.desk.booking import Wish
from slotlock.desk.desk import utc_now
from slotlock.desk.queueing import request_booking
from slotlock.desk.tickets import find_ticket, read_ticket
from slotlock.domain.tickets import KNOWN_FOR, Ticket, TicketStatus
from slotlock.stores.ids import new_slot_id
from slotlock.stores.queue_scripts import keys
from slotlock.stores.writes import Changes
from tests.domain.test_booking import slot
from tests.support.client import socket
from tests.support.desks import House, open_house
from tests.support.tickets import (
    LOOK,
    NODES,
    REQUEST,
    WATCH_TICKET,
    Customer,
    QueueScene,
    line,
    own_part,
    partition_of,
    serve_who_is_there,
)

__all__ = ["line"]

MALFORMED = [
    "", "ticket_", "ticket", "\x00", "ticket_" + "0" * 106, "ticket_" + "0" * 108,
    "ticket_" + "g" * 107, "ticket_" + "A" * 107, "ticket_" + "٣" * 107, "slot_" + "0" * 24,
    "ticket_" + "0" * 107 + "\n", "x" * 10_000, "ticket_{queue:0}",
]  # fmt: skip


@pytest.fixture
def house(servers: Servers) -> Iterator[House]:
    """Desks with a clock that can be moved, and nobody who serves the queue."""
    with open_house(own_part(servers), "tickets") as opened:
        yield opened


@pytest.mark.parametrize("answered", [False, True])
async def test_a_ticket_of_somebody_else_is_none(line: QueueScene, answered: bool) -> None:
    app = line.app()
    slot_id = await line.slot(app)
    ada, ben = line.customers(app, 2)
    ticket_id = (await ada.stand(slot_id))["id"]
    if answered:
        line.worker()
        assert await ada.code(ticket_id) == "Booked"
    for other in (ben, Customer(line.http, app.url, line.crowd.organiser)):
        assert await other.ticket(ticket_id) is None
        assert await other.ask(NODES, ids=[ticket_id]) == [None]
        async with socket(app, other.token) as opened:
            await opened.subscribe("1", WATCH_TICKET, id=ticket_id)
            message = await opened.receive()
            assert message["payload"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_an_id_that_names_no_ticket_is_none_and_breaks_nothing(line: QueueScene) -> None:
    app = line.app()
    ada = line.customer(app, 0)
    async with socket(app, ada.token) as opened:
        for number, malformed in enumerate(MALFORMED):
            assert await ada.ticket(malformed) is None
            assert await ada.ask(NODES, ids=[malformed]) == [None]
            await opened.subscribe(str(number), WATCH_TICKET, id=malformed)
            message = await opened.receive()
            assert message["payload"][0]["extensions"]["code"] == "BAD_USER_INPUT"
    for other in (await line.slot(app), await ada.id()):
        assert await ada.ticket(other) is None
    assert " ERROR " not in app.log


async def test_nobody_elses_request_can_be_named_by_a_forged_id(line: QueueScene) -> None:
    app = line.app()
    slot_id = await line.slot(app)
    ada, ben = line.customers(app, 2)
    ticket_id = (await ada.stand(slot_id))["id"]
    forged = ticket_id.replace((await ada.id())[-24:], (await ben.id())[-24:])
    seen = await ben.ticket(forged)
    assert (seen["status"], seen["place"], seen["outcome"]) == ("LOST", None, None)
    line.worker()
    assert await ada.code(ticket_id) == "Booked"
    # Nor does it tell anything of the request that it names the key of.
    assert await ben.ticket(forged) == seen


async def test_a_ticket_told_with_another_time_or_slot_tells_nothing_false(
    line: QueueScene,
) -> None:
    app = line.app()
    slot_id, other_id = await line.slot(app), await line.slot(app)
    ada = line.customer(app, 0)
    ticket = await ada.stand(slot_id)
    at = int(ticket["id"][-11:], 16)
    later, never = (f"{ticket['id'][:-11]}{ms:011x}" for ms in (at + 1000, at + 3_600_000))
    asked = await ada.ticket(later)
    assert (asked["id"], asked["status"], asked["place"]) == (later, "QUEUED", 1)
    assert await ada.ticket(never) is None
    line.worker()
    assert await ada.code(ticket["id"]) == "Booked"
    moved = ticket["id"].replace(slot_id[-24:], other_id[-24:])
    assert (await ada.ticket(moved))["outcome"]["booking"]["slot"]["id"] == slot_id


@pytest.mark.parametrize("token", [None, "not a token"])
async def test_without_identity_there_are_no_tickets(line: QueueScene, token: str | None) -> None:
    app = line.app()
    slot_id = await line.slot(app)
    ticket_id = (await line.customer(app, 0).stand(slot_id))["id"]
    nobody = Customer(line.http, app.url, token)
    assert await nobody.error_code(REQUEST, input={"slotId": slot_id}) == "UNAUTHENTICATED"
    for named in (ticket_id, "ticket_"):
        assert await nobody.error_code(LOOK, id=named) == "UNAUTHENTICATED"
    if token is None:
        async with socket(app) as opened:
            await opened.subscribe("1", WATCH_TICKET, id=ticket_id)
            message = await opened.receive()
            assert message["payload"][0]["extensions"]["code"] == "UNAUTHENTICATED"


@pytest.mark.parametrize(
    "wish", [{"waitMs": -1}, {"waitMs": 20_001}, {"idempotencyKey": ""},
             {"idempotencyKey": "k" * 256}, {"idempotencyKey": "a\nb"}]
)  # fmt: skip
async def test_malformed_wishes_are_told_so(line: QueueScene, wish: dict[str, object]) -> None:
    app = line.app()
    slot_id = await line.slot(app)
    asked = {"slotId": slot_id, **wish}
    assert await line.customer(app, 0).error_code(REQUEST, input=asked) == "BAD_USER_INPUT"
    ada = line.customer(app, 0)
    assert (await ada.request("no slot"))["code"] == "SLOT_NOT_FOUND"
    assert (await ada.request(slot_id, userId="nobody"))["code"] == "PERSON_NOT_FOUND"
    assert line.in_line() == 0


async def test_a_team_mate_and_an_organiser_stand_in_line_for_others(line: QueueScene) -> None:
    app = line.app()
    slot_id = await line.slot(app, capacity=5)
    ada, ben, cleo = line.customers(app, 3)
    organiser = Customer(line.http, app.url, line.crowd.organiser)
    await ada.team_up(ben)
    asked = [(ada, await ben.id()), (organiser, await cleo.id()), (ada, None)]
    tickets = [await who.stand(slot_id, userId=user) for who, user in asked]
    assert [ticket["place"] for ticket in tickets] == [1, 2, 3]
    line.worker()
    for (who, user), ticket in zip(asked, tickets, strict=True):
        booking = (await who.outcome(ticket["id"]))["booking"]
        assert booking["user"]["id"] == (user or await who.id())
        assert booking["madeBy"]["id"] == await who.id()
        assert booking["onBehalf"] is (user is not None)
    assert await ben.ticket(tickets[0]["id"]) is None
    assert (await ben.mine(slot_id))["myBooking"] is not None


@pytest.mark.parametrize("answered", [False, True])
def test_a_ticket_is_known_for_a_day_and_then_it_is_none(house: House, answered: bool) -> None:
    house.clock.now = utc_now()
    desk, ada, slot_id = house.desks[0], house.people[0], new_slot_id()
    kept = Changes((), new=(slot(1, id=slot_id, start=utc_now() + 2 * KNOWN_FOR),))
    assert house.runner.run(desk.writes.commit(kept))
    ticket = house.runner.run(request_booking(desk, ada, slot_id, ada.user_id, Wish()))
    assert isinstance(ticket, Ticket)
    if answered:
        house.runner.run(serve_who_is_there(desk, slot_id))
        ticket = house.runner.run(read_ticket(desk, ticket.ref))
    assert ticket.status is (TicketStatus.ANSWERED if answered else TicketStatus.QUEUED)
    house.clock.now = ticket.ref.asked_at + KNOWN_FOR * 0.999
    assert house.runner.run(find_ticket(desk, ticket.ref, ada)) == ticket
    house.clock.now = ticket.ref.asked_at + KNOWN_FOR
    assert house.runner.run(find_ticket(desk, ticket.ref, ada)) is None


async def test_a_ticket_is_known_though_the_clock_of_redis_was_ahead_before(
    line: QueueScene,
) -> None:
    app = line.app()
    slot_id, ada = await line.slot(app), line.customer(app, 0)
    stream, ahead = keys(partition_of(slot_id))[0], utc_now() + KNOWN_FOR
    # Somebody came, and was served, while it was: the ids of the stream go on from theirs.
    entry = line.redis.xadd(stream, {"x": "y"}, id=f"{ahead.timestamp() * 1000:.0f}-0")
    line.redis.xdel(stream, entry)
    ticket = await ada.stand(slot_id)
    assert await ada.ticket(ticket["id"]) == {k: ticket[k] for k in ticket if k != "__typename"}
    line.worker()
    assert await ada.code(ticket["id"]) == "Booked"
