"""Scalars of our own: what is none of them is the caller's mistake, however it is sent."""

import json

import httpx
import pytest

from slotlock.graphql.core.scalars import format_time, parse_time
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import create_booking_clients
from tests.support.clients.client import GraphQLTestClient
from tests.support.clients.teams import CREATE_TEAM, INVITE_TO_TEAM

COURSE = '{title: "A", timetable: {first: %s, last: "2030-02-01", weekly: [%s]}}'
WEEKLY = '{weekday: MONDAY, startTime: %s, endTime: "15:00"}'
SLOT = (
    '{title: "A", startTime: "2030-01-31T14:00:00Z", endTime: "2030-01-31T15:00:00Z", timeZone: %s}'
)
CREATE = "mutation%s { createSlot(input: %s) { __typename } }"
# Where each of them can be sent by anybody; %s twice: a declaration, and the value.
USES = {
    "DateTime": ("query%s { slots(filter: {startsFrom: %s}) { nodes { id } } }", "DateTime!"),
    "TimeZone": (CREATE % ("%s", SLOT), "TimeZone!"),
    "Date": (CREATE % ("%s", COURSE % ("%s", "")), "Date!"),
    "LocalTime": (CREATE % ("%s", COURSE % ('"2030-01-31"', WEEKLY)), "LocalTime!"),
    "EmailAddress": (
        'mutation%s { login(input: {email: %s, password: ""}) { __typename } }',
        "EmailAddress!",
    ),
}
NO_TEXTS = ["7", "-7", "1.5", "1e400", "9" * 100, "true", "UTC", "[]", "{a: 1}"]
GOOD = {
    "DateTime": ["2030-01-31T14:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"],
    "TimeZone": ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"],
    "Date": ["2030-01-31", "2032-02-29", "0001-01-01", "9999-12-31"],
    "LocalTime": ["00:00", "23:59:59"],
    "EmailAddress": ["ada@example.org", "no address", "", "é" * 1_000],
}
BAD_TIMES = [
    "", "2030", "2030-01-31", "14:00:00Z", "1896098400", "2030-01-31T14:00:00", "20300131T140000Z",
    "2030-01-31T14:00Z", "2030-01-31T14:00:00+0100", "2030-01-31T14:00:00+01",
    "2030-01-31T14:00:00 +01:00", "2030-01-31T14:00:00+1:00", "2030-01-31T14:00:00UTC",
    "2030-01-31T14:00:00[Europe/Berlin]", "2030-W05-4T14:00:00Z", "2030-031T14:00:00Z",
    # What no clock and no calendar shows.
    "2030-02-29T14:00:00Z", "2030-13-01T14:00:00Z", "2030-00-01T14:00:00Z", "2030-01-00T14:00:00Z",
    "2030-01-31T24:00:00Z", "2030-01-31T14:60:00Z", "2016-12-31T23:59:60Z",
    "2030-01-31T14:00:00+24:00", "2030-01-31T14:00:00+14:60", "2030-01-31T14:00:00-99:99",
    # Over the edge, by itself or by the offset.
    "0000-01-01T00:00:00Z", "10000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z",
    "+2030-01-31T14:00:00Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
    # Fractions, spaces, and digits of other scripts.
    "2030-01-31T14:00:00.Z", "2030-01-31T14:00:00,5Z", "2030-01-31T14:00:00.1234567890Z",
    "2030-01-31T14:00:00.1.2Z", " 2030-01-31T14:00:00Z", "2030-01-31T14:00:00Z ",
    "2030-01-31T14:00:00Z\n", "2030-01-31T14:00:00Z\u0000", "2030-01-31\u00a014:00:00Z",
    "٢٠٣٠-01-31T14:00:00Z", "2030-01-31T14:00:00.\u0661Z",
    "\uff12\uff10\uff13\uff10-01-31T14:00:00Z",
    "2030\u201301\u201331T14:00:00Z", "2030-01-31T14:00:00\u221201:00",
]  # fmt: skip
BAD = {
    "DateTime": BAD_TIMES,
    "TimeZone": ["", "utc", "Europe/berlin", "Europe/Berlin ", "+01:00", "Mars/Olympus",
                 "../../../etc/passwd", "Europe", "localtime", "Factory", "posix/UTC",
                 "Europe/Berlin\u0000", "\uff35TC"],
    "Date": ["", "2030-1-31", "2030-02-29", "20300131", "2030-01-31T00:00:00Z", "0000-01-01",
             "10000-01-01", " 2030-01-31", "2030-01-31\n", "٢٠٣٠-01-31", "2030/01/31",
             "2030-W05-4"],
    "LocalTime": ["", "14", "1400", "24:00", "14:60", "14:00:60", "14:00:00.5", "14:00Z",
                  "14:00+01:00", "2:00", " 14:00", "14:00\n", "١٤:00"],
}  # fmt: skip
TIMES = "($x: DateTime!, $y: DateTime!)"
DATED = [
    f"query{TIMES} {{ slots(filter: {{startsFrom: $x, startsBefore: $y}}) {{ nodes {{ id }} }} }}",
    f"""query{TIMES} {{
      auditLog(filter: {{actions: [BANNED], from: $x, until: $y}}) {{ nodes {{ at }} }} }}""",
    f"""mutation{TIMES} {{ createCampaign(input: {{name: "A", opensAt: $x, closesAt: $y,
      cancelUntil: $y}}) {{ __typename ... on Campaign {{ opensAt closesAt state }} }} }}""",
    *(
        f"""mutation{TIMES} {{ createSlot(input: {{title: "A", startTime: $x, endTime: $y,
          timeZone: "{zone}", draft: true, cancelCutoffMinutes: 10000}}) {{
            __typename ... on Slot {{ startTime endTime }} }} }}"""
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago")
    ),
]
EDGES = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z")


