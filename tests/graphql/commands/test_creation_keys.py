"""Idempotency keys of what is created: one slot, series, campaign or team per key."""

import json
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import httpx
import pytest

from tests.support.apps.processes import AppProcess, Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import campaign_fields
from tests.support.clients.client import Json
from tests.support.clients.series import MONDAY_TIMES
from tests.support.stores.empty_database import stored_database
from tests.support.stores.users import create_user_tokens
from tests.support.transport.simultaneous_requests import send_simultaneously


def document(mutation: str, created_fields: str) -> str:
    """Return the document of a mutation that creates something."""
    input_type = f"{mutation[0].upper()}{mutation[1:]}Input"
    return f"""mutation($input: {input_type}!) {{ {mutation}(input: $input) {{
      __typename {created_fields}
      ... on Refusal {{ code }} ... on KeyReused {{ idempotencyKey }}
    }} }}"""


@dataclass(frozen=True)
class Creation:
    """A mutation that creates something with a name, its input, and where it is stored."""

    document: str
    input: Callable[[str], Json]
    collection: str
    name_field: str
    created_type: str
    documents_created: int = 1

    def count(self, app: AppProcess, name: str) -> int:
        """Return how many of this name were created."""
        stored = stored_database(app.environment["SLOTLOCK_MONGO_URL"])[self.collection]
        found = stored.count_documents({self.name_field: name})
        found, rest = divmod(found, self.documents_created)
        assert not rest
        return found


SLOT = Creation(
    document("createSlot", "... on Slot { id title startTime version }"),
    lambda name: {"title": name, **MONDAY_TIMES},
    "slots",
    "title",
    "Slot",
)
SERIES = Creation(
    document("createSlotSeries", "... on SlotSeriesCreated { seriesId slots { id startTime } }"),
    lambda name: {"slot": {"title": name, **MONDAY_TIMES}, "rrule": "FREQ=WEEKLY;COUNT=4"},
    "slots",
    "title",
    "SlotSeriesCreated",
    documents_created=4,
)
CAMPAIGN = Creation(
    document("createCampaign", "... on Campaign { id name opensAt }"),
    lambda name: campaign_fields(name=name),
    "campaigns",
    "name",
    "Campaign",
)
TEAM = Creation(
    document("createTeam", "... on Team { id name members { user { id } } }"),
    lambda name: {"name": name},
    "teams",
    "name",
    "Team",
)
CREATIONS = {"slot": SLOT, "series": SERIES, "campaign": CAMPAIGN, "team": TEAM}


@pytest.fixture(params=CREATIONS)
def creation(request: pytest.FixtureRequest) -> Creation:
    """Return each mutation that creates something."""
    return CREATIONS[request.param]


@pytest.fixture
def other_organizer(two_apps: Pair, http: httpx.AsyncClient) -> BookingClient:
    """Return an organizer at the second process."""
    return BookingClient(
        http, two_apps[1].url, create_user_tokens(two_apps[1].environment, 0).organizer
    )


def new_name() -> str:
    """Return a name that nothing has, which also serves as a key."""
    return secrets.token_hex(8)


async def test_a_repeated_request_returns_what_the_first_created_and_creates_nothing(
    creation: Creation, organizer: BookingClient, two_apps: Pair
) -> None:
    name = new_name()
    fields = {**creation.input(name), "idempotencyKey": new_name()}
    first = await organizer.execute(creation.document, input=fields)
    assert first["__typename"] == creation.created_type
    there = BookingClient(organizer.http, two_apps[1].url, organizer.token)
    for client in (organizer, there):
        assert await client.execute(creation.document, input=fields) == first
    assert creation.count(two_apps[0], name) == 1


async def test_concurrent_requests_of_one_key_create_one_and_return_the_same(
    creation: Creation, organizer: BookingClient, two_apps: Pair
) -> None:
    name = new_name()
    variables = {"input": {**creation.input(name), "idempotencyKey": new_name()}}
    calls = [
        (two_apps[i % 2].url, organizer.token or "", creation.document, variables)
        for i in range(10)
    ]
    responses = {json.dumps(each) for each in await send_simultaneously(calls)}
    assert [json.loads(each)["__typename"] for each in responses] == [creation.created_type]
    assert creation.count(two_apps[0], name) == 1


async def test_control_without_a_key_a_repeated_request_creates_another(
    creation: Creation, organizer: BookingClient, two_apps: Pair
) -> None:
    name = new_name()
    for _ in range(2):
        created = await organizer.execute(creation.document, input=creation.input(name))
        assert created["__typename"] == creation.created_type
    assert creation.count(two_apps[0], name) == 2


