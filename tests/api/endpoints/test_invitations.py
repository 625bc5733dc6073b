"""`POST /users/invitations`: every invitation lets its user set a first password, once."""

import asyncio
import secrets
from datetime import datetime

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import GraphQLTestClient
from tests.support.clients.user_files import (
    create_invitations,
    generated_user_csv,
    import_users,
    user_csv,
)

Pair = tuple[AppProcess, AppProcess]
PASSWORD = "correct horse battery"
SET_PASSWORD = """mutation($token: String!, $password: String!) {
  setPassword(token: $token, password: $password) {
    __typename ... on Session { accessToken user { email name groups hasPassword } }
    ... on Refusal { code message } } }"""
LOGIN = """mutation($input: LoginInput!) { login(input: $input) {
  __typename ... on Refusal { code } } }"""


@pytest.fixture
def organizer(two_apps: Pair, http: httpx.AsyncClient) -> BookingClient:
    return (create_booking_clients(http, 0, *two_apps))[1]


@pytest.fixture
def email_domain() -> str:
    """Return a domain of email addresses that no other test uses; also the name of a group."""
    return f"{secrets.token_hex(8)}.test"


async def test_an_imported_user_is_invited_sets_a_password_and_signs_in(
    two_apps: Pair, organizer: BookingClient, http: httpx.AsyncClient, email_domain: str
) -> None:
    file = user_csv(email_domain, {"ada": "Ada", "ben": "Ben"}, email_domain)
    await import_users(organizer, file)
    rows = await create_invitations(organizer, group=email_domain)
    assert [(row["email"], row["name"]) for row in rows] == [
        (f"ada@{email_domain}", "Ada"),
        (f"ben@{email_domain}", "Ben"),
    ]
    assert all(datetime.fromisoformat(row["expires_at"]) for row in rows)
    client = GraphQLTestClient(http, two_apps[1].url)
    session = await client.execute(SET_PASSWORD, token=rows[0]["token"], password=PASSWORD)
    assert session["user"] == {
        "email": f"ada@{email_domain}",
        "name": "Ada",
        "groups": [email_domain],
        "hasPassword": True,
    }
    credentials = {"email": f"ada@{email_domain}", "password": PASSWORD}
    assert (await client.execute(LOGIN, input=credentials))["__typename"] == "Session"
    remaining = await create_invitations(organizer, group=email_domain)
    assert [row["name"] for row in remaining] == ["Ben"]
    # Another import of the same file does not change the password.
    assert (await import_users(organizer, file))["unchanged"] == 2
    assert (await client.execute(LOGIN, input=credentials))["__typename"] == "Session"


async def test_a_token_that_is_sent_to_two_processes_at_once_works_once(
    two_apps: Pair, organizer: BookingClient, http: httpx.AsyncClient, email_domain: str
) -> None:
    await import_users(organizer, generated_user_csv(email_domain, 5, email_domain))
    for row in await create_invitations(organizer, group=email_domain):
        outcomes = await asyncio.gather(
            *(
                GraphQLTestClient(http, app.url).execute(
                    SET_PASSWORD, token=row["token"], password=PASSWORD
                )
                for app in two_apps * 2
            )
        )
        codes = [outcome.get("code", "none") for outcome in outcomes]
        assert sorted(codes) == ["INVALID_INVITATION"] * 3 + ["none"]


async def test_an_invalid_password_or_token_is_a_refusal_and_does_not_use_up_the_invitation(
    two_apps: Pair, organizer: BookingClient, http: httpx.AsyncClient, email_domain: str
) -> None:
    await import_users(organizer, generated_user_csv(email_domain, 1, email_domain))
    (row,) = await create_invitations(organizer, group=email_domain)
    client = GraphQLTestClient(http, two_apps[0].url)
    outcome = await client.execute(SET_PASSWORD, token=row["token"], password="short")
    assert outcome["code"] == "INVALID_INPUT"
    for token in ("", "\0", row["token"].upper(), "x" * 10_000):
        outcome = await client.execute(SET_PASSWORD, token=token, password=PASSWORD)
        assert outcome["code"] == "INVALID_INVITATION"
    outcome = await client.execute(SET_PASSWORD, token=row["token"], password=PASSWORD)
    assert outcome["__typename"] == "Session"


async def test_formulas_in_a_list_of_invitations_are_escaped(
    organizer: BookingClient, email_domain: str
) -> None:
    names = ["=1+1", "+1", "-1", "@sum", '"=""x"""', "Ada"]
    users = {f"user{number}": name for number, name in enumerate(names)}
    await import_users(organizer, user_csv(email_domain, {**users, "+ada": "A"}, email_domain))
    rows = await create_invitations(organizer, group=email_domain)
    escaped = ["A", "'=1+1", "'+1", "'-1", "'@sum", '\'="x"', "Ada"]
    assert [row["name"] for row in rows] == escaped
    assert rows[0]["email"] == f"'+ada@{email_domain}"


async def test_a_group_without_new_users_gets_no_invitations(
    organizer: BookingClient, email_domain: str
) -> None:
    assert await create_invitations(organizer, group=email_domain) == []


@pytest.mark.parametrize(
    "query", ["?group=", "?group=a,b", "?group=%00", "?groups=5a", "?group=a&group=b"]
)
async def test_an_invalid_group_or_parameter_gets_400(organizer: BookingClient, query: str) -> None:
    url = f"{organizer.url}/users/invitations{query}"
    response = await organizer.http.post(url, headers=organizer.headers)
    assert (response.status_code, response.json()["code"]) == (400, "BAD_USER_INPUT")
