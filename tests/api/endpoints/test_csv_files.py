"""Every CSV file has one form: Excel opens it in every language, and an import reads it."""

import csv
from io import StringIO

import httpx
import pytest

from slotlock.api.endpoints.csv_lines import csv_header, csv_line
from slotlock.api.endpoints.separator_negotiation import choose_separator
from slotlock.domain.reports.exports import CsvSeparator
from slotlock.domain.users.import_file import UserRow, parse_user_file
from slotlock.graphql.transport.http_requests import HttpError
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import Json
from tests.support.clients.exports import CREATE_LINK

Pair = tuple[AppProcess, AppProcess]
COMMA, SEMICOLON = CsvSeparator
GERMAN = {"Accept-Language": "de-DE,de;q=0.9,en;q=0.8"}


@pytest.fixture
def organizer(two_apps: Pair, http: httpx.AsyncClient) -> BookingClient:
    return create_booking_clients(http, 0, *two_apps)[1]


@pytest.mark.parametrize(
    ("accept_language", "separator"),
    [
        (None, COMMA),
        ("", COMMA),
        ("*", COMMA),
        ("en-US,en;q=0.9,de;q=0.8", COMMA),
        ("de", SEMICOLON),
        ("DE-ch, en;q=0.5", SEMICOLON),
        ("en;q=0.5, fr;q=0.7", SEMICOLON),
        ("en;q=0, pt-BR;q=0.1", SEMICOLON),
        ("es-ES", SEMICOLON),
        ("es-MX,es;q=0.9", COMMA),
        ("es-419", COMMA),
        ("zh-Hant-TW", COMMA),
        ("sr-Latn-RS", SEMICOLON),
        ("de;q=x, en", COMMA),
        (";;,,=", COMMA),
        ("x" * 10_000, COMMA),
    ],
)
def test_the_preferred_language_chooses_the_separator(
    accept_language: str | None, separator: CsvSeparator
) -> None:
    assert choose_separator(None, accept_language) is separator


def test_a_parameter_is_stronger_than_the_language() -> None:
    assert choose_separator("comma", "de") is COMMA
    assert choose_separator("semicolon", "en") is SEMICOLON
    with pytest.raises(HttpError, match="comma or semicolon"):
        choose_separator(";", None)


@pytest.mark.parametrize("separator", CsvSeparator)
def test_an_import_reads_what_a_file_has(separator: CsvSeparator) -> None:
    names = ["Übung, A; B", 'a "quoted"', "=1+1", "a;=1", "a,=1", "'=1", "''+1", " -x", "数学", "@"]
    rows = [
        UserRow(line, f"+user{line}@x.test", name.strip(), ("5a", "=b", "choir"))
        for line, name in enumerate(names, 2)
    ]
    lines = [csv_line([row.email, row.name or "", "5a;=b;choir"], separator) for row in rows]
    body = (csv_header(["email", "name", "groups"], separator) + "".join(lines)).encode()
    assert parse_user_file(body) == tuple(rows)
    assert body.startswith(b"\xef\xbb\xbf")
    assert body.count(b"\r\n") == body.count(b"\n") == len(rows) + 1


@pytest.mark.parametrize("separator", CsvSeparator)
@pytest.mark.parametrize("reader", [",", ";"])
def test_no_cell_is_a_formula_whatever_separates_cells(
    separator: CsvSeparator, reader: str
) -> None:
    cells = ["=1", "a;=1", "a,=1", " +1", "\uff1d1", "a;b,@x"]
    rows = csv.reader(StringIO(csv_line(cells, separator)), delimiter=reader)
    for cell in next(rows):
        # A quotation mark in the middle of a cell makes it text.
        assert not cell.lstrip().startswith(("=", "+", "-", "@", "\uff1d")), cell


async def rows_of(client: BookingClient, path: str, delimiter: str, **options: Json) -> int:
    """Return the number of columns of a CSV file at a path."""
    response = await client.http.request(
        "POST" if "invitations" in path else "GET",
        client.url + path,
        headers={**client.headers, **options.get("headers", {})},
    )
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.content.startswith(b"\xef\xbb\xbf")
    header = response.content.decode("utf-8-sig").partition("\r\n")[0]
    return len(header.split(delimiter))


async def test_rosters_and_invitations_are_separated_by_language_or_parameter(
    organizer: BookingClient,
) -> None:
    slot_id = await organizer.add_slot()
    for path, columns in ((f"/exports/slots/{slot_id}.csv", 18), ("/users/invitations", 4)):
        assert await rows_of(organizer, path, ",") == columns
        assert await rows_of(organizer, path, ";", headers=GERMAN) == columns
        assert await rows_of(organizer, f"{path}?separator=semicolon", ";") == columns
        assert await rows_of(organizer, f"{path}?separator=comma", ",", headers=GERMAN) == columns


async def test_an_unknown_separator_gets_400(organizer: BookingClient) -> None:
    slot_id = await organizer.add_slot()
    for method, path in (("GET", f"/exports/slots/{slot_id}.csv"), ("POST", "/users/invitations")):
        url = f"{organizer.url}{path}?separator=tab"
        response = await organizer.http.request(method, url, headers=organizer.headers)
        assert (response.status_code, response.json()["code"]) == (400, "BAD_USER_INPUT")


async def test_a_link_has_the_separator_that_it_was_created_with(
    organizer: BookingClient,
) -> None:
    slot_id = await organizer.add_slot()
    for separator, delimiter in (("SEMICOLON", ";"), ("COMMA", ","), (None, ";")):
        link = await organizer.execute(CREATE_LINK, id=slot_id, format="CSV", separator=separator)
        assert await rows_of(organizer, link["url"], delimiter, headers=GERMAN) == 18
