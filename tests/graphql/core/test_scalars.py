"""Scalars and periods accept valid values and reject all others, as literals and variables."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from slotlock.graphql.core.scalars import parse_local_time, parse_time
from slotlock.graphql.schema.schema import executable_schema
from slotlock.graphql.times import format_time
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.teams import CREATE_TEAM, INVITE_TO_TEAM

COURSE = '{title: "A", timetable: {first: %s, last: "2030-02-01", weekly: [%s]}}'
WEEKLY = '{weekday: MONDAY, startTime: %s, endTime: "15:00"}'
SLOT = (
    '{title: "A", startTime: "2030-01-31T14:00:00Z", endTime: "2030-01-31T15:00:00Z", timeZone: %s}'
)
CREATE = "mutation%s { createSlot(input: %s) { __typename } }"
# An operation for each scalar that anonymous clients can send: %s is the declaration and the value.
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
NON_STRING_LITERALS = ["7", "-7", "1.5", "1e400", "9" * 100, "true", "UTC", "[]", "{a: 1}"]
VALID = {
    "DateTime": ["2030-01-31T14:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"],
    "TimeZone": ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"],
    "Date": ["2030-01-31", "2032-02-29", "0001-01-01", "9999-12-31"],
    "LocalTime": ["00:00", "23:59:59"],
    "EmailAddress": ["ada@example.org", "no address", "", "é" * 1_000],
}
INVALID_TIMES = [
    "", "2030", "2030-01-31", "14:00:00Z", "1896098400", "2030-01-31T14:00:00", "20300131T140000Z",
    "2030-01-31T14:00Z", "2030-01-31T14:00:00+0100", "2030-01-31T14:00:00+01",
    "2030-01-31T14:00:00 +01:00", "2030-01-31T14:00:00+1:00", "2030-01-31T14:00:00UTC",
    "2030-01-31T14:00:00[Europe/Berlin]", "2030-W05-4T14:00:00Z", "2030-031T14:00:00Z",
    # Times that do not exist.
    "2030-02-29T14:00:00Z", "2030-13-01T14:00:00Z", "2030-00-01T14:00:00Z", "2030-01-00T14:00:00Z",
    "2030-01-31T24:00:00Z", "2030-01-31T14:60:00Z", "2016-12-31T23:59:60Z",
    "2030-01-31T14:00:00+24:00", "2030-01-31T14:00:00+14:60", "2030-01-31T14:00:00-99:99",
    # Outside the years 1 to 9999, some only in UTC.
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
INVALID = {
    "DateTime": INVALID_TIMES,
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
OPERATIONS_WITH_TIMES = [
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
EXTREME_TIMES = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z")
EARLY, LATE = "2031-05-05T09:00:00Z", "2031-05-05T10:00:00Z"
# The names of the beginning and the end, and the query with `%s` in the place of both.
PERIODS = [
    ("startsFrom", "startsBefore", "{ slots(filter: {%s}) { nodes { id } } }"),
    ("meetsFrom", "meetsBefore", "{ slots(filter: {%s}) { nodes { id } } }"),
    ("from", "until", "query($slot: ID!) { slot(id: $slot) { meetings(%s) { startTime } } }"),
    ("from", "until", "{ auditLog(filter: {actions: SLOT_CREATED, %s}) { nodes { at } } }"),
    (
        "from",
        "until",
        "query($campaign: ID!) { campaignStatistics(campaignId: $campaign, timeSeries: {%s}) "
        "{ __typename } }",
    ),
    ("from", "until", "{ freeBusy(resourceIds: [], %s) { isComplete } }"),
]


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_time, "2030-01-31T24:00:00Z"),
        (parse_time, "2030-01-31 24:00:00.000+01:00"),
        (parse_local_time, "24:00"),
        (parse_local_time, "24:00:00"),
    ],
)
def test_the_refusal_of_the_end_of_a_day_names_midnight(
    parse: Callable[[object], object], text: str
) -> None:
    with pytest.raises(ValueError, match="Please use 00:00 of the next day"):
        parse(text)


async def error_codes(client: GraphQLTestClient, query: str, **variables: object) -> set[str]:
    response = await client.send(query, **variables)
    return {error["extensions"]["code"] for error in response.get("errors", ())}


def with_literal(name: str, literal: str) -> str:
    """Return the operation of a scalar with this literal."""
    return USES[name][0] % ("", literal)


def with_variable(name: str) -> str:
    """Return the operation of a scalar with the variable `x`."""
    document, type_ = USES[name]
    return document % (f"($x: {type_})", "$x")


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name in VALID for value in VALID[name]]
)
async def test_valid_values_pass(anonymous: GraphQLTestClient, name: str, value: str) -> None:
    literal = with_literal(name, json.dumps(value, ensure_ascii=False))
    assert await error_codes(anonymous, literal) <= {"UNAUTHENTICATED"}
    assert await error_codes(anonymous, with_variable(name), x=value) <= {"UNAUTHENTICATED"}


@pytest.mark.parametrize("name", INVALID)
async def test_an_invalid_string_is_rejected(anonymous: GraphQLTestClient, name: str) -> None:
    for value in INVALID[name]:
        codes = await error_codes(anonymous, with_variable(name), x=value)
        assert codes == {"BAD_USER_INPUT"}, value
        codes = await error_codes(anonymous, with_literal(name, json.dumps(value)))
        assert codes == {"BAD_USER_INPUT"}, value


@pytest.mark.parametrize("name", USES)
async def test_values_that_are_no_string_fail(anonymous: GraphQLTestClient, name: str) -> None:
    for value in (7, -7, 1.5, 10**30, True, None, [], {}, {"$gt": ""}, ["2030-01-31"]):
        codes = await error_codes(anonymous, with_variable(name), x=value)
        assert codes == {"BAD_USER_INPUT"}, value
    for literal in NON_STRING_LITERALS:
        codes = await error_codes(anonymous, with_literal(name, literal))
        assert codes == {"BAD_USER_INPUT"}, literal


@pytest.mark.parametrize(
    ("sent", "returned"),
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
def test_a_time_is_returned_in_utc_with_milliseconds(sent: str, returned: str) -> None:
    assert format_time(parse_time(sent)) == returned
    assert format_time(parse_time(returned)) == returned


@given(st.datetimes(timezones=st.timezones() | st.just(UTC)))
def test_every_time_is_formatted_as_isoformat_formats_it(instant: datetime) -> None:
    try:
        in_utc = instant.astimezone(UTC)
    except OverflowError:
        assume(False)
    expected = in_utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert format_time(instant) == expected


def test_scalars_with_a_public_specification_link_to_it() -> None:
    urls = {
        name: getattr(executable_schema.type_map[name], "specified_by_url", None) for name in USES
    }
    assert {name for name, url in urls.items() if url} == USES.keys() - {"LocalTime"}
    assert all(url.startswith("https://") for url in urls.values() if url)


async def test_an_email_address_is_returned_in_its_normal_form(
    app: AppProcess, http: httpx.AsyncClient
) -> None:
    (ada,), _ = create_booking_clients(http, 1, app)
    team = (await ada.execute(CREATE_TEAM, name="Relay"))["id"]
    invited = await ada.execute(INVITE_TO_TEAM, team=team, email=" E\u0301va@B\u00dcCHER.example ")
    assert [i["email"] for i in invited["invitations"]] == ["\u00e9va@b\u00fccher.example"]


async def test_the_first_and_the_last_time_are_no_internal_error(organizer: BookingClient) -> None:
    first, last = EXTREME_TIMES
    for query in OPERATIONS_WITH_TIMES:
        assert "errors" not in await organizer.send(query, x=first, y=last), query
        for x in (first, last):  # an empty period may be rejected
            errors = (await organizer.send(query, x=x, y=x)).get("errors", [])
            assert {error["extensions"]["code"] for error in errors} <= {"BAD_USER_INPUT"}, query


async def send(organizer: BookingClient, document: str, begin: str, end: str) -> Json:
    """Send a query with a period, about a new slot or campaign if the query needs one."""
    variables = {}
    if "$slot" in document:
        variables["slot"] = await organizer.add_slot()
    if "$campaign" in document:
        variables["campaign"] = await create_campaign(organizer)
    return await organizer.send(document % f"{begin}, {end}", **variables)


@pytest.mark.parametrize(("begin", "end", "document"), PERIODS)
async def test_a_period_that_ends_when_it_begins_or_earlier_is_an_error(
    organizer: BookingClient, begin: str, end: str, document: str
) -> None:
    for first, last in ((LATE, EARLY), (EARLY, EARLY)):
        found = await send(organizer, document, f'{begin}: "{first}"', f'{end}: "{last}"')
        (error,) = found["errors"]
        assert error["extensions"] == {"code": "BAD_USER_INPUT", "field": end}
        assert error["message"] == f"`{end}` must be later than `{begin}`."


@pytest.mark.parametrize(("begin", "end", "document"), PERIODS)
async def test_a_period_that_ends_later_is_accepted(
    organizer: BookingClient, begin: str, end: str, document: str
) -> None:
    found = await send(organizer, document, f'{begin}: "{EARLY}"', f'{end}: "{LATE}"')
    assert "errors" not in found
