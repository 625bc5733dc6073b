"""Several things by their ids: each is answered or refused by itself."""

from typing import cast

import httpx
import pytest
from graphql import GraphQLInterfaceType

from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.exports import create_open_campaign
from tests.support.queue.tickets import REQUEST_FULL_TICKET

NODE = "query($id: ID!) { node(id: $id) { __typename id } }"
NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }"
PUBLIC, OWN = ("Slot", "Campaign"), ("Booking", "User", "Team", "Ticket", "OpenSession")
MALFORMED = ("", "slot_", "waiting_" + "0" * 48, "\u0000")


@pytest.fixture
async def people(
    app: AppProcess, http: httpx.AsyncClient
) -> tuple[BookingClient, BookingClient, BookingClient]:
    """Somebody with one of everything, somebody else, and an organiser."""
    (ada, eve), organiser = await create_booking_clients(http, 2, app)
    return ada, eve, organiser


@pytest.fixture
async def ids(people: tuple[BookingClient, BookingClient, BookingClient]) -> Json:
    """One of everything that has an id, by its type."""
    ada, _, organiser = people
    slots = [await organiser.add_slot() for _ in range(2)]
    ticket = await ada.execute(REQUEST_FULL_TICKET, input={"slotId": slots[1]})
    return {
        "Slot": slots[0],
        "Booking": (await ada.book_slot(slots[0]))["booking"]["id"],
        "User": await ada.fetch_user_id(),
        "Campaign": await create_open_campaign(organiser),
        "Team": await ada.create_team_with(),
        "Ticket": ticket["id"],
        "OpenSession": (await ada.execute("{ mySessions { id } }"))[0]["id"],
    }


async def told(who: GraphQLTestClient, gids: list[str]) -> list[Json | str | None]:
    """What each id is answered with: the thing, null, or the code of the error in its place."""
    answer = await who.send(NODES, ids=gids)
    found: list[Json | str | None] = answer["data"]["nodes"]
    for error in answer.get("errors", []):
        field, place = error["path"]
        assert (field, found[place]) == ("nodes", None)
        found[place] = error["extensions"]["code"]
    return found


async def test_who_has_one_of_everything_is_told_all_in_order(
    people: tuple[BookingClient, BookingClient, BookingClient], ids: Json
) -> None:
    kinds = executable_schema.get_possible_types(
        cast("GraphQLInterfaceType", executable_schema.type_map["Node"])
    )
    assert {*ids} == {*PUBLIC, *OWN} == {kind.name for kind in kinds}
    shown = [{"__typename": kind, "id": gid} for kind, gid in ids.items()]
    assert await told(people[0], [*MALFORMED, *ids.values()]) == [None] * len(MALFORMED) + shown
    assert await told(people[0], [*reversed(ids.values())]) == [*reversed(shown)]


async def test_what_is_not_ones_own_is_null_without_an_error(
    people: tuple[BookingClient, BookingClient, BookingClient], ids: Json
) -> None:
    found = await told(people[1], [*ids.values()])
    assert [kind for kind, node in zip(ids, found, strict=True) if node] == [*PUBLIC]
    assert not any(isinstance(node, str) for node in found)


@pytest.mark.parametrize("there", [True, False])
async def test_a_visitor_is_told_what_is_public_and_once_to_sign_in_for_the_others(
    app: AppProcess, http: httpx.AsyncClient, ids: Json, there: bool
) -> None:
    nobody = GraphQLTestClient(http, app.url)
    # Whether there is such a thing makes no difference.
    asked = ids if there else ids | {kind: ids[kind][:-12] + "0" * 12 for kind in OWN}
    for kind, gid in asked.items():
        shown = {"__typename": kind, "id": gid} if kind in PUBLIC else "UNAUTHENTICATED"
        alone = await nobody.send(NODE, id=gid)
        code = alone["errors"][0]["extensions"]["code"] if "errors" in alone else None
        assert (alone["data"]["node"] or code) == shown
        assert await told(nobody, [gid, *MALFORMED]) == [shown, *[None] * len(MALFORMED)]
    found = await told(nobody, [*asked.values()])
    assert [kind for kind, node in zip(asked, found, strict=True) if isinstance(node, dict)] == [
        *PUBLIC
    ]
    assert found.count("UNAUTHENTICATED") == 1


async def test_a_token_that_is_no_good_is_told_so(
    app: AppProcess, http: httpx.AsyncClient, ids: Json
) -> None:
    stranger = GraphQLTestClient(http, app.url, "no.such.token")
    assert await told(stranger, [*ids.values()]) == ["UNAUTHENTICATED", *[None] * (len(ids) - 1)]
