"""Invitations go out as a list, and each lets its person in once."""

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
async def organizer_and_members(
    two_apps: Pair, http: httpx.AsyncClient
) -> tuple[BookingClient, BookingClient]:
    """A member and an organiser."""
    (member,), organiser = await create_booking_clients(http, 1, *two_apps)
    return member, organiser


@pytest.fixture
def school() -> str:
    """The domain of addresses that no other test has."""
    return f"{secrets.token_hex(8)}.test"


async def test_who_was_imported_is_invited_and_sets_a_password(
    two_apps: Pair,
    organizer_and_members: tuple[BookingClient, BookingClient],
    http: httpx.AsyncClient,
    school: str,
) -> None:
    organiser = organizer_and_members[1]
    people = user_csv(school, {"ada": "Ada", "ben": "Ben"}, school)
    await import_users(organiser, people)
    rows = await create_invitations(organiser, group=school)
    assert [(row["email"], row["name"]) for row in rows] == [
        (f"ada@{school}", "Ada"),
        (f"ben@{school}", "Ben"),
    ]
    assert all(datetime.fromisoformat(row["expires_at"]) for row in rows)
    ada = rows[0]
    newcomer = GraphQLTestClient(http, two_apps[1].url)
    session = await newcomer.execute(SET_PASSWORD, token=ada["token"], password=PASSWORD)
    assert session["user"] == {
        "email": f"ada@{school}", "name": "Ada", "groups": [school], "hasPassword": True,
    }  # fmt: skip
    given = {"email": f"ada@{school}", "password": PASSWORD}
    assert (await newcomer.execute(LOGIN, input=given))["__typename"] == "Session"
    assert [row["name"] for row in await create_invitations(organiser, group=school)] == ["Ben"]
    # What is imported again keeps the password.
    assert await import_users(organiser, people) == {
        "dryRun": False, "created": 0, "updated": 0, "unchanged": 2,
    }  # fmt: skip
    assert (await newcomer.execute(LOGIN, input=given))["__typename"] == "Session"


async def test_a_token_sent_to_two_processes_at_once_works_once(
    two_apps: Pair,
    organizer_and_members: tuple[BookingClient, BookingClient],
    http: httpx.AsyncClient,
    school: str,
) -> None:
    await import_users(organizer_and_members[1], generated_user_csv(school, 5, school))
    for row in await create_invitations(organizer_and_members[1], group=school):
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


async def test_a_password_or_a_token_that_cannot_be_is_data(
    organizer_and_members: tuple[BookingClient, BookingClient], school: str
) -> None:
    await import_users(organizer_and_members[1], generated_user_csv(school, 1, school))
    (row,) = await create_invitations(organizer_and_members[1], group=school)
    short = await organizer_and_members[0].execute(
        SET_PASSWORD, token=row["token"], password="short"
    )
    assert short["code"] == "INVALID_INPUT"
    for token in ("", "\0", row["token"].upper(), "x" * 10_000):
        outcome = await organizer_and_members[0].execute(
            SET_PASSWORD, token=token, password=PASSWORD
        )
        assert outcome["code"] == "INVALID_INVITATION"
    outcome = await organizer_and_members[0].execute(
        SET_PASSWORD, token=row["token"], password=PASSWORD
    )
    assert outcome["__typename"] == "Session"


async def test_nothing_in_a_list_of_invitations_is_a_formula(
    organizer_and_members: tuple[BookingClient, BookingClient], school: str
) -> None:
    names = ["=1+1", "+1", "-1", "@sum", '"=""x"""', "Ada"]
    people = {f"person{number}": name for number, name in enumerate(names)}
    await import_users(organizer_and_members[1], user_csv(school, {**people, "+ada": "A"}, school))
    rows = await create_invitations(organizer_and_members[1], group=school)
    assert [row["name"] for row in rows] == ["A", "'=1+1", "'+1", "'-1", "'@sum", '\'="x"', "Ada"]
    assert rows[0]["email"] == f"'+ada@{school}"


async def test_invitations_are_for_nobody_where_nobody_waits(
    organizer_and_members: tuple[BookingClient, BookingClient], school: str
) -> None:
    assert await create_invitations(organizer_and_members[1], group=school) == []
    for query in ("?group=", "?group=a,b", "?group=%00", "?groups=5a", "?group=a&group=b"):
        url = f"{organizer_and_members[1].url}/users/invitations{query}"
        response = await organizer_and_members[1].http.post(
            url, headers=organizer_and_members[1].headers
        )
        assert (response.status_code, response.json()["code"]) == (400, "BAD_USER_INPUT")
