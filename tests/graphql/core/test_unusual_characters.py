"""No character of a text makes a request fail, and none is stored that some format cannot carry.

The arguments come from the schema, so that the tests cover those of later fields.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import httpx
import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputObjectType,
    GraphQLInputType,
    get_named_type,
    get_nullable_type,
    is_composite_type,
    is_list_type,
    is_required_argument,
    is_required_input_field,
)
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role
from slotlock.graphql.check_in_codes import to_qr_svg
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json
from tests.support.clients.series import create_series
from tests.support.scenarios.led_course import CREATE_LED
from tests.support.stores.empty_database import stored_database
from tests.support.stores.users import auth_for_database, sign_in_new_user

# BSON takes no NUL in a pattern, and XML 1.0 has no form for the noncharacters.
UNUSUAL_TEXTS = ("a\0b", "a\ufffe\uffffb")
UNSTORABLE = {*map(chr, range(0x20)), "\x7f", "\x85", "\ufffe", "\uffff"} - set("\t\n\r")
CREATE_TEAM = 'mutation { createTeam(input: {name: "A"}) { ... on Team { id } } }'
CONCURRENCY = 8
VALUES: Mapping[str, Any] = {
    "Int": 1,
    "Boolean": False,
    "DateTime": "2031-01-06T10:00:00Z",
    "Date": "2031-01-06",
    "LocalTime": "10:00",
    "TimeZone": "Europe/Berlin",
    "EmailAddress": "ada@example.org",
    "String": "text",
}
# A text that is no id names nobody whose guardian the caller is.
EXPECTED_CODES = {"BAD_USER_INPUT", "UNAUTHENTICATED", "FORBIDDEN"}
NO_TEXTS = ("Int", "Boolean")


def valid_value(type_: GraphQLInputType, name: str, ids: Json) -> Any:
    """Return a value of a type, with the required fields of inputs only."""
    nullable = get_nullable_type(type_)
    if is_list_type(nullable):
        return [valid_value(nullable.of_type, name, ids)]
    if isinstance(nullable, GraphQLInputObjectType):
        return {
            key: valid_value(field.type, key, ids)
            for key, field in nullable.fields.items()
            if is_required_input_field(field)
        }
    if isinstance(nullable, GraphQLEnumType):
        return next(iter(nullable.values))
    type_name = get_named_type(nullable).name
    return ids.get(name.removesuffix("s"), "x") if type_name == "ID" else VALUES[type_name]


def with_text_in_each_leaf(
    type_: GraphQLInputType, name: str, text: str, ids: Json
) -> Iterator[Any]:
    """Yield values that are valid but for this text in one leaf, for each leaf that has texts."""
    nullable = get_nullable_type(type_)
    if is_list_type(nullable):
        for value in with_text_in_each_leaf(nullable.of_type, name, text, ids):
            yield [value]
    elif isinstance(nullable, GraphQLInputObjectType):
        valid = valid_value(type_, name, ids)
        for key, field in nullable.fields.items():
            for value in with_text_in_each_leaf(field.type, key, text, ids):
                yield {**valid, key: value}
    elif not isinstance(nullable, GraphQLEnumType) and str(nullable) not in NO_TEXTS:
        yield text


def selection(field: GraphQLField) -> str:
    """Return what makes the resolver read: items of a connection, else the name of the type."""
    type_ = get_named_type(field.type)
    if not is_composite_type(type_):
        return ""
    has_nodes = "nodes" in getattr(type_, "fields", {})
    return "{ __typename nodes { __typename } }" if has_nodes else "{ __typename }"


def operations(keyword: str, text: str, ids: Json) -> Iterator[tuple[str, Json]]:
    """Yield an operation for each leaf of each argument of each root field."""
    root = executable_schema.type_map[keyword.title()]
    for name, field in root.fields.items():  # type: ignore[attr-defined]
        valid = {
            key: valid_value(argument.type, key, {**ids, "id": ids.get(f"{name}Id", ids["slotId"])})
            for key, argument in field.args.items()
            if is_required_argument(argument)
        }
        for key, argument in field.args.items():
            for value in with_text_in_each_leaf(argument.type, key, text, ids):
                variables = {**valid, key: value}
                declared = ", ".join(f"${each}: {field.args[each].type}" for each in variables)
                passed = ", ".join(f"{each}: ${each}" for each in variables)
                yield (
                    f"{keyword}({declared}) {{ {name}({passed}) {selection(field)} }}",
                    variables,
                )


@pytest.fixture
def own_app(servers: EmbeddedServers, log_dir: Path) -> Iterator[AppProcess]:
    """Yield an app of its own: the operations include sign-ins that fail."""
    with forked_app(app_environment(servers, "unusual_texts"), log_dir) as app:
        yield app


async def create_ids(organizer: BookingClient, ada: BookingClient, leader: BookingClient) -> Json:
    """Create one item of each kind; return their ids by the names of arguments.

    The leader can search for those whom they may book in the slot.
    """
    await organizer.execute(CREATE_LED, name="Hall", leader=await leader.fetch_user_id())
    of_led = {"campaignId": await create_campaign(organizer, leaderGroups=["5a"])}
    slot = await organizer.create_slot(capacity=3, resource="Hall", **of_led)
    series = await create_series(organizer)
    team = await ada.execute(CREATE_TEAM)
    resources = await organizer.execute("{ resources(first: 1) { nodes { id } } }")
    return {
        "slotId": slot["id"],
        "bookingId": (await ada.book(slot["id"]))["booking"]["id"],
        "campaignId": await create_campaign(organizer),
        "seriesId": series["seriesId"],
        "resourceId": resources["nodes"][0]["id"],
        "userId": await ada.fetch_user_id(),
        "by": await ada.fetch_user_id(),
        "teamId": team["id"],
    }


def stored_texts(value: Any) -> Iterator[str]:
    """Yield every text of a document."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.items():
            yield from stored_texts(list(item))
    elif isinstance(value, list):
        for each in value:
            yield from stored_texts(each)


