"""People as organisers meet them: searched, put into groups, banned; and as others see them."""

import secrets
from typing import Any

import httpx
import pytest

from slotlock.auth.user_import import import_users
from tests.support.apps.processes import ADMIN_EMAIL, ADMIN_PASSWORD, AppProcess
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.user_files import generated_user_csv, user_csv
from tests.support.stores.users import auth_for_database

Pair = tuple[AppProcess, AppProcess]

USER = "fragment U on User { id name email role groups hasPassword banned bannedAt banReason }"
SAID = "__typename ... on User { ...U } ... on Refusal { code message }"
PEOPLE = f"""query($filter: UserFilter, $first: Int! = 20, $after: String) {{
  users(filter: $filter, first: $first, after: $after) {{
    nodes {{ ...U }} pageInfo {{ hasNextPage endCursor }}
  }} }} {USER}"""
SET_GROUPS = f"""mutation($input: SetGroupsInput!) {{ setGroups(input: $input) {{
  {SAID} ... on InvalidInput {{ fields {{ field message }} }} }} }} {USER}"""
BAN = f"""mutation($user: ID!, $reason: String) {{
  banUser(userId: $user, reason: $reason) {{ {SAID} }} }} {USER}"""
UNBAN = f"mutation($user: ID!) {{ unbanUser(userId: $user) {{ {SAID} }} }} {USER}"
ME = f"{{ me {{ ...U }} }} {USER}"
NODE = f"query($id: ID!) {{ node(id: $id) {{ id ... on User {{ ...U }} }} }} {USER}"
LOGIN = """mutation($input: LoginInput!) { login(input: $input) {
  __typename ... on Session { accessToken } ... on Refusal { code } } }"""
REGISTER = """mutation($input: RegisterInput!) { register(input: $input) {
  ... on Session { accessToken refreshToken } } }"""
REFRESH = "mutation($token: String!) { refreshSession(refreshToken: $token) { __typename } }"
PASSWORD = "correct horse battery"


@pytest.fixture
async def organizer_and_members(
    two_apps: Pair, http: httpx.AsyncClient
) -> tuple[BookingClient, BookingClient]:
    """A member and an organiser, at two processes."""
    (_, member), organizer = await create_booking_clients(http, 2, *two_apps)
    return member, organizer


@pytest.fixture
async def school(two_apps: Pair) -> str:
    """A school of 25 people who were imported, all in the group of its name."""
    name = f"{secrets.token_hex(8)}.test"
    async with auth_for_database(two_apps[0].environment["SLOTLOCK_MONGO_URL"]) as auth:
        await import_users(auth, generated_user_csv(name, 25, name), dry_run=False)
        body = user_csv(
            name, {"ada.byron": "Ada Lovelace", "rene": "Ren\u00e9 M\u00fcller"}, "choir"
        )
        await import_users(auth, body, dry_run=False)
    return name


async def found(organizer: GraphQLTestClient, **filter_: Any) -> list[Json]:
    """All that a search finds, page by page."""
    nodes: list[Json] = []
    after = None
    while True:
        page = await organizer.execute(PEOPLE, filter=filter_, first=10, after=after)
        nodes += page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            return nodes
        after = page["pageInfo"]["endCursor"]


async def names(organizer: GraphQLTestClient, **filter_: Any) -> list[str]:
    """Whom a search finds."""
    return [node["name"] for node in await found(organizer, **filter_)]


async def test_pages_of_people_hold_everybody_once_by_address(
    organizer_and_members: tuple[BookingClient, BookingClient], school: str
) -> None:
    emails = [node["email"] for node in await found(organizer_and_members[1], group=school)]
    assert emails == sorted(f"person{number}@{school}" for number in range(25))


@pytest.mark.parametrize(
    "text", ["Ada", "love", "byron", "ada.byr", "LOVELACE ada", "ada.byron@{school}", "  ad "]
)
async def test_people_are_found_by_beginnings_of_words_of_name_and_address(
    organizer_and_members: tuple[BookingClient, BookingClient], school: str, text: str
) -> None:
    organizer = organizer_and_members[1]
    assert await names(organizer, text=f"{text.format(school=school)} {school}") == ["Ada Lovelace"]
    assert await names(organizer, text=f"ovelace {school}") == []


