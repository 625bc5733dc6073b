"""Members get places in a slot that is for the queue only through the queue, never past it."""

import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.campaigns import BOOKING_METHODS, create_campaign, update_campaign
from tests.support.queue.deployment import QueueDeployment, queue_deployment

__all__ = ["queue_deployment"]

QUEUE_ONLY = {"admission": "QUEUE_ONLY"}
KEY = {"idempotencyKey": "the key"}


@pytest.fixture
def app(queue_deployment: QueueDeployment) -> AppProcess:
    """Return an app that serves no queue."""
    return queue_deployment.frontend()


async def test_a_member_is_refused_in_every_way_but_through_the_queue(
    queue_deployment: QueueDeployment, app: AppProcess
) -> None:
    slot_id = await queue_deployment.add_slot(app, capacity=3, **QUEUE_ONLY)
    organizer = queue_deployment.organizer(app)
    ada, ben = queue_deployment.queue_clients(app, 2)
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
    queue_deployment.worker()
    for ticket in tickets:
        assert await ada.wait_for_outcome_code(ticket["id"]) == "Booked"


async def test_an_organizer_books_for_everyone_and_moves_bookings(
    queue_deployment: QueueDeployment, app: AppProcess
) -> None:
    slot_id = await queue_deployment.add_slot(app, capacity=3, **QUEUE_ONLY)
    other_id = await queue_deployment.add_slot(app)
    organizer, (ada, ben) = queue_deployment.organizer(app), queue_deployment.clients(app, 2)
    booking_id = (await ben.book_slot(other_id))["booking"]["id"]
    outcomes = [
        await organizer.book_slot(slot_id),
        await organizer.book_slot(slot_id, userId=await ada.fetch_user_id()),
        await organizer.move(booking_id, slot_id),
    ]
    assert [each["__typename"] for each in outcomes] == ["Booked", "Booked", "BookingMoved"]


async def test_a_campaign_decides_for_its_slots_and_can_be_changed(
    queue_deployment: QueueDeployment, app: AppProcess
) -> None:
    organizer, ada = queue_deployment.organizer(app), queue_deployment.client(app, 0)
    campaign_id = await create_campaign(organizer, **QUEUE_ONLY)
    slot_id = await organizer.add_slot(campaignId=campaign_id)
    assert (await ada.book_slot(slot_id))["code"] == "QUEUE_ONLY"
    query = "query($id: ID!) { slot(id: $id) { admission campaign { admission } } }"
    expected = {"admission": "ANY", "campaign": QUEUE_ONLY}
    assert await ada.execute(query, id=slot_id) == expected
    await organizer.update_slot(slot_id, **QUEUE_ONLY)
    await update_campaign(organizer, campaign_id, admission="ANY")
    assert (await ada.book_slot(slot_id))["code"] == "QUEUE_ONLY"
    await organizer.update_slot(slot_id, admission="ANY")
    assert (await ada.book_slot(slot_id))["__typename"] == "Booked"


async def test_the_key_of_a_queued_ticket_does_not_walk_past_the_queue(
    queue_deployment: QueueDeployment, app: AppProcess
) -> None:
    slot_id = await queue_deployment.add_slot(app, **QUEUE_ONLY)
    ada, ben = queue_deployment.queue_clients(app, 2)
    first, second = await ada.enqueue(slot_id), await ben.enqueue(slot_id, **KEY)
    assert (await ben.book_slot(slot_id, **KEY))["code"] == "QUEUE_ONLY"
    queue_deployment.worker()
    assert await ada.wait_for_outcome_code(first["id"]) == "Booked"
    assert await ben.wait_for_outcome_code(second["id"]) == "SLOT_FULL"
    assert (await ben.book_slot(slot_id, **KEY))["code"] == "SLOT_FULL"


async def test_the_waiting_list_of_a_full_slot_gives_out_its_free_places(
    queue_deployment: QueueDeployment, app: AppProcess
) -> None:
    slot_id = await queue_deployment.add_slot(app, **QUEUE_ONLY)
    organizer, (ada, ben) = queue_deployment.organizer(app), queue_deployment.clients(app, 2)
    booked = await organizer.book_slot(slot_id, userId=await ada.fetch_user_id())
    assert (await ben.join(slot_id))["__typename"] == "WaitlistJoined"
    await ada.cancel_booking(booked["booking"]["id"])
    assert (await ben.fetch_slot(slot_id))["myBooking"]["status"] == "CONFIRMED"


@pytest.mark.parametrize("is_by_campaign", [False, True])
async def test_the_waiting_list_of_a_slot_with_a_free_place_names_the_way_that_works(
    queue_deployment: QueueDeployment, app: AppProcess, is_by_campaign: bool
) -> None:
    organizer, ada = queue_deployment.organizer(app), queue_deployment.client(app, 0)
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