@pytest.fixture
def anonymous(app: AppProcess, http: httpx.AsyncClient) -> GraphQLTestClient:
    return GraphQLTestClient(http, app.url)


async def codes(client: GraphQLTestClient, query: str, **variables: object) -> set[str]:
    """The codes of all errors."""
    answer = await client.send(query, **variables)
    return {error["extensions"]["code"] for error in answer.get("errors", ())}


def as_literal(name: str, literal: str) -> str:
    return USES[name][0] % ("", literal)


def as_variable(name: str) -> str:
    text, type_ = USES[name]
    return text % (f"($x: {type_})", "$x")


@pytest.mark.parametrize(("name", "value"), [(n, v) for n in GOOD for v in GOOD[n]])
async def test_what_is_one_is_taken_as_a_literal_and_as_a_variable(
    anonymous: GraphQLTestClient, name: str, value: str
) -> None:
    literal = as_literal(name, json.dumps(value, ensure_ascii=False))
    for told in (
        await codes(anonymous, literal),
        await codes(anonymous, as_variable(name), x=value),
    ):
        assert told <= {"UNAUTHENTICATED"}


@pytest.mark.parametrize("name", BAD)
async def test_a_text_that_is_none_is_refused(anonymous: GraphQLTestClient, name: str) -> None:
    for value in BAD[name]:
        assert await codes(anonymous, as_variable(name), x=value) == {"BAD_USER_INPUT"}, value
        literal = as_literal(name, json.dumps(value))
        assert await codes(anonymous, literal) == {"GRAPHQL_VALIDATION_FAILED"}, value


@pytest.mark.parametrize("name", USES)
async def test_what_is_no_text_is_refused(anonymous: GraphQLTestClient, name: str) -> None:
    for value in (7, -7, 1.5, 10**30, True, None, [], {}, {"$gt": ""}, ["2030-01-31"]):
        assert await codes(anonymous, as_variable(name), x=value) == {"BAD_USER_INPUT"}, value
    for literal in NO_TEXTS:
        told = await codes(anonymous, as_literal(name, literal))
        assert told == {"GRAPHQL_VALIDATION_FAILED"}, literal


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        ("2030-01-31T14:00:00+01:00", "2030-01-31T13:00:00.000Z"),
        ("2030-01-31t14:00:00z", "2030-01-31T14:00:00.000Z"),
        ("2030-01-31 14:00:00-00:00", "2030-01-31T14:00:00.000Z"),
        ("2030-01-31T14:00:00+23:59", "2030-01-30T14:01:00.000Z"),
        ("2030-01-31T14:00:00.1Z", "2030-01-31T14:00:00.100Z"),
        ("2030-01-31T14:00:00.999999999Z", "2030-01-31T14:00:00.999Z"),
        ("0001-01-01T00:00:00-00:01", "0001-01-01T00:01:00.000Z"),
        ("9999-12-31T23:59:59.999999+00:01", "9999-12-31T23:58:59.999Z"),
    ],
)
def test_a_time_is_answered_in_utc_to_the_millisecond(sent: str, answered: str) -> None:
    assert format_time(parse_time(sent)) == answered
    assert format_time(parse_time(answered)) == answered


def test_whoever_wants_to_know_what_they_are_finds_it_specified() -> None:
    told = {
        name: getattr(executable_schema.type_map[name], "specified_by_url", None) for name in USES
    }
    assert {name for name, url in told.items() if url} == USES.keys() - {"LocalTime"}
    assert all(url.startswith("https://") for url in told.values() if url)


async def test_an_address_is_answered_in_one_form_however_it_was_sent(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    (ada,), _ = await create_booking_clients(http, 1, app)
    team = (await ada.execute(CREATE_TEAM, name="Relay"))["id"]
    invited = await ada.execute(INVITE_TO_TEAM, team=team, email=" E\u0301va@B\u00dcCHER.example ")
    assert [i["email"] for i in invited["invitations"]] == ["\u00e9va@b\u00fccher.example"]


async def test_times_at_the_edge_of_the_calendar_break_nothing(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    _, organiser = await create_booking_clients(http, 0, app)
    for query in DATED:
        for edge in EDGES:
            for later in EDGES[EDGES.index(edge) :]:
                answer = await organiser.send(query, x=edge, y=later)
                assert "errors" not in answer, (query, edge, later, answer)
