"""Downloaded files have names that a reader recognizes, and no name reaches another header."""

import secrets
from datetime import UTC, datetime
from urllib.parse import unquote

import httpx
import pytest

from slotlock.api.endpoints.downloads import content_disposition
from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.campaigns import create_campaign
from tests.support.clients.user_files import import_users, user_csv

Pair = tuple[AppProcess, AppProcess]
ENDING = "roster-2026-11-26.csv"
CREATE_FEED = "mutation { createCalendarFeed { url organizedUrl } }"
STARTS = "2031-03-18T23:30:00Z", "2031-03-19T00:30:00Z"


@pytest.fixture
def organizer(two_apps: Pair, http: httpx.AsyncClient) -> BookingClient:
    return create_booking_clients(http, 0, *two_apps)[1]


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


async def test_a_roster_is_named_after_its_slot_and_its_local_day(
    organizer: BookingClient,
) -> None:
    start, end = STARTS
    slot_id = await organizer.add_slot(
        title="Übung 5", startTime=start, endTime=end, timeZone="Europe/Berlin"
    )
    for file_format, content in (("csv", "roster"), ("xlsx", "roster"), ("pdf", "sign-in-sheets")):
        ending = f"{content}-2031-03-19.{file_format}"
        path = f"/exports/slots/{slot_id}.{file_format}"
        assert await downloaded_names(organizer, path) == [f"ubung-5-{ending}", f"übung-5-{ending}"]


async def test_other_files_are_named_after_what_they_are_about_and_the_day(
    organizer: BookingClient,
) -> None:
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
