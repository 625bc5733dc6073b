"""Deleting slots and campaigns, and what readers then see of them."""

import secrets
from typing import Any

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import WATCH_AVAILABILITY, Json, open_websocket
from tests.support.clients.fixtures import Three
from tests.support.clients.series import cancel_series, create_series

NODE = "query($id: ID!) { node(id: $id) { id } }"
AUDIT_LOG = """query($filter: AuditLogFilter!) { auditLog(filter: $filter) {
  nodes { action by { id } slot { id } campaign { id } edits { field before after } }
} }"""
CREATE_SLOT = """mutation($input: CreateSlotInput!) { createSlot(input: $input) {
  __typename ... on Slot { id campaign { id } } ... on InvalidInput { fields { field } }
} }"""
DELETE_CAMPAIGN = """mutation($id: ID!) { deleteCampaign(campaignId: $id) {
  __typename ... on CampaignDeleted { campaignId } ... on Refusal { code }
  ... on CampaignInUse { published hasSlots }
} }"""
PAST = {"startTime": "2024-05-05T18:00:00Z", "endTime": "2024-05-05T19:00:00Z"}


def deleted(*slot_ids: str) -> Json:
    """Return the result of a deletion of these slots."""
    return {"__typename": "SlotsDeleted", "slotIds": [*slot_ids]}


async def newest_entry(organizer: BookingClient, **audit_filter: Any) -> Json:
    """Return the newest entry of the audit log."""
    found = await organizer.execute(AUDIT_LOG, filter=audit_filter)
    entry: Json = found["nodes"][0]
    return entry


async def test_a_draft_is_not_cancelled_but_can_be_deleted(clients: Three) -> None:
    ada, _, organizer = clients
    slot_id = await organizer.add_slot(draft=True)
    cancelled = await cancel_series(organizer, {"id": slot_id}, "THIS")
    assert cancelled["__typename"] == "SlotNotPublished"
    assert await ada.execute(NODE, id=slot_id) is None
    assert await organizer.execute(NODE, id=slot_id) == {"id": slot_id}
    assert await organizer.delete_slot(slot_id) == deleted(slot_id)
    assert await organizer.execute(NODE, id=slot_id) is None
    again = {"__typename": "SlotNotFound", "code": "SLOT_NOT_FOUND", "slotId": slot_id}
    assert await organizer.delete_slot(slot_id) == again


async def test_a_deleted_slot_exists_for_nobody_and_frees_its_resource(clients: Three) -> None:
    ada, _, organizer = clients
    room = {"resource": f"Room {secrets.token_hex(4)}"}
    slot_id = await organizer.add_slot(**room)
    assert await organizer.delete_slot(slot_id) == deleted(slot_id)
    assert (await ada.book_slot(slot_id))["code"] == "SLOT_NOT_FOUND"
    assert (await ada.join(slot_id))["code"] == "SLOT_NOT_FOUND"
    assert await organizer.add_slot(**room) != slot_id


async def test_the_audit_log_shows_what_was_deleted(clients: Three) -> None:
    _, _, organizer = clients
    campaign_id = await create_campaign(organizer, name="Spring", published=False)
    slot_id = await organizer.add_slot(title="Yoga", campaignId=campaign_id)
    await organizer.delete_slot(slot_id)
    for audit_filter in ({"slotId": slot_id}, {"campaignId": campaign_id}):
        entry = await newest_entry(organizer, **audit_filter)
        assert (entry["action"], entry["slot"]) == ("SLOT_DELETED", None)
        assert entry["by"]["id"] == await organizer.fetch_user_id()
        assert {"field": "title", "before": "Yoga", "after": None} in entry["edits"]
    await organizer.execute(DELETE_CAMPAIGN, id=campaign_id)
    entry = await newest_entry(organizer, campaignId=campaign_id)
    assert (entry["action"], entry["campaign"]) == ("CAMPAIGN_DELETED", None)
    assert {"field": "name", "before": "Spring", "after": None} in entry["edits"]


