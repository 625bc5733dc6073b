"""`node` and `nodes` return each object to the users who may see it, and to no others."""

import secrets
from typing import cast

import httpx
import pytest
from graphql import GraphQLInterfaceType, GraphQLNamedType, GraphQLObjectType

from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import AppProcess
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.fixtures import Three
from tests.support.clients.series import create_series
from tests.support.queue.documents import REQUEST_BOOKING

NODE = "query($id: ID!) { node(id: $id) { __typename id } }"
CREATE_RESOURCE = """mutation($name: String!) {
  createResource(input: {name: $name, kind: ROOM}) { ... on Resource { id } }
}"""
CREATE_HOLIDAYS = """mutation($name: String!) {
  createHolidayList(input: {name: $name, holidays: [{first: "2031-05-01"}]}) {
    ... on HolidayList { id }
  }
}"""
CREATE_WEBHOOK = """mutation($campaignId: ID!) { createWebhook(input: {
  url: "https://receiver.test/", events: [BOOKING_CONFIRMED], campaignId: $campaignId
}) { ... on WebhookWithSecret { webhook { id } } } }"""
NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }"
PUBLIC_TYPES = ("Slot", "SlotSeries", "Campaign")
PRIVATE_TYPES = ("Booking", "User", "Team", "Ticket", "OpenSession", "WaitlistEntry")
ORGANIZER_TYPES = ("Resource", "HolidayList", "Webhook")
MALFORMED_IDS = ("", "slot_", "waitlistEntry_" + "0" * 24, "\u0000")


@pytest.fixture
async def ids(clients: Three) -> Json:
    """Return the id of one object of every type, by type."""
    ada, eve, organizer = clients
    slots = [await organizer.add_slot() for _ in range(3)]
    await eve.book_slot(slots[2])
    campaign_id = await create_campaign(organizer)
    created = await organizer.execute(CREATE_WEBHOOK, campaignId=campaign_id)
    ticket = await ada.execute(REQUEST_BOOKING, input={"slotId": slots[1]})
    return {
        "Slot": slots[0],
        "SlotSeries": (await create_series(organizer))["seriesId"],
        "Booking": (await ada.book_slot(slots[0]))["booking"]["id"],
        "User": await ada.fetch_user_id(),
        "Campaign": campaign_id,
        "Team": await ada.create_team_with(),
        "Ticket": ticket["id"],
        "WaitlistEntry": (await ada.join(slots[2]))["entry"]["id"],
        "OpenSession": (await ada.execute("{ mySessions { id } }"))[0]["id"],
        "Webhook": created["webhook"]["id"],
        "HolidayList": (await organizer.execute(CREATE_HOLIDAYS, name=secrets.token_hex(8)))["id"],
        "Resource": (await organizer.execute(CREATE_RESOURCE, name=secrets.token_hex(8)))["id"],
    }


def has_id(type_: GraphQLNamedType) -> bool:
    """Return whether a type is one of objects with an id."""
    return isinstance(type_, GraphQLObjectType) and "id" in type_.fields


async def fetch_nodes(client: GraphQLTestClient, ids: list[str]) -> list[Json | str | None]:
    """Return the result for each id: an object, null, or the code of its error."""
    response = await client.send(NODES, ids=ids)
    found: list[Json | str | None] = response["data"]["nodes"]
    for error in response.get("errors", []):
        field, index = error["path"]
        assert (field, found[index]) == ("nodes", None)
        found[index] = error["extensions"]["code"]
    return found


async def test_objects_come_in_the_order_of_their_ids(clients: Three, ids: Json) -> None:
    types = executable_schema.get_possible_types(
        cast("GraphQLInterfaceType", executable_schema.type_map["Node"])
    )
    for_members = (*PUBLIC_TYPES, *PRIVATE_TYPES)
    assert {*ids} == {*for_members, *ORGANIZER_TYPES} == {type_.name for type_ in types}
    with_id = {name for name, type_ in executable_schema.type_map.items() if has_id(type_)}
    # An entry of the outbox has the id that `slotlock outbox retry` takes, and a provider of
    # sign-ins that of the file which names it. Only their user sees identities.
    assert with_id - {"OutboxEntry", "SignInProvider", "SignInIdentity"} == {*ids}
    shown = [
        {"__typename": name, "id": id_} if name in for_members else None
        for name, id_ in ids.items()
    ]
    found = await fetch_nodes(clients[0], [*MALFORMED_IDS, *ids.values()])
    assert found == [None] * len(MALFORMED_IDS) + shown
    assert await fetch_nodes(clients[0], [*reversed(ids.values())]) == [*reversed(shown)]


async def test_private_objects_of_others_are_null(clients: Three, ids: Json) -> None:
    found = await fetch_nodes(clients[1], [*ids.values()])
    assert [name for name, node in zip(ids, found, strict=True) if node] == [*PUBLIC_TYPES]
    assert not any(isinstance(node, str) for node in found)


async def test_organizers_see_the_objects_that_only_they_see(clients: Three, ids: Json) -> None:
    requested = {name: ids[name] for name in ORGANIZER_TYPES}
    found = await fetch_nodes(clients[2], [*requested.values()])
    assert found == [{"__typename": name, "id": id_} for name, id_ in requested.items()]


@pytest.mark.parametrize("exists", [True, False])
async def test_anonymous_clients_see_public_objects_and_one_error_for_all_others(
    app: AppProcess, http: httpx.AsyncClient, ids: Json, exists: bool
) -> None:
    """The result does not reveal whether a private object exists."""
    anonymous = GraphQLTestClient(http, app.url)
    requested = (
        ids if exists else ids | {name: ids[name][:-12] + "0" * 12 for name in PRIVATE_TYPES}
    )
    for name, id_ in requested.items():
        shown = {"__typename": name, "id": id_} if name in PUBLIC_TYPES else "UNAUTHENTICATED"
        response = await anonymous.send(NODE, id=id_)
        code = response["errors"][0]["extensions"]["code"] if "errors" in response else None
        assert (response["data"]["node"] or code) == shown
        found = await fetch_nodes(anonymous, [id_, *MALFORMED_IDS])
        assert found == [shown, *[None] * len(MALFORMED_IDS)]
    found = await fetch_nodes(anonymous, [*requested.values()])
    objects = [name for name, node in zip(requested, found, strict=True) if isinstance(node, dict)]
    assert objects == [*PUBLIC_TYPES]
    assert found.count("UNAUTHENTICATED") == 1


async def test_an_invalid_token_is_rejected_even_for_public_objects(
    app: AppProcess, http: httpx.AsyncClient, ids: Json
) -> None:
    client = GraphQLTestClient(http, app.url, "no.such.token")
    found = await fetch_nodes(client, [*ids.values()])
    assert found == ["UNAUTHENTICATED", *[None] * (len(ids) - 1)]
