"""Calendars as a program that subscribes to them gets and reads them."""

from typing import Any

import httpx
from icalendar import Calendar

from tests.support.client import Client
from tests.support.desk import Person

CREATE = "mutation { createCalendarAddress { url createdAt } }"
REVOKE = "mutation { revokeCalendarAddress }"
MINE = "{ myCalendarAddress { url createdAt } }"


def parsed(text: str | bytes) -> Any:
    """The calendar, by a library that has not seen how it was made."""
    return Calendar.from_ical(text)


async def subscribe(person: Person) -> str:
    """The path of a new address of a person's calendar."""
    return str((await person.ask(CREATE))["url"])


async def get(who: Client, path: str, **headers: str) -> httpx.Response:
    """Whatever is answered; never a failure of ours."""
    response = await who.http.get(who.url + path, headers={**who.headers, **headers})
    assert response.status_code != 500, response.text
    return response


async def read(who: Client, path: str) -> Any:
    """A calendar that there is."""
    response = await get(who, path)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/calendar; charset=utf-8"
    return parsed(response.content)


async def events(who: Client, path: str) -> dict[str, Any]:
    """Its events by their identity, of which no two have the same."""
    found = (await read(who, path)).events
    by_uid = {str(event["UID"]): event for event in found}
    assert len(by_uid) == len(found)
    return by_uid


def told(event: Any) -> tuple[str, str, int]:
    """What an event is about, whether it takes place, and how new that is."""
    return str(event["SUMMARY"]), str(event["STATUS"]), int(event["SEQUENCE"])