async def test_a_name_is_found_however_its_letters_are_written(
    organizer_and_members: tuple[BookingClient, BookingClient], school: str
) -> None:
    for text in ("ren\u00e9", "rene\u0301", "M\u00dcLL", "mu\u0308ller"):
        assert await names(organizer_and_members[1], text=f"{text} {school}") == [
            "Ren\u00e9 M\u00fcller"
        ]


async def test_a_search_for_no_words_finds_nobody(
    organizer_and_members: tuple[BookingClient, BookingClient],
) -> None:
    assert await names(organizer_and_members[1], text="!?.") == []


async def test_filters_narrow_a_search_together(
    organizer_and_members: tuple[BookingClient, BookingClient], school: str
) -> None:
    organizer = organizer_and_members[1]
    (ada,) = await found(organizer, text=f"ada {school}", group="choir")
    assert ada["groups"] == ["choir"]
    assert ada["hasPassword"] is False
    await organizer.execute(BAN, user=ada["id"])
    assert await names(organizer, text=school, banned=True) == ["Ada Lovelace"]
    assert "Ada Lovelace" not in await names(organizer, text=school, banned=False)
    assert len(await found(organizer, text=school, withoutPassword=True)) == 27
    assert await names(organizer, text=school, withoutPassword=False) == []


@pytest.mark.parametrize("filter_", [{"text": "x" * 201}, {"group": "a,b"}, {"group": "x" * 51}])
async def test_a_filter_that_cannot_be_is_bad_user_input(
    organizer_and_members: tuple[BookingClient, BookingClient], filter_: Json
) -> None:
    assert await organizer_and_members[1].error_code(PEOPLE, filter=filter_) == "BAD_USER_INPUT"
    for first in (0, 101, -1):
        assert await organizer_and_members[1].error_code(PEOPLE, first=first) == "BAD_USER_INPUT"


async def test_people_are_for_organisers_only(
    organizer_and_members: tuple[BookingClient, BookingClient], http: httpx.AsyncClient
) -> None:
    member, organizer = organizer_and_members
    mine, nobody = await member.fetch_user_id(), GraphQLTestClient(http, member.url)
    asked: list[tuple[str, Json]] = [
        (PEOPLE, {}),
        (SET_GROUPS, {"input": {"userId": mine, "groups": []}}),
        (BAN, {"user": await organizer.fetch_user_id()}),
        (UNBAN, {"user": mine}),
    ]
    for query, variables in asked:
        assert await member.error_code(query, **variables) == "FORBIDDEN"
        assert await nobody.error_code(query, **variables) == "UNAUTHENTICATED"


async def test_groups_are_what_an_organiser_gives(
    organizer_and_members: tuple[BookingClient, BookingClient],
) -> None:
    member, organizer = organizer_and_members
    user_id = await member.fetch_user_id()
    given = {"userId": user_id, "groups": [" 5a ", "choir", "5a", ""]}
    for _ in range(2):
        outcome = await organizer.execute(SET_GROUPS, input=given)
        assert (outcome["__typename"], outcome["groups"]) == ("User", ["5a", "choir"])
    assert (await member.execute(ME))["groups"] == ["5a", "choir"]
    outcome = await organizer.execute(SET_GROUPS, input={"userId": user_id, "groups": []})
    assert outcome["groups"] == []


@pytest.mark.parametrize(
    "groups", [["a;b"], ["a,b"], ["*"], ["x" * 51], ["a\nb"], [str(n) for n in range(21)]]
)
async def test_groups_that_cannot_be_change_nothing(
    organizer_and_members: tuple[BookingClient, BookingClient], groups: list[str]
) -> None:
    member, organizer = organizer_and_members
    user_id = await member.fetch_user_id()
    await organizer.execute(SET_GROUPS, input={"userId": user_id, "groups": ["5a"]})
    outcome = await organizer.execute(SET_GROUPS, input={"userId": user_id, "groups": groups})
    assert outcome["code"] == "INVALID_INPUT"
    assert [problem["field"] for problem in outcome["fields"]] == ["groups"]
    assert (await member.execute(ME))["groups"] == ["5a"]


