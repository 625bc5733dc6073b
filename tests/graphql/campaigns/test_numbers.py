"""Numbers of slots: one of each in a campaign, also of requests at the same time."""

import asyncio

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import GraphQLTestClient, Json, slot_input, times_in
from tests.support.clients.series import MONDAY_TIMES

SAVED = "... on Slot { id number } ... on InvalidInput { fields { field code } }"
CREATE = f"mutation($input: CreateSlotInput!) {{ createSlot(input: $input) {{ {SAVED} }} }}"
UPDATE = f"mutation($input: UpdateSlotInput!) {{ updateSlot(input: $input) {{ {SAVED} }} }}"
CREATE_SERIES = """mutation($input: CreateSlotSeriesInput!) { createSlotSeries(input: $input) {
  ... on InvalidInput { fields { field code } }
} }"""
COPY = """mutation($input: CopyCampaignInput!) { copyCampaign(input: $input) {
  ... on CampaignCopy { campaign { id } }
} }"""
NUMBERS = """query($filter: SlotsFilter) { slots(filter: $filter, first: 100) {
  nodes { number }
} }"""
TAKEN = {"fields": [{"field": "number", "code": "NUMBER_TAKEN"}]}


async def create(organizer: GraphQLTestClient, campaign_id: str | None, **fields: object) -> Json:
    """Create a slot of a campaign; return it or the problems."""
    values = {**slot_input(), "campaignId": campaign_id, **fields}
    created: Json = await organizer.execute(CREATE, input=values)
    return created


async def update(organizer: GraphQLTestClient, slot_id: str, **fields: object) -> Json:
    """Change a slot; return it or the problems."""
    updated: Json = await organizer.execute(UPDATE, input={"slotId": slot_id, **fields})
    return updated


async def test_a_number_is_of_one_slot_of_a_campaign_until_it_is_cancelled(
    organizer: BookingClient,
) -> None:
    one, other = [await create_campaign(organizer) for _ in range(2)]
    first = await create(organizer, one, number=" R-2 ")
    assert first["number"] == "R-2"
    second = await create(organizer, one, number="R-3")
    assert await create(organizer, one, number="R-2", draft=True) == TAKEN
    assert await update(organizer, second["id"], number="R-2") == TAKEN
    for elsewhere in (other, None, None):
        assert (await create(organizer, elsewhere, number="R-2"))["number"] == "R-2"
    assert (await update(organizer, first["id"], number="R-2", capacity=3))["number"] == "R-2"
    await organizer.cancel_slot(first["id"])
    assert (await update(organizer, second["id"], number="R-2"))["number"] == "R-2"
    found = await organizer.execute(NUMBERS, filter={"campaignId": one, "text": "r-2"})
    assert found["nodes"] == [{"number": "R-2"}]


async def test_of_requests_for_one_number_one_gets_it(
    two_apps: Pair, organizer: BookingClient
) -> None:
    campaign_id = await create_campaign(organizer)
    slot_ids = [(await create(organizer, campaign_id))["id"] for _ in range(3)]
    outcomes = await asyncio.gather(
        *(update(organizer, slot_id, number="7") for slot_id in slot_ids),
        *(create(organizer, campaign_id, number="7") for _ in range(3)),
    )
    assert sum(outcome.get("number") == "7" for outcome in outcomes) == 1
    found = await organizer.execute(NUMBERS, filter={"campaignId": campaign_id, "text": "7"})
    assert found["nodes"] == [{"number": "7"}]


async def test_slots_of_a_series_get_no_number_together_and_a_copy_has_those_of_the_campaign(
    organizer: BookingClient,
) -> None:
    campaign_id = await create_campaign(organizer)
    slot = {"title": "Yoga", **MONDAY_TIMES, "campaignId": campaign_id, "number": "7"}
    refused = await organizer.execute(
        CREATE_SERIES, input={"slot": slot, "rrule": "FREQ=WEEKLY;COUNT=2"}
    )
    assert refused == {"fields": [{"field": "number", "code": "NUMBER_OF_ONE_SLOT"}]}
    assert (await create(organizer, campaign_id, number="7", **times_in(24 * 7)))["number"] == "7"
    fields = {"campaignId": campaign_id, "name": "Again", "weeks": 52, "dryRun": False}
    copied = (await organizer.execute(COPY, input=fields))["campaign"]["id"]
    found = await organizer.execute(NUMBERS, filter={"campaignId": copied})
    assert found["nodes"] == [{"number": "7"}]
