"""The separators, cells and names of files."""

import csv
import secrets
from datetime import UTC, datetime
from io import StringIO
from urllib.parse import unquote

import pytest

from slotlock.api.endpoints.csv_files import csv_header, csv_line
from slotlock.api.endpoints.downloads import choose_separator, content_disposition
from slotlock.domain.reports.export_formats import CsvSeparator
from slotlock.domain.user_files.user_file import UserFile, UserRow, parse_user_file
from slotlock.graphql.transport.http_messages import HttpError
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.client import Json
from tests.support.clients.exports import CREATE_LINK
from tests.support.clients.user_files import import_users, user_csv

COMMA, SEMICOLON = CsvSeparator
GERMAN = {"Accept-Language": "de-DE,de;q=0.9,en;q=0.8"}
ENDING = "roster-2026-11-26.csv"
CREATE_FEED = "mutation { createCalendarFeed { url organizedUrl } }"
STARTS = "2031-03-18T23:30:00Z", "2031-03-19T00:30:00Z"


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
    lines = [csv_line([row.login_name, row.name or "", "5a;=b;choir"], separator) for row in rows]
    body = (csv_header(["email", "name", "groups"], separator) + "".join(lines)).encode()
    assert parse_user_file(body) == UserFile(tuple(rows))
    assert body.startswith(b"\xef\xbb\xbf")
    assert body.count(b"\r\n") == body.count(b"\n") == len(rows) + 1


@pytest.mark.parametrize("separator", CsvSeparator)
@pytest.mark.parametrize("reader", [",", ";"])
def test_no_cell_is_a_formula_with_any_separator(separator: CsvSeparator, reader: str) -> None:
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
    for path, columns in ((f"/exports/slots/{slot_id}.csv", 23), ("/users/invitations", 8)):
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


async def test_a_link_has_the_separator_that_it_was_created_with(organizer: BookingClient) -> None:
    slot_id = await organizer.add_slot()
    for separator, delimiter in (("SEMICOLON", ";"), ("COMMA", ","), (None, ";")):
        link = await organizer.execute(CREATE_LINK, id=slot_id, format="CSV", separator=separator)
        assert await rows_of(organizer, link["url"], delimiter, headers=GERMAN) == 23


def names_of(header: str) -> list[str]:
    """Return the plain name of a header, and the other one if there is one."""
    assert header.isascii()
    assert header.isprintable()
    plain, _, extended = header.partition("; filename*=UTF-8''")
    assert plain.count('"') == 2
    return [plain.split('"')[1], *([unquote(extended)] if extended else [])]


@pytest.mark.parametrize(
    ("subject", "names"),
    [
        ("Spring 2027", [f"spring-2027-{ENDING}"]),
        ('Übung 5b: "Größe"', [f"ubung-5b-grosse-{ENDING}", f"übung-5b-größe-{ENDING}"]),
        ("cafe\u0301", [f"cafe-{ENDING}", f"caf\u00e9-{ENDING}"]),
        ("高等数学A", [f"a-{ENDING}", f"高等数学a-{ENDING}"]),
        ("हिन्दी भाषा", [ENDING, f"हिन्दी-भाषा-{ENDING}"]),
        ("a\r\nSet-Cookie: x=1", [f"a-set-cookie-x-1-{ENDING}"]),
        ('"; filename=evil.exe; x="\\', [f"filename-evil-exe-x-{ENDING}"]),
        ("../../etc/passwd\0", [f"etc-passwd-{ENDING}"]),
        ("a\u202etxt.exe", [f"atxt-exe-{ENDING}", f"a-txt-exe-{ENDING}"]),
        ("\ud800", [ENDING]),
        ("🎉 - _", [ENDING]),
        ("", [ENDING]),
    ],
)
def test_a_file_is_named_after_its_subject(subject: str, names: list[str]) -> None:
    assert names_of(content_disposition(subject, ENDING)) == names


@pytest.mark.parametrize("letter", ["x", "é", "数", "\U00020000", "\ufdfa"])
def test_the_names_of_files_fit_into_every_file_system(letter: str) -> None:
    for name in names_of(content_disposition(letter * 200, ENDING)):
        assert len(name.encode()) <= 255


async def downloaded_names(client: BookingClient, path: str, method: str = "GET") -> list[str]:
    """Return the names of the file at a path."""
    response = await client.http.request(method, client.url + path, headers=client.headers)
    assert response.status_code == 200, response.text
    return names_of(response.headers["content-disposition"])


async def test_a_roster_is_named_after_its_slot_and_its_local_day(organizer: BookingClient) -> None:
    start, end = STARTS
    slot_id = await organizer.add_slot(
        title="Übung 5", startTime=start, endTime=end, timeZone="Europe/Berlin"
    )
    for file_format, content in (("csv", "roster"), ("xlsx", "roster"), ("pdf", "sign-in-sheets")):
        ending = f"{content}-2031-03-19.{file_format}"
        path = f"/exports/slots/{slot_id}.{file_format}"
        assert await downloaded_names(organizer, path) == [f"ubung-5-{ending}", f"übung-5-{ending}"]


async def test_other_files_are_named_after_their_subject_and_day(organizer: BookingClient) -> None:
    group = secrets.token_hex(4)
    campaign_id = await create_campaign(organizer, name="Parent evening")
    await import_users(organizer, user_csv(f"{group}.test", {"ada": "Ada"}, group))
    before = datetime.now(UTC).date()
    found = [
        await downloaded_names(organizer, f"/exports/campaigns/{campaign_id}.xlsx"),
        await downloaded_names(organizer, f"/users/invitations?group={group}", "POST"),
        await downloaded_names(organizer, "/users/invitations", "POST"),
        (await downloaded_names(organizer, "/personal-data"))[:1],
    ]
    name = (await organizer.execute("{ me { name } }"))["name"].lower()
    assert any(
        found
        == [
            [f"parent-evening-roster-{day}.xlsx"],
            [f"{group}-invitations-{day}.csv"],
            [f"invitations-{day}.csv"],
            [f"{name.replace(' ', '-')}-personal-data-{day}.json"],
        ]
        for day in (before, datetime.now(UTC).date())
    ), found


async def test_the_name_of_a_calendar_does_not_show_its_secret(organizer: BookingClient) -> None:
    campaign_id = await create_campaign(organizer, name="Parent evening")
    feed = await organizer.execute(CREATE_FEED)
    for path, name in (
        (feed["url"], "bookings-calendar.ics"),
        (feed["organizedUrl"], "my-slots-calendar.ics"),
        ("/calendars/published.ics", "published-slots-calendar.ics"),
        (f"/calendars/campaigns/{campaign_id}.ics", "parent-evening-calendar.ics"),
    ):
        assert await downloaded_names(organizer, path) == [name]