@pytest.mark.parametrize("user_id", ["", "x", "user_" + "f" * 24, "slot_" + "0" * 24, "\0"])
async def test_nobody_has_an_id_that_was_never_given(
    organizer_and_members: tuple[BookingClient, BookingClient], user_id: str
) -> None:
    organizer = organizer_and_members[1]
    outcomes = [
        await organizer.execute(SET_GROUPS, input={"userId": user_id, "groups": []}),
        await organizer.execute(BAN, user=user_id),
        await organizer.execute(UNBAN, user=user_id),
    ]
    assert [outcome["code"] for outcome in outcomes] == ["USER_NOT_FOUND"] * 3


async def test_groups_and_bans_are_seen_by_those_whom_they_concern(
    organizer_and_members: tuple[BookingClient, BookingClient],
) -> None:
    member, organizer = organizer_and_members
    user_id = await member.fetch_user_id()
    await organizer.execute(SET_GROUPS, input={"userId": user_id, "groups": ["5a"]})
    own = await member.execute(ME)
    assert (own["groups"], own["hasPassword"], own["banned"]) == (["5a"], True, None)
    assert (await member.execute(NODE, id=user_id)) == own
    seen = await organizer.execute(NODE, id=user_id)
    assert (seen["groups"], seen["banned"], seen["bannedAt"]) == (["5a"], False, None)
    assert await member.execute(NODE, id=await organizer.fetch_user_id()) is None


async def test_who_is_banned_is_out_at_both_processes_and_their_bookings_stay(
    two_apps: Pair,
    organizer_and_members: tuple[BookingClient, BookingClient],
    http: httpx.AsyncClient,
) -> None:
    organizer = organizer_and_members[1]
    email = f"{secrets.token_hex(8)}@slotlock.test"
    fields = {"name": "Eve", "email": email, "password": PASSWORD}
    session = await GraphQLTestClient(http, two_apps[1].url).execute(REGISTER, input=fields)
    eve = GraphQLTestClient(http, two_apps[0].url, session["accessToken"])
    user_id, slot_id = (await eve.execute(ME))["id"], await organizer.add_slot(capacity=2)
    assert (await eve.book(slot_id))["__typename"] == "Booked"

    banned = await organizer.execute(BAN, user=user_id, reason="Loud")
    assert (banned["banned"], banned["banReason"]) == (True, "Loud")
    assert banned["bannedAt"]
    assert await eve.error_code(ME) == "UNAUTHENTICATED"  # at once where the ban was made
    elsewhere = GraphQLTestClient(http, two_apps[1].url)
    refreshed = await elsewhere.execute(REFRESH, token=session["refreshToken"])
    assert refreshed["__typename"] == "InvalidSession"
    for password, code in ((PASSWORD, "BANNED"), ("wrong password", "INVALID_CREDENTIALS")):
        given = {"email": email, "password": password}
        assert (await elsewhere.execute(LOGIN, input=given))["code"] == code
    roster = "query($slot: ID!) { slotRoster(slotId: $slot) { nodes { user { id } } } }"
    assert (await organizer.execute(roster, slot=slot_id))["nodes"] == [{"user": {"id": user_id}}]

    unbanned = await organizer.execute(UNBAN, user=user_id)
    assert (unbanned["banned"], unbanned["banReason"]) == (False, None)
    again = await elsewhere.execute(LOGIN, input={"email": email, "password": PASSWORD})
    assert again["__typename"] == "Session"


async def test_bans_have_their_limits(
    two_apps: Pair,
    organizer_and_members: tuple[BookingClient, BookingClient],
    http: httpx.AsyncClient,
) -> None:
    member, organizer = organizer_and_members
    own = await organizer.fetch_user_id()
    assert (await organizer.execute(BAN, user=own))["code"] == "CANNOT_BAN_SELF"
    given = {"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD}
    token = (await GraphQLTestClient(http, two_apps[0].url).execute(LOGIN, input=given))[
        "accessToken"
    ]
    admin = GraphQLTestClient(http, two_apps[0].url, token)
    admins = (await admin.execute(ME))["id"]
    for act in (BAN, UNBAN):
        assert (await organizer.execute(act, user=admins))["code"] == "ADMIN_REQUIRED"
    assert (await admin.execute(BAN, user=own))["banned"] is True
    assert (await admin.execute(UNBAN, user=own))["banned"] is False
    long = await admin.execute(BAN, user=await member.fetch_user_id(), reason="x" * 201)
    assert long["code"] == "INVALID_INPUT"
