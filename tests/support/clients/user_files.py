"""Files of people, as a school's office writes them and sends them."""

import csv as csv_format
from io import StringIO

import httpx

from slotlock.auth.container import Auth
from slotlock.domain.users.user import User, UserFilter
from tests.support.clients.client import GraphQLTestClient, Json


def user_csv(domain: str, names: dict[str, str], groups: str = "5a") -> bytes:
    """A file of these people, by the part before the @, with their names."""
    lines = [f"{who}@{domain},{name},{groups}" for who, name in names.items()]
    return "\n".join(["email,name,groups", *lines]).encode()


def generated_user_csv(domain: str, count: int, groups: str = "5a") -> bytes:
    """A file of so many people, all in the same groups."""
    return user_csv(domain, {f"person{number}": "Somebody" for number in range(count)}, groups)


async def users_by_local_part(auth: Auth, domain: str) -> dict[str, User]:
    """Everybody with an address there, by their address without it."""
    found: dict[str, User] = {}
    after = None
    while True:
        page = await auth.users.page(UserFilter(text=domain), 100, after)
        there = [u for u in page.items if u.email.endswith((f"@{domain}", f".{domain}"))]
        found |= {user.email.removesuffix(f"@{domain}"): user for user in there}
        if not page.has_more:
            return found
        after = page.items[-1].email


async def post_user_file(
    client: GraphQLTestClient, body: bytes, query: str = "", media_type: str = "text/csv"
) -> httpx.Response:
    """What comes of sending a file; never a failure of ours."""
    headers = {**client.headers, "Content-Type": media_type}
    url = f"{client.url}/users/import{query}"
    response = await client.http.post(url, content=body, headers=headers)
    assert response.status_code < 500, response.text
    assert response.headers["content-type"] == "application/json"
    return response


async def import_users(client: GraphQLTestClient, body: bytes, query: str = "") -> Json:
    """What a file did that was taken."""
    response = await post_user_file(client, body, query)
    assert response.status_code == 200, response.text
    answer: Json = response.json()
    return answer


async def create_invitations(client: GraphQLTestClient, **query: str) -> list[dict[str, str]]:
    """The invitations that come of asking for them."""
    url = f"{client.url}/users/invitations"
    response = await client.http.post(url, params=query, headers=client.headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv_format.DictReader(StringIO(response.text)))