async def test_subscribers_see_a_deleted_slot_as_cancelled(clients: Three, two_apps: Pair) -> None:
    _, _, organizer = clients
    slot_id = await organizer.add_slot()
    async with open_websocket(two_apps[0]) as watcher:
        await watcher.subscribe("1", WATCH_AVAILABILITY, slots=[slot_id])
        first = await watcher.next_result()
        await organizer.delete_slot(slot_id)
        last = await watcher.next_result()
    assert (first["status"], last["status"]) == ("PUBLISHED", "CANCELLED")
    assert last["version"] > first["version"]


async def test_a_key_of_a_deleted_slot_and_campaign_returns_the_slot_as_it_was_created(
    clients: Three,
) -> None:
    _, _, organizer = clients
    campaign_id = await create_campaign(organizer, published=False)
    times = {"startTime": "2041-05-05T18:00:00Z", "endTime": "2041-05-05T19:00:00Z"}
    fields = {"title": "Yoga", "campaignId": campaign_id, "idempotencyKey": secrets.token_hex(8)}
    created = await organizer.execute(CREATE_SLOT, input={**fields, **times})
    await organizer.delete_slot(created["id"])
    assert (await organizer.execute(CREATE_SLOT, input={**fields, **times})) == created
    assert (await organizer.execute(DELETE_CAMPAIGN, id=campaign_id))["campaignId"] == campaign_id
    repeated = await organizer.execute(CREATE_SLOT, input={**fields, **times})
    assert repeated == {**created, "campaign": None}


async def test_a_campaign_is_deleted_once_it_is_hidden_and_empty(clients: Three) -> None:
    _, _, organizer = clients
    campaign_id = await create_campaign(organizer)
    refused = {"__typename": "CampaignInUse", "code": "CAMPAIGN_IN_USE"}
    in_use = {**refused, "published": True, "hasSlots": False}
    assert await organizer.execute(DELETE_CAMPAIGN, id=campaign_id) == in_use
    hidden_id = await create_campaign(organizer, published=False)
    slot_id = await organizer.add_slot(campaignId=hidden_id)
    in_use = {**refused, "published": False, "hasSlots": True}
    assert await organizer.execute(DELETE_CAMPAIGN, id=hidden_id) == in_use
    await organizer.delete_slot(slot_id)
    done = {"__typename": "CampaignDeleted", "campaignId": hidden_id}
    assert await organizer.execute(DELETE_CAMPAIGN, id=hidden_id) == done
    assert await organizer.execute(NODE, id=hidden_id) is None
    gone = {"__typename": "CampaignNotFound", "code": "CAMPAIGN_NOT_FOUND"}
    assert await organizer.execute(DELETE_CAMPAIGN, id=hidden_id) == gone


async def test_a_slot_in_the_past_is_refused_unless_the_past_is_allowed(clients: Three) -> None:
    _, _, organizer = clients
    fields = {"title": "Old", **PAST}
    refused = await organizer.execute(CREATE_SLOT, input=fields)
    assert refused == {"__typename": "InvalidInput", "fields": [{"field": "endTime"}]}
    allowed = await organizer.execute(CREATE_SLOT, input={**fields, "allowPast": True})
    assert allowed["__typename"] == "Slot"


async def test_a_series_with_a_date_in_the_past_is_refused_and_the_first_one_is_named(
    clients: Three,
) -> None:
    _, _, organizer = clients
    begun = "FREQ=YEARLY;COUNT=5"
    refused = await create_series(organizer, begun, **PAST)
    message = "The slot at 2024-05-05 20:00:00 Europe/Berlin lies in the past."
    assert refused["fields"] == [{"field": "endTime", "message": message}]
    assert len((await create_series(organizer, begun, **PAST, allowPast=True))["slots"]) == 5
