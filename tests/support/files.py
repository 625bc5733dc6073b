"""Files of people, as a school's office writes them and sends them."""

import csv as csv_format
from io import StringIO

import httpx

from slotlock.auth.auth import Auth
from slotlock.domain.people import PeopleFilter, User
from tests.support.client import Client, Json


def csv(school: str, people: dict[str, str], groups: str = "5a") -> bytes:
    """A file of these people, by the part before the @, with their names."""
    lines = [f"{who}@{school},{name},{groups}" for who, name in people.items()]
    return "\n".join(["email,name,groups", *lines]).encode()


def class_of(school: str, size: int, groups: str = "5a") -> bytes:
    """A file of so many people, all in the same groups."""
    return csv(school, {f"person{number}": "Somebody" for number in range(size)}, groups)


async def people_of(auth: Auth, school: str) -> dict[str, User]:
    """Everybody with an address there, by their address without it."""
    found: dict[str, User] = {}
    after = None
    while True:
        page = await auth.users.page(PeopleFilter(text=school), 100, after)
        there = [u for u in page.items if u.email.endswith((f"@{school}", f".{school}"))]
        found |= {user.email.removesuffix(f"@{school}"): user for user in there}
        if not page.more:
            return found
        after = page.items[-1].email


async def send(
    who: Client, body: bytes, query: str = "", media_type: str = "text/csv"
) -> httpx.Response:
    """What comes of sending a file; never a failure of ours."""
    headers = {**who.headers, "Content-Type": media_type}
    url = f"{who.url}/people/import{query}"
    response = await who.http.post(url, content=body, headers=headers)
    assert response.status_code < 500, response.text
    assert response.headers["content-type"] == "application/json"
    return response


async def imported(who: Client, body: bytes, query: str = "") -> Json:
    """What a file did that was taken."""
    response = await send(who, body, query)
    assert response.status_code == 200, response.text
    answer: Json = response.json()
    return answer


async def invited(who: Client, **query: str) -> list[dict[str, str]]:
    """The invitations that come of asking for them."""
    url = f"{who.url}/people/invitations"
    response = await who.http.post(url, params=query, headers=who.headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv_format.DictReader(StringIO(response.text)))
