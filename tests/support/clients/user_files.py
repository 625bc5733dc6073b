"""Files of users as a school writes them, and their import over HTTP."""

import csv
from io import StringIO

import httpx

from slotlock.auth.container import Auth
from slotlock.domain.user_files.choices import Choice, Choices
from slotlock.domain.users.user import User, UserFilter
from tests.support.clients.client import GraphQLTestClient, Json

CLAIM_ALL = Choices(others=Choice.CLAIM)


def user_csv(domain: str, names: dict[str, str], groups: str = "") -> bytes:
    """Return a file of users, given by the local part of their e-mail address and their name.

    By default they are in a group that users of no other domain are in.
    """
    groups = groups or f"5a {domain}"
    lines = [f"{local_part}@{domain},{name},{groups}" for local_part, name in names.items()]
    return "\n".join(["email,name,groups", *lines]).encode()


def generated_user_csv(domain: str, count: int, groups: str = "") -> bytes:
    """Return a file of this many users, all in the same groups."""
    return user_csv(domain, {f"person{number}": "Somebody" for number in range(count)}, groups)


async def users_by_local_part(auth: Auth, domain: str) -> dict[str, User]:
    """Return all users of an e-mail domain by the local part of their address."""
    found: dict[str, User] = {}
    after = None
    while True:
        page = await auth.repositories.users.page(UserFilter(text=domain), 100, after)
        matching = [u for u in page.items if u.login_name.endswith((f"@{domain}", f".{domain}"))]
        found |= {user.login_name.removesuffix(f"@{domain}"): user for user in matching}
        if not page.has_more:
            return found
        after = page.items[-1].sort_name


async def post_user_file(
    client: GraphQLTestClient, body: bytes, query: str = "", media_type: str = "text/csv"
) -> httpx.Response:
    """Send a file and return the response, which must not be an internal error."""
    headers = {**client.headers, "Content-Type": media_type}
    url = f"{client.url}/users/import{query}"
    response = await client.http.post(url, content=body, headers=headers)
    assert response.status_code < 500, response.text
    assert response.headers["content-type"] == "application/json"
    return response


async def import_users(client: GraphQLTestClient, body: bytes, query: str = "") -> Json:
    """Send a valid file and return the report of its import."""
    response = await post_user_file(client, body, query)
    assert response.status_code == 200, response.text
    report: Json = response.json()
    return report


async def create_invitations(client: GraphQLTestClient, **query: str) -> list[dict[str, str]]:
    """Create invitations and return the rows of the response."""
    url = f"{client.url}/users/invitations"
    response = await client.http.post(url, params=query, headers=client.headers)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    return list(csv.DictReader(StringIO(response.content.decode("utf-8-sig"))))