async def test_a_key_with_another_input_is_refused(
    creation: Creation, organizer: BookingClient, two_apps: Pair
) -> None:
    key, other_name = new_name(), new_name()
    fields = {**creation.input(new_name()), "idempotencyKey": key}
    assert "code" not in await organizer.execute(creation.document, input=fields)
    other = {**creation.input(other_name), "idempotencyKey": key}
    assert await organizer.execute(creation.document, input=other) == {
        "__typename": "KeyReused",
        "code": "KEY_REUSED",
        "idempotencyKey": key,
    }
    assert creation.count(two_apps[0], other_name) == 0


async def test_two_inputs_with_one_key_at_once_create_one(
    creation: Creation, organizer: BookingClient, two_apps: Pair
) -> None:
    key, names = new_name(), (new_name(), new_name())
    calls = [
        (
            app.url,
            organizer.token or "",
            creation.document,
            {"input": {**creation.input(name), "idempotencyKey": key}},
        )
        for app, name in zip(two_apps, names, strict=True)
    ]
    counts = Counter(each["__typename"] for each in await send_simultaneously(calls))
    assert counts == {creation.created_type: 1, "KeyReused": 1}
    assert sum(creation.count(two_apps[0], name) for name in names) == 1


async def test_the_same_key_of_another_user_is_another_request(
    creation: Creation, organizer: BookingClient, other_organizer: BookingClient, two_apps: Pair
) -> None:
    name = new_name()
    fields = {**creation.input(name), "idempotencyKey": new_name()}
    for user in (organizer, other_organizer):
        created = await user.execute(creation.document, input=fields)
        assert created["__typename"] == creation.created_type
    assert creation.count(two_apps[0], name) == 2


async def test_a_key_belongs_to_one_mutation(organizer: BookingClient) -> None:
    key = new_name()
    for creation in CREATIONS.values():
        fields = {**creation.input(new_name()), "idempotencyKey": key}
        created = await organizer.execute(creation.document, input=fields)
        assert created["__typename"] == creation.created_type


async def test_a_refusal_uses_up_no_key(creation: Creation, organizer: BookingClient) -> None:
    key = new_name()
    invalid = {**creation.input(""), "idempotencyKey": key}
    refused = await organizer.execute(creation.document, input=invalid)
    assert refused["__typename"] == "InvalidInput"
    valid = {**creation.input(new_name()), "idempotencyKey": key}
    created = await organizer.execute(creation.document, input=valid)
    assert created["__typename"] == creation.created_type


@pytest.mark.parametrize("creation", [SLOT, SERIES], ids=["slot", "series"])
async def test_concurrent_requests_do_not_take_their_own_slot_for_a_conflict(
    creation: Creation, organizer: BookingClient, two_apps: Pair
) -> None:
    for _ in range(5):
        name, resource = new_name(), {"resource": new_name()}
        await organizer.import_resources(resource["resource"])
        fields = creation.input(name)
        slot = {"slot": {**fields["slot"], **resource}} if creation is SERIES else resource
        variables = {"input": {**fields, **slot, "idempotencyKey": new_name()}}
        calls = [
            (two_apps[i % 2].url, organizer.token or "", creation.document, variables)
            for i in range(6)
        ]
        responses = {json.dumps(each) for each in await send_simultaneously(calls)}
        assert [json.loads(each)["__typename"] for each in responses] == [creation.created_type]
        assert creation.count(two_apps[0], name) == 1


async def test_a_repeated_series_names_the_dates_that_the_first_request_skipped(
    organizer: BookingClient,
) -> None:
    resource = new_name()
    taken = {"startTime": "2031-03-24T09:30:00+01:00", "endTime": "2031-03-24T11:00:00+01:00"}
    other_id = await organizer.add_slot(resource=resource, **taken)
    created = "slots { id } conflicts { meeting { startTime } other { id } }"
    fields = {
        "slot": {"title": new_name(), "resource": resource, **MONDAY_TIMES},
        "rrule": "FREQ=WEEKLY;COUNT=3",
        "onConflict": "SKIP_CONFLICTS",
        "idempotencyKey": new_name(),
    }
    text = document("createSlotSeries", f"... on SlotSeriesCreated {{ {created} }}")
    first = await organizer.execute(text, input=fields)
    assert len(first["slots"]) == 2
    assert [each["other"]["id"] for each in first["conflicts"]] == [other_id]
    assert await organizer.execute(text, input=fields) == first


async def test_the_key_of_a_series_belongs_to_the_series(organizer: BookingClient) -> None:
    fields = SERIES.input(new_name())
    fields["slot"]["idempotencyKey"] = new_name()
    assert await organizer.error_code(SERIES.document, input=fields) == "BAD_USER_INPUT"


async def test_an_invalid_key_creates_nothing(
    creation: Creation, organizer: BookingClient, two_apps: Pair
) -> None:
    name = new_name()
    for key in ("", "x" * 256, "two\nlines"):
        fields = {**creation.input(name), "idempotencyKey": key}
        assert await organizer.error_code(creation.document, input=fields) == "BAD_USER_INPUT"
    assert creation.count(two_apps[0], name) == 0
