"""What comes of asking for a ticket: a place in line at once, and in the end one outcome."""

import json

import pytest

from tests.support.campaigns import campaign, unpublish
from tests.support.client import Json, in_hours, socket
from tests.support.desk import Person
from tests.support.processes import AppProcess
from tests.support.tickets import NODES, WATCH_TICKET, Customer, QueueScene, line

__all__ = ["line"]


async def told(app: AppProcess, customer: Customer, ticket_id: str) -> list[Json]:
    """All that a subscription to a ticket tells, until it completes."""
    async with socket(app, customer.token) as opened:
        await opened.subscribe("1", WATCH_TICKET, id=ticket_id)
        states = []
        while (message := await opened.receive())["type"] == "next":
            states.append(message["payload"]["data"]["ticket"])
        assert message == {"id": "1", "type": "complete"}
    return states


async def test_a_ticket_is_given_at_once_and_tells_the_place_in_line(line: QueueScene) -> None:
    apps = [line.app(), line.app()]
    slot_id = await line.slot(apps[0], capacity=2)
    other_id = await line.slot(apps[0])
    for place in range(1, 6):
        customer = line.customer(apps[place % 2], place)
        ticket = await customer.stand(slot_id)
        assert (ticket["place"], ticket["slotId"], ticket["outcome"]) == (place, slot_id, None)
    # Who stands in front of another slot is in nobody's way.
    assert (await line.customer(apps[0], 1).stand(other_id))["place"] == 1
    assert line.live(slot_id) == set()


@pytest.mark.parametrize("hold", [False, True])
async def test_a_ticket_is_answered_with_a_booking(line: QueueScene, hold: bool) -> None:
    apps = [line.worker(), line.app()]
    slot_id = await line.slot(apps[0], capacity=2)
    ada = line.customer(apps[1], 0)
    ticket = await ada.request(slot_id, hold=hold)
    outcome = await ada.outcome(ticket["id"])
    assert outcome["__typename"] == "Booked"
    assert outcome["booking"]["status"] == ("HELD" if hold else "CONFIRMED")
    assert outcome["slot"]["remaining"] == 1
    assert (await ada.mine(slot_id))["myBooking"]["id"] == outcome["booking"]["id"]


async def test_who_comes_too_late_is_told_so_by_the_ticket_or_at_once(line: QueueScene) -> None:
    app = line.app()
    slot_id = await line.slot(app)
    ada, ben, cleo = line.customers(app, 3)
    tickets = [(await each.stand(slot_id))["id"] for each in (ada, ben)]
    line.worker()
    assert await ada.code(tickets[0]) == "Booked"
    assert await ben.code(tickets[1]) == "SLOT_FULL"
    for customer, code in ((cleo, "SLOT_FULL"), (ben, "SLOT_FULL"), (ada, "ALREADY_BOOKED")):
        assert (await customer.request(slot_id))["code"] == code
    assert line.in_line() == 0


async def _refusing(organiser: Person, why: str) -> str:
    fields: Json = {}
    match why:
        case "NOT_YET_OPEN":
            fields = {"campaignId": await campaign(organiser, opensAt=in_hours(1))}
        case "CLOSED":
            over = {"opensAt": in_hours(-2), "closesAt": in_hours(-1)}
            fields = {"campaignId": await campaign(organiser, **over)}
        case "NOT_ELIGIBLE":
            fields = {"campaignId": await campaign(organiser, eligibleGroups=[["5a"]])}
        case "SLOT_NOT_FOUND":
            fields = {"draft": True}
    slot_id = await organiser.slot(**fields)
    if why == "SLOT_CANCELLED":
        await organiser.call_off(slot_id)
    return slot_id


@pytest.mark.parametrize(
    "why", ["NOT_YET_OPEN", "CLOSED", "NOT_ELIGIBLE", "SLOT_NOT_FOUND", "SLOT_CANCELLED"]
)
async def test_what_would_be_refused_now_is_refused_at_once(line: QueueScene, why: str) -> None:
    app = line.app()
    slot_id = await _refusing(line.organiser(app), why)
    ada = line.customer(app, 0)
    first = await ada.request(slot_id, idempotencyKey="once")
    assert (first["code"], line.in_line(), line.known()) == (why, 0, {})
    assert await ada.wish(slot_id) == first


