"""Calendar feeds, read as a calendar program reads them."""

from typing import Any, NamedTuple

import httpx
from icalendar import Calendar

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import GraphQLTestClient

CREATE_CALENDAR = "mutation { createCalendarFeed { url createdAt } }"
REVOKE_CALENDAR = "mutation { revokeCalendarFeed }"
MY_CALENDAR = "{ myCalendarFeed { url createdAt } }"


class CalendarUsers(NamedTuple):
    """Two members at different processes, and an organizer."""

    ada: BookingClient
    ben: BookingClient
    organizer: BookingClient


def anonymous_at_other_process(
    client: BookingClient, apps: tuple[AppProcess, AppProcess]
) -> BookingClient:
    """Return an anonymous client of the process that the given client does not use."""
    (url,) = {app.url for app in apps} - {client.url}
    return BookingClient(client.http, url)


def parse_calendar(text: str | bytes) -> Any:
    """Return the calendar as the icalendar library reads it."""
    return Calendar.from_ical(text)


async def create_calendar(client: BookingClient) -> str:
    """Create a calendar feed of this user and return its path."""
    return str((await client.execute(CREATE_CALENDAR))["url"])


async def get_path(client: GraphQLTestClient, path: str, **headers: str) -> httpx.Response:
    """Send a GET request and return the response, which must not be an internal error."""
    response = await client.http.get(client.url + path, headers={**client.headers, **headers})
    assert response.status_code != 500, response.text
    return response


async def read_calendar(client: GraphQLTestClient, path: str) -> Any:
    """Return the calendar at a path."""
    response = await get_path(client, path)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/calendar; charset=utf-8"
    return parse_calendar(response.content)


async def events_by_uid(client: GraphQLTestClient, path: str) -> dict[str, Any]:
    """Return the events of a calendar by their UID, which must be unique."""
    found = (await read_calendar(client, path)).events
    by_uid = {str(event["UID"]): event for event in found}
    assert len(by_uid) == len(found)
    return by_uid


def event_facts(event: Any) -> tuple[str, str, int]:
    """Return the summary, the status and the sequence number of an event."""
    return str(event["SUMMARY"]), str(event["STATUS"]), int(event["SEQUENCE"])
