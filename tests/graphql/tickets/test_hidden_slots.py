"""The outcome of a ticket while its campaign is unpublished and published again."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import (
    create_campaign,
    publish_campaign,
    unpublish_campaign,
    update_campaign,
)
from tests.support.clients.client import Json, hours_from_now, open_websocket
from tests.support.queue.deployment import QueueClient, QueueDeployment, queue_deployment
from tests.support.queue.documents import TICKETS_BY_ID, WATCH_TICKET

__all__ = ["queue_deployment"]

KEY = {"idempotencyKey": "the key"}
CLOSED = {"__typename": "Closed", "code": "CLOSED"}
NOT_FOUND = {"__typename": "SlotNotFound", "code": "SLOT_NOT_FOUND"}


@dataclass
class CampaignTicket:
    """A queued request for a slot of a campaign, and who can change it."""

    app: AppProcess
    organizer: BookingClient
    campaign_id: str
    client: QueueClient
    slot_id: str
    ticket_id: str


async def enqueue_in_campaign(queue_deployment: QueueDeployment) -> CampaignTicket:
    """Queue a request of a member for a slot of a published campaign."""
    app = queue_deployment.app()
    organizer = queue_deployment.organizer(app)
    campaign_id = await create_campaign(organizer)
    slot_id = await queue_deployment.add_slot(app, campaignId=campaign_id)
    client = queue_deployment.queue_client(app, 0)
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
    queue_deployment: QueueDeployment, decided_while: str
) -> None:
    queued = await enqueue_in_campaign(queue_deployment)
    app, organizer, campaign_id = queued.app, queued.organizer, queued.campaign_id
    ada, slot_id, ticket_id = queued.client, queued.slot_id, queued.ticket_id
    if decided_while == "unpublished":
        await unpublish_campaign(organizer, campaign_id)
    else:
        await update_campaign(organizer, campaign_id, closesAt=hours_from_now(-1), allowPast=True)
    apps = [app, queue_deployment.worker()]
    decided = NOT_FOUND if decided_while == "unpublished" else CLOSED
    assert without_id(await ada.wait_for_outcome(ticket_id)) == decided
    assert queue_deployment.recorded_outcome(ticket_id) == decided["__typename"]
    for change, expected in (
        (unpublish_campaign, NOT_FOUND),
        (publish_campaign, decided),
        (unpublish_campaign, NOT_FOUND),
    ):
        await change(organizer, campaign_id)
        for shown in await outcomes_everywhere(apps, ada, slot_id, ticket_id):
            assert without_id(shown) == expected


async def test_a_ticket_of_an_unpublished_campaign_shows_what_a_new_request_shows(
    queue_deployment: QueueDeployment,
) -> None:
    queued = await enqueue_in_campaign(queue_deployment)
    await unpublish_campaign(queued.organizer, queued.campaign_id)
    queue_deployment.worker()
    outcome = await queued.client.wait_for_outcome(queued.ticket_id)
    assert outcome == await queued.client.book_slot(queued.slot_id)
    assert outcome == await queued.client.request_booking(queued.slot_id)


async def test_the_ticket_of_a_deleted_slot_is_answered_slot_not_found(
    queue_deployment: QueueDeployment,
) -> None:
    queued = await enqueue_in_campaign(queue_deployment)
    assert (await queued.organizer.delete_slot(queued.slot_id))["slotIds"] == [queued.slot_id]
    queue_deployment.worker()
    assert without_id(await queued.client.wait_for_outcome(queued.ticket_id)) == NOT_FOUND
