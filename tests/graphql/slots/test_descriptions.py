"""Descriptions of slots and campaigns: texts in Markdown that are read only where selected."""

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.campaigns import campaign_fields
from tests.support.clients.client import GraphQLTestClient, Json, slot_input
from tests.support.clients.series import MONDAY_TIMES
from tests.support.stores.users import create_user_tokens

MARKDOWN = "# Yoga\r\n\n* bring a <b>mat</b> \u00e9 e\u0301 \t\n<script>alert(1)</script>  \n"
CREATE = """mutation($input: CreateSlotInput!) { createSlot(input: $input) {
  ... on Slot { id description version } ... on InvalidInput { fields { field message } }
} }"""
UPDATE = """mutation($input: UpdateSlotInput!) { updateSlot(input: $input) {
  ... on Slot { description version } ... on InvalidInput { fields { field message } }
} }"""
CREATE_SERIES = """mutation($input: CreateSlotSeriesInput!) { createSlotSeries(input: $input) {
  ... on SlotSeriesCreated { slots { description } }
} }"""
BOOK = """mutation($slot: ID!) { bookSlot(input: {slotId: $slot}) {
  ... on Booked { slot { description } }
} }"""
SLOT = "query($slot: ID!) { slot(id: $slot) { description } }"
AUDIT_LOG = """query($slot: ID!) { auditLog(filter: {slotId: $slot}) {
  nodes { edits { field before after } }
} }"""
CREATE_CAMPAIGN = """mutation($input: CreateCampaignInput!) { createCampaign(input: $input) {
  ... on Campaign { id description version } ... on InvalidInput { fields { field message } }
} }"""
UPDATE_CAMPAIGN = """mutation($input: UpdateCampaignInput!) { updateCampaign(input: $input) {
  ... on Campaign { description version }
} }"""


@pytest.fixture
def organizer(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    return GraphQLTestClient(http, app.url, create_user_tokens(app.environment, 0).organizer)


async def create_slot(organizer: GraphQLTestClient, **fields: object) -> Json:
    created: Json = await organizer.execute(CREATE, input={**slot_input(), **fields})
    return created


async def test_a_description_is_stored_exactly_as_it_was_sent(
    organizer: GraphQLTestClient,
) -> None:
    created = await create_slot(organizer, description=MARKDOWN)
    assert created["description"] == MARKDOWN
    assert (await organizer.execute(SLOT, slot=created["id"]))["description"] == MARKDOWN
    booked = await organizer.execute(BOOK, slot=created["id"])
    assert booked["slot"]["description"] == MARKDOWN
    assert (await create_slot(organizer))["description"] is None


async def test_an_edit_changes_removes_or_leaves_the_description(
    organizer: GraphQLTestClient,
) -> None:
    slot_id = (await create_slot(organizer, description="old"))["id"]
    steps: list[tuple[Json, str | None]] = [
        ({"title": "Yoga"}, "old"),
        ({"description": "new"}, "new"),
        ({"description": None}, None),
        ({"description": ""}, ""),
    ]
    for changes, expected in steps:
        edited = await organizer.execute(UPDATE, input={"slotId": slot_id, **changes})
        assert edited["description"] == expected


async def test_each_slot_of_a_series_has_the_description(organizer: GraphQLTestClient) -> None:
    slot = {"title": "Yoga", **MONDAY_TIMES, "description": MARKDOWN}
    fields = {"slot": slot, "rrule": "FREQ=WEEKLY;COUNT=2"}
    created = await organizer.execute(CREATE_SERIES, input=fields)
    assert created["slots"] == [{"description": MARKDOWN}] * 2


@pytest.mark.parametrize("text", ["x" * 10_001, "a\x00b", "\x1b[0m"])
async def test_a_description_that_is_too_long_or_has_control_characters_is_refused(
    organizer: GraphQLTestClient, text: str
) -> None:
    refused = await create_slot(organizer, description=text)
    assert [problem["field"] for problem in refused["fields"]] == ["description"]
    refused = await organizer.execute(
        CREATE_CAMPAIGN, input={**campaign_fields(), "description": text}
    )
    assert [problem["field"] for problem in refused["fields"]] == ["description"]
    longest = await create_slot(organizer, description="x" * 10_000)
    assert len(longest["description"]) == 10_000


async def test_the_audit_log_has_the_beginning_of_a_new_description(
    organizer: GraphQLTestClient,
) -> None:
    slot_id = (await create_slot(organizer))["id"]
    await organizer.execute(UPDATE, input={"slotId": slot_id, "description": "x" * 300})
    entries = (await organizer.execute(AUDIT_LOG, slot=slot_id))["nodes"]
    assert {"field": "description", "before": None, "after": "x" * 200} in entries[0]["edits"]


async def test_a_campaign_has_a_description_that_an_edit_changes_or_removes(
    organizer: GraphQLTestClient,
) -> None:
    created = await organizer.execute(
        CREATE_CAMPAIGN, input={**campaign_fields(), "description": MARKDOWN}
    )
    assert created["description"] == MARKDOWN
    steps: list[tuple[Json, str | None]] = [
        ({"name": "Autumn"}, MARKDOWN),
        ({"description": "new"}, "new"),
        ({"description": None}, None),
    ]
    for version, (changes, expected) in enumerate(steps, start=2):
        edited = await organizer.execute(
            UPDATE_CAMPAIGN, input={"campaignId": created["id"], **changes}
        )
        assert edited == {"description": expected, "version": version}