async def test_who_may_not_be_booked_for_is_refused_at_once(line: QueueScene) -> None:
    app = line.app()
    slot_id = await line.slot(app)
    ada, ben = line.customers(app, 2)
    nobody = f"user_{'0' * 24}"
    assert (await ada.request(slot_id, userId=await ben.id()))["code"] == "NOT_TEAMMATE"
    organiser = Customer(line.http, app.url, line.crowd.organiser)
    assert (await organiser.request(slot_id, userId=nobody))["code"] == "PERSON_NOT_FOUND"
    assert (await ada.request(f"slot_{'0' * 24}"))["code"] == "SLOT_NOT_FOUND"
    assert line.in_line() == 0


async def test_the_outcome_is_told_once_by_the_subscription_which_then_completes(
    line: QueueScene,
) -> None:
    app = line.app()
    slot_id = await line.slot(app)
    ada, ben = line.customers(app, 2)
    first, second = await ada.stand(slot_id), await ben.stand(slot_id)
    async with socket(app, ada.token) as opened:
        await opened.subscribe("1", WATCH_TICKET, id=first["id"])
        assert await opened.next() == {**_plain(first), "place": 1}
        line.worker()
        answered = await opened.next()
        assert (answered["status"], answered["outcome"]["__typename"]) == ("ANSWERED", "Booked")
        assert await opened.receive() == {"id": "1", "type": "complete"}
    # Who comes after the answer gets it, once too.
    assert await told(app, ada, first["id"]) == [answered]
    (refused,) = (await told(app, ben, second["id"]))[-1:]
    assert refused["outcome"]["__typename"] == "SlotFull"
    assert await told(app, ben, second["id"]) == [refused]


async def test_the_query_and_the_nodes_tell_the_same_however_often(line: QueueScene) -> None:
    apps = [line.app(), line.app()]
    slot_id = await line.slot(apps[0])
    ada, ben = line.customers(apps[0], 2)
    tickets = [_plain(await each.stand(slot_id)) for each in (ada, ben)]
    assert await ada.ticket(tickets[0]["id"]) == tickets[0]
    line.worker()
    assert [await ada.code(tickets[0]["id"]), await ben.code(tickets[1]["id"])] == [
        "Booked",
        "SLOT_FULL",
    ]
    for person, ticket in ((0, tickets[0]), (1, tickets[1])):
        seen = set()
        for app in apps * 2:
            customer = line.customer(app, person)
            seen.add(json.dumps(await customer.ticket(ticket["id"])))
            (node,) = await customer.ask(NODES, ids=[ticket["id"]])
            seen.add(json.dumps(node))
        assert len(seen) == 1


async def test_for_how_long_somebody_would_wait_plays_no_part(line: QueueScene) -> None:
    app = line.app()
    slot_id = await line.slot(app)
    ada = line.customer(app, 0)
    ticket = await ada.stand(slot_id, idempotencyKey="patient", waitMs=20_000)
    assert await ada.stand(slot_id, idempotencyKey="patient", waitMs=0) == ticket
    assert await ada.stand(slot_id, waitMs=1) == ticket


def _plain(ticket: Json) -> Json:
    return {name: value for name, value in ticket.items() if name != "__typename"}


async def test_a_ticket_tells_nothing_of_a_slot_that_was_hidden_since_but_to_who_may_see_it(
    line: QueueScene,
) -> None:
    app = line.app()
    organiser = Customer(line.http, app.url, line.crowd.organiser)
    chosen = await campaign(organiser)
    slot_id = await line.slot(app, campaignId=chosen)
    people = [*line.customers(app, 2), organiser]
    key = {"idempotencyKey": "the key"}
    tickets = [(await each.stand(slot_id, **key))["id"] for each in people]
    line.worker()
    asked = list(zip(people, tickets, strict=True))
    assert [await each.code(ticket) for each, ticket in asked] == ["Booked", *["SLOT_FULL"] * 2]
    await unpublish(organiser, chosen)
    assert [await each.code(ticket) for each, ticket in asked] == [
        "Booked", "SLOT_NOT_FOUND", "SLOT_FULL"
    ]  # fmt: skip
    assert (await people[1].wish(slot_id, **key))["code"] == "SLOT_NOT_FOUND"
    assert (await people[1].request(slot_id, **key))["outcome"]["code"] == "SLOT_NOT_FOUND"