async def test_an_unusual_text_in_any_argument_fails_nothing_and_is_stored_only_if_xml_has_it(
    own_app: AppProcess, http: httpx.AsyncClient
) -> None:
    (ada,), organizer = create_booking_clients(http, 1, own_app)
    async with auth_for_database(own_app.environment["SLOTLOCK_MONGO_URL"]) as auth:
        admin = BookingClient(http, own_app.url, await sign_in_new_user(auth, Role.ADMIN))
    ids = await create_ids(organizer, ada, admin)
    limit, unexpected = asyncio.Semaphore(CONCURRENCY), list[tuple[str, Json, Json]]()

    async def send(document: str, variables: Json) -> None:
        async with limit:
            response = await admin.send(document, **variables)
        codes = {each["extensions"]["code"] for each in response.get("errors", ())}
        if not codes <= EXPECTED_CODES:
            unexpected.append((document, variables, response))

    for keyword in ("query", "mutation"):
        sent = [each for text in UNUSUAL_TEXTS for each in operations(keyword, text, ids)]
        await asyncio.gather(*(send(*each) for each in sent))
    assert len(sent) > 300  # the schema has mutations with texts
    assert not unexpected
    assert " ERROR " not in own_app.log
    database = stored_database(own_app.environment["SLOTLOCK_MONGO_URL"])
    stored = (
        (name, text)
        for name in database.list_collection_names()
        for document in database[name].find()
        for text in stored_texts(document)
    )
    assert not [each for each in stored if UNSTORABLE.intersection(each[1])]


# NUL, a byte that is not UTF-8, a noncharacter and a surrogate.
UNUSUAL_PARTS = ("%00", "%FF", "%EF%BF%BF", "%ED%A0%80")
PATHS = (
    *("/exports/slots/PART.csv", "/exports/links/PART", "/calendars/PART.ics"),
    *("/calendars/private/PART.ics", "/calendars/slots/PART.ics", "/personal-data/PART"),
    *("/draws/PART/record", "/draws/x/record?part=PART"),
    *("/readyz?of=PART", "/users/invitations?PART=PART", "/personal-data?PART=PART", "/PART"),
    *("/graphql?query=PART", "/graphql?query={__typename}&operationName=PART"),
    *("/graphql?query={__typename}&variables=PART", "/graphql?PART=PART"),
    "/graphql?query=query($id:ID!){node(id:$id){id}}&variables={%22id%22:%22PART%22}",
)


@pytest.mark.parametrize("part", UNUSUAL_PARTS)
async def test_an_unusual_character_in_an_address_fails_nothing(
    organizer: BookingClient, app: AppProcess, http: httpx.AsyncClient, part: str
) -> None:
    headers = {**organizer.headers, "Accept": "application/json"}
    for path in PATHS:
        response = await http.get(app.url + path.replace("PART", part), headers=headers)
        assert response.status_code < 500, path


@pytest.mark.parametrize("text", [*UNUSUAL_TEXTS, "a\ud800b"])
async def test_an_unusual_character_outside_of_arguments_fails_nothing(
    organizer: BookingClient, app: AppProcess, http: httpx.AsyncClient, text: str
) -> None:
    json_headers = {**organizer.headers, "Content-Type": "application/json"}
    query = "{ __typename }"
    for request in (
        {"query": text},
        {"query": f"{{ node(id: {json.dumps(text)}) {{ id }} }}"},
        {"query": query, "operationName": text},
        {"query": query, "variables": {text: text}, "extensions": {text: text}},
    ):
        body = json.dumps(request)
        response = await http.post(app.url + "/graphql", content=body, headers=json_headers)
        assert response.status_code < 500, request
        assert '"INTERNAL"' not in response.text, request
    file = f"email,name\nada@example.org,{text}\n".encode(errors="surrogatepass")
    csv_headers = {**organizer.headers, "Content-Type": "text/csv"}
    response = await http.post(app.url + "/users/import", content=file, headers=csv_headers)
    assert response.status_code in (400, 422)
    init = {"type": "connection_init", "payload": {"authorization": f"Bearer {text}"}}
    subprotocols = [Subprotocol("graphql-transport-ws")]
    async with connect(app.websocket_url, subprotocols=subprotocols, proxy=None) as connection:
        await connection.send(json.dumps(init))
        with pytest.raises(ConnectionClosed):
            await connection.recv()
    assert connection.close_code in (4400, 4403)


@pytest.mark.parametrize("title", ["a\ufffe\uffffb", "<&>\ufdd0"])
def test_the_svg_of_a_qr_code_is_xml_although_noncharacters_are_stored(title: str) -> None:
    fromstring(to_qr_svg("A" * 56, title))  # noqa: S314
