"""Calendars as a program that subscribes to them gets and reads them."""

from typing import Any

import httpx
from icalendar import Calendar

from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import GraphQLTestClient

CREATE_CALENDAR = "mutation { createCalendarFeed { url createdAt } }"
REVOKE_CALENDAR = "mutation { revokeCalendarFeed }"
MY_CALENDAR = "{ myCalendarFeed { url createdAt } }"


def parse_calendar(text: str | bytes) -> Any:
    """The calendar, by a library that has not seen how it was made."""
    return Calendar.from_ical(text)


async def create_calendar(client: BookingClient) -> str:
    """The path of a new address of a person's calendar."""
    return str((await client.execute(CREATE_CALENDAR))["url"])


async def get_path(client: GraphQLTestClient, path: str, **headers: str) -> httpx.Response:
    """Whatever is answered; never a failure of ours."""
    response = await client.http.get(client.url + path, headers={**client.headers, **headers})
    assert response.status_code != 500, response.text
    return response


async def read_calendar(client: GraphQLTestClient, path: str) -> Any:
    """A calendar that there is."""
    response = await get_path(client, path)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/calendar; charset=utf-8"
    return parse_calendar(response.content)


async def events_by_uid(client: GraphQLTestClient, path: str) -> dict[str, Any]:
    """Its events by their identity, of which no two have the same."""
    found = (await read_calendar(client, path)).events
    by_uid = {str(event["UID"]): event for event in found}
    assert len(by_uid) == len(found)
    return by_uid


def event_facts(event: Any) -> tuple[str, str, int]:
    """What an event is about, whether it takes place, and how new that is."""
    return str(event["SUMMARY"]), str(event["STATUS"]), int(event["SEQUENCE"])
