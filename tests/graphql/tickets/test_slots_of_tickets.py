"""Tickets of slots that only the queue gives, or that are unpublished in between."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from slotlock.api.board.documents import board_documents
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import (
    BOOKING_METHODS,
    create_campaign,
    publish_campaign,
    unpublish_campaign,
    update_campaign,
)
from tests.support.clients.client import Json, hours_from_now, open_websocket
from tests.support.queue.deployment import QueueClient, QueueDeployment
from tests.support.queue.documents import TICKETS_BY_ID, WATCH_TICKET

QUEUE_ONLY = {"admission": "QUEUE_ONLY"}
KEY = {"idempotencyKey": "the key"}
CLOSED = {"__typename": "Closed", "code": "CLOSED"}
NOT_FOUND = {"__typename": "SlotNotFound", "code": "SLOT_NOT_FOUND"}


@pytest.fixture
def app(queue: QueueDeployment) -> AppProcess:
    """Return an app that serves no queue."""
    return queue.frontend()


async def test_a_member_is_refused_in_every_way_but_through_the_queue(
    queue: QueueDeployment, app: AppProcess
) -> None:
    slot_id = await queue.add_slot(app, capacity=3, **QUEUE_ONLY)
    organizer = queue.organizer(app)
    ada, ben = queue.queue_clients(app, 2)
    for name, method in BOOKING_METHODS.items():
        refusal = await method(ada, organizer, slot_id)
        assert (refusal["code"], refusal["slot"]) == ("QUEUE_ONLY", {"id": slot_id}), name
    await ada.create_team_with(ben)
    for_ben = await ada.book_slot(slot_id, userId=await ben.fetch_user_id())
    assert for_ben["__typename"] == "QueueOnly"
    tickets = [
        await ada.enqueue(slot_id),
        await ada.enqueue(slot_id, userId=await ben.fetch_user_id(), hold=True),
    ]
    queue.worker()
    for ticket in tickets:
        assert await ada.wait_for_outcome_code(ticket["id"]) == "Booked"


async def test_an_organizer_books_for_everyone_and_moves_bookings(
    queue: QueueDeployment, app: AppProcess
) -> None:
    slot_id = await queue.add_slot(app, capacity=3, **QUEUE_ONLY)
    other_id = await queue.add_slot(app)
    organizer, (ada, ben) = queue.organizer(app), queue.clients(app, 2)
    booking_id = (await ben.book_slot(other_id))["booking"]["id"]
    outcomes = [
        await organizer.book_slot(slot_id),
        await organizer.book_slot(slot_id, userId=await ada.fetch_user_id()),
        await organizer.move(booking_id, slot_id),
    ]
    assert [each["__typename"] for each in outcomes] == ["Booked", "Booked", "BookingMoved"]


async def test_a_campaign_decides_for_its_slots_and_can_be_changed(
    queue: QueueDeployment, app: AppProcess
) -> None:
    organizer, ada = queue.organizer(app), queue.client(app, 0)
    campaign_id = await create_campaign(organizer, **QUEUE_ONLY)
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    assert (await ada.book_slot(slot_id))["code"] == "QUEUE_ONLY"
    query = (
        "query($id: ID!) { slot(id: $id) { admission requiredAdmission campaign { admission } } }"
    )
    expected = {"admission": "ANY", "requiredAdmission": "QUEUE_ONLY", "campaign": QUEUE_ONLY}
    assert await ada.execute(query, id=slot_id) == expected
    await organizer.update_slot(slot_id, **QUEUE_ONLY)
    await update_campaign(organizer, campaign_id, admission="ANY")
    assert (await ada.book_slot(slot_id))["code"] == "QUEUE_ONLY"
    await organizer.update_slot(slot_id, admission="ANY")
    assert (await ada.book_slot(slot_id))["__typename"] == "Booked"


async def test_all_pages_for_members_read_that_the_campaign_has_the_queue(
    queue: QueueDeployment, app: AppProcess
) -> None:
    organizer, ada = queue.organizer(app), queue.client(app, 0)
    campaign_id = await create_campaign(organizer, **QUEUE_ONLY)
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    lists = {"campaign": campaign_id, "first": 1}
    for id_, text in board_documents().items():
        name = id_.split("/")[1]
        if name in ("slot", "slotOfFamily"):
            shown = (await ada.send(text, id=slot_id))["data"]["slot"]
        elif name in ("slotsOfCampaign", "slotsOfFamily"):
            (shown,) = (await ada.send(text, **lists))["data"]["slots"]["nodes"]
        else:
            continue
        assert shown["admission"] == "QUEUE_ONLY", name


async def test_the_key_of_a_queued_ticket_does_not_walk_past_the_queue(
    queue: QueueDeployment, app: AppProcess
) -> None:
    slot_id = await queue.add_slot(app, **QUEUE_ONLY)
    ada, ben = queue.queue_clients(app, 2)
    first, second = await ada.enqueue(slot_id), await ben.enqueue(slot_id, **KEY)
    assert (await ben.book_slot(slot_id, **KEY))["code"] == "QUEUE_ONLY"
    queue.worker()
    assert await ada.wait_for_outcome_code(first["id"]) == "Booked"
    assert await ben.wait_for_outcome_code(second["id"]) == "SLOT_FULL"
    assert (await ben.book_slot(slot_id, **KEY))["code"] == "SLOT_FULL"
    # The key of an answered ticket returns its outcome, in a slot for the queue, too.
    other_id = await queue.add_slot(app, **QUEUE_ONLY)
    ticket = await ada.enqueue(other_id, **KEY)
    outcome = await ada.wait_for_outcome(ticket["id"])
    assert outcome["__typename"] == "Booked"
    assert await ada.book_slot(other_id, **KEY) == outcome


async def test_the_waiting_list_of_a_full_slot_gives_out_its_free_places(
    queue: QueueDeployment, app: AppProcess
) -> None:
    slot_id = await queue.add_slot(app, **QUEUE_ONLY)
    organizer, (ada, ben) = queue.organizer(app), queue.clients(app, 2)
    booked = await organizer.book_slot(slot_id, userId=await ada.fetch_user_id())
    assert (await ben.join(slot_id))["__typename"] == "WaitlistJoined"
    await ada.cancel_booking(booked["booking"]["id"])
    assert (await ben.fetch_slot(slot_id))["myBooking"]["status"] == "CONFIRMED"


@pytest.mark.parametrize("is_by_campaign", [False, True])
async def test_the_waiting_list_of_a_slot_with_a_free_place_names_the_way_that_works(
    queue: QueueDeployment, app: AppProcess, is_by_campaign: bool
) -> None:
    organizer, ada = queue.organizer(app), queue.client(app, 0)
    fields = (
        {"campaignId": await create_campaign(organizer, **QUEUE_ONLY)}
        if is_by_campaign
        else QUEUE_ONLY
    )
    slot_id = await organizer.add_slot(**fields)
    refused, refused_organizer = await ada.join(slot_id), await organizer.join(slot_id)
    assert (refused["code"], refused_organizer["code"]) == ("SLOT_NOT_FULL", "SLOT_NOT_FULL")
    assert refused["message"] == (
        "This slot has a free place. Please request it through the queue instead."
    )
    assert refused_organizer["message"] == "This slot has a free place. Please book it instead."
    assert (await ada.book_slot(slot_id))["code"] == "QUEUE_ONLY"
    assert (await organizer.book_slot(slot_id))["__typename"] == "Booked"


@dataclass
class CampaignTicket:
    """A queued request for a slot of a campaign, and who can change it."""

    app: AppProcess
    organizer: BookingClient
    campaign_id: str
    client: QueueClient
    slot_id: str
    ticket_id: str


async def enqueue_in_campaign(queue: QueueDeployment) -> CampaignTicket:
    """Queue a request of a member for a slot of a published campaign."""
    app = queue.app()
    organizer = queue.organizer(app)
    campaign_id = await create_campaign(organizer)
    slot_id = await queue.add_slot(app, campaignId=campaign_id)
    client = queue.queue_client(app, 0)
    ticket = await client.enqueue(slot_id, **KEY)
    return CampaignTicket(app, organizer, campaign_id, client, slot_id, ticket["id"])


async def outcomes_everywhere(
    apps: Sequence[AppProcess], client: QueueClient, slot_id: str, ticket_id: str
) -> list[Json]:
    """Return the outcome of an answered ticket from everything that shows it."""
    outcomes: list[Json] = []
    for app in apps:
        reader = QueueClient(client.http, app.url, client.token)
        (node,) = await reader.execute(TICKETS_BY_ID, ids=[ticket_id])
        async with open_websocket(app, client.token) as opened:
            await opened.subscribe("1", WATCH_TICKET, id=ticket_id)
            watched = await opened.next_result()
        tickets = [
            await reader.fetch_ticket(ticket_id),
            node,
            watched,
            await reader.request_booking(slot_id, **KEY),
        ]
        outcomes += [ticket["outcome"] for ticket in tickets]
        outcomes.append(await reader.book_slot(slot_id, **KEY))
    return outcomes


def without_id(outcome: Json) -> Json:
    """Return an outcome as it is for every slot."""
    return {name: outcome[name] for name in ("__typename", "code")}


@pytest.mark.parametrize("decided_while", ["unpublished", "closed"])
async def test_a_refused_ticket_reads_as_slot_not_found_while_its_slot_is_hidden(
    queue: QueueDeployment, decided_while: str
) -> None:
    queued = await enqueue_in_campaign(queue)
    app, organizer, campaign_id = queued.app, queued.organizer, queued.campaign_id
    ada, slot_id, ticket_id = queued.client, queued.slot_id, queued.ticket_id
    if decided_while == "unpublished":
        await unpublish_campaign(organizer, campaign_id)
    else:
        await update_campaign(organizer, campaign_id, closesAt=hours_from_now(-1), allowPast=True)
    apps = [app, queue.worker()]
    decided = NOT_FOUND if decided_while == "unpublished" else CLOSED
    assert without_id(await ada.wait_for_outcome(ticket_id)) == decided
    assert queue.recorded_outcome(ticket_id) == decided["__typename"]
    for change, expected in (
        (unpublish_campaign, NOT_FOUND),
        (publish_campaign, decided),
        (unpublish_campaign, NOT_FOUND),
    ):
        await change(organizer, campaign_id)
        for shown in await outcomes_everywhere(apps, ada, slot_id, ticket_id):
            assert without_id(shown) == expected


async def test_a_ticket_of_an_unpublished_campaign_shows_what_a_new_request_shows(
    queue: QueueDeployment,
) -> None:
    queued = await enqueue_in_campaign(queue)
    await unpublish_campaign(queued.organizer, queued.campaign_id)
    queue.worker()
    outcome = await queued.client.wait_for_outcome(queued.ticket_id)
    await queue.wait_until_empty()
    assert outcome == await queued.client.book_slot(queued.slot_id)
    assert outcome == await queued.client.request_booking(queued.slot_id)


async def test_the_ticket_of_a_deleted_slot_says_slot_not_found(queue: QueueDeployment) -> None:
    queued = await enqueue_in_campaign(queue)
    assert (await queued.organizer.delete_slot(queued.slot_id))["slotIds"] == [queued.slot_id]
    queue.worker()
    assert without_id(await queued.client.wait_for_outcome(queued.ticket_id)) == NOT_FOUND
