"""Organizers search users, set their groups and ban them."""

import secrets
from typing import Any

import httpx
import pytest

from slotlock.auth.admin.user_import import import_users
from slotlock.auth.container import Auth
from tests.support.apps.processes import ADMIN_EMAIL, ADMIN_PASSWORD, Pair
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.fixtures import Two
from tests.support.clients.user_files import generated_user_csv, user_csv

MEMBER_COUNT = 1


USER_FRAGMENT = (
    "fragment U on User { id name email role groups hasPassword banned bannedAt banReason }"
)
USER_OR_REFUSAL = "__typename ... on User { ...U } ... on Refusal { code message }"
USERS = f"""query($filter: UserFilter, $first: Int! = 20, $after: String) {{
  users(filter: $filter, first: $first, after: $after) {{
    nodes {{ ...U }} pageInfo {{ hasNextPage endCursor }}
  }} }} {USER_FRAGMENT}"""
FAMILY_NAMES = """query($filter: UserFilter, $first: Int!, $after: String) {
  users(filter: $filter, first: $first, after: $after) {
    nodes { name familyName } pageInfo { hasNextPage endCursor }
  } }"""
RENAME = """mutation($input: UpdateUserInput!) {
  updateUser(input: $input) { ... on UserUpdated { user { name } } } }"""
USER_GROUPS = """query($first: Int!, $after: String) {
  userGroups(first: $first, after: $after) {
    nodes { name userCount } pageInfo { hasNextPage endCursor }
  } }"""
SET_GROUPS = f"""mutation($input: SetGroupsInput!) {{ setGroups(input: $input) {{
  {USER_OR_REFUSAL} ... on InvalidInput {{ fields {{ field message }} }} }} }} {USER_FRAGMENT}"""
BAN = f"""mutation($user: ID!, $reason: String) {{
  banUser(userId: $user, reason: $reason) {{ {USER_OR_REFUSAL} }} }} {USER_FRAGMENT}"""
UNBAN = (
    f"mutation($user: ID!) {{ unbanUser(userId: $user) {{ {USER_OR_REFUSAL} }} }} {USER_FRAGMENT}"
)
ME = f"{{ me {{ ...U }} }} {USER_FRAGMENT}"
NODE = f"query($id: ID!) {{ node(id: $id) {{ id ... on User {{ ...U }} }} }} {USER_FRAGMENT}"
LOGIN = """mutation($input: LoginInput!) { login(input: $input) {
  __typename ... on Session { accessToken } ... on Refusal { code } } }"""
REGISTER = """mutation($input: RegisterInput!) { register(input: $input) {
  ... on Session { accessToken refreshToken } } }"""
REFRESH = "mutation($token: String!) { refreshSession(refreshToken: $token) { __typename } }"
PASSWORD = "correct horse battery"


@pytest.fixture
async def school(auth: Auth) -> str:
    """Import a group of 25 users and 2 choir members of one email domain.

    Returns the domain, which is also the name of the group.
    """
    # A hexadecimal name could match a search text like "ad".
    name = f"x{secrets.token_hex(8)}.test"
    await import_users(auth, generated_user_csv(name, 25, name), dry_run=False)
    body = user_csv(name, {"ada.byron": "Ada Lovelace", "rene": "Ren\u00e9 M\u00fcller"}, "choir")
    await import_users(auth, body, dry_run=False)
    return name


async def search(organizer: GraphQLTestClient, **filter_: Any) -> list[Json]:
    """Return all users that match a filter, fetched in pages of 10 users."""
    return await organizer.all_nodes(USERS, filter=filter_, first=10)


async def search_names(organizer: GraphQLTestClient, **filter_: Any) -> list[str]:
    """Return the names of the users that match a filter."""
    return [node["name"] for node in await search(organizer, **filter_)]


async def test_users_are_listed_by_family_name_where_a_file_gave_one(
    auth: Auth, clients: Two
) -> None:
    group = f"x{secrets.token_hex(8)}"
    names = [
        "Becker;Björn",
        "Zander;Ada",
        "Adler;Zoe",
        "Adler;Ann",
        ";Nora Aalto",
        "王;小明",
        "陈;静",
    ]
    logins = [f"{number}{group}" for number in range(len(names))]
    pupils = [f"{name};{login};{group}" for name, login in zip(names, logins, strict=True)]
    body = "\n".join(["last name;first name;username;class", *pupils]).encode()
    await import_users(auth, body, dry_run=False)

    async def listed() -> list[tuple[str, str | None]]:
        found = await clients[1].all_nodes(FAMILY_NAMES, filter={"group": group}, first=2)
        return [(each["name"], each["familyName"]) for each in found]

    adlers: list[tuple[str, str | None]] = [("Ann Adler", "Adler"), ("Zoe Adler", "Adler")]
    others: list[tuple[str, str | None]] = [("Nora Aalto", None), ("Ada Zander", "Zander")]
    others += [("陈静", "陈"), ("王小明", "王")]  # by pinyin: Chen, Wang
    assert await listed() == [*adlers, ("Björn Becker", "Becker"), *others]
    [becker] = await clients[1].all_nodes(USERS, filter={"text": logins[0]}, first=2)
    for at, name, family_name in ((4, "Zoe Zorn", None), (2, "Aaron Becker", "Becker")):
        await clients[1].execute(RENAME, input={"userId": becker["id"], "name": name})
        assert (await listed())[at] == (name, family_name)
    pupils[0] = f"Aachen;Aaron;{logins[0]};{group}"
    pupils[4] = f"Aalto;Nora;{logins[4]};{group}"  # the same name, split by now
    body = "\n".join(["last name;first name;username;class", *pupils]).encode()
    await import_users(auth, body, dry_run=False)
    assert (await listed())[:2] == [("Aaron Aachen", "Aachen"), ("Nora Aalto", "Aalto")]


async def test_pages_list_every_user_once(clients: Two, school: str) -> None:
    emails = [node["email"] for node in await search(clients[1], group=school)]
    # They have the same name.
    assert emails == sorted(f"person{number}@{school}" for number in range(25))


@pytest.mark.parametrize(
    "text", ["Ada", "love", "byron", "ada.byr", "LOVELACE ada", "ada.byron@{school}", "  ad "]
)
async def test_a_search_matches_prefixes_of_words_in_names_and_emails(
    clients: Two, school: str, text: str
) -> None:
    organizer = clients[1]
    assert await search_names(organizer, text=f"{text.format(school=school)} {school}") == [
        "Ada Lovelace"
    ]
    assert await search_names(organizer, text=f"ovelace {school}") == []


async def test_a_search_ignores_case_and_unicode_composition(clients: Two, school: str) -> None:
    for text in ("ren\u00e9", "rene\u0301", "M\u00dcLL", "mu\u0308ller"):
        assert await search_names(clients[1], text=f"{text} {school}") == ["Ren\u00e9 M\u00fcller"]


async def test_a_search_without_words_finds_no_user(clients: Two) -> None:
    assert await search_names(clients[1], text="!?.") == []


async def test_search_filters_are_combined(clients: Two, school: str) -> None:
    organizer = clients[1]
    (ada,) = await search(organizer, text=f"ada {school}", group="choir")
    assert ada["groups"] == ["choir"]
    assert ada["hasPassword"] is False
    await organizer.execute(BAN, user=ada["id"])
    assert await search_names(organizer, text=school, banned=True) == ["Ada Lovelace"]
    assert "Ada Lovelace" not in await search_names(organizer, text=school, banned=False)
    assert len(await search(organizer, text=school, withoutPassword=True)) == 27
    # Groups have no commas in their names.
    assert len(await search(organizer, text=school, group=f"choir,  {school}, band,")) == 27
    assert await search_names(organizer, text=school, withoutPassword=False) == []


async def test_each_group_is_listed_once_with_the_number_of_its_users(
    clients: Two, school: str
) -> None:
    organizer = clients[1]
    both, one = f"{school}-a", f"{school}-b"
    for name, groups in (("ada", [one, both]), ("rene", [both])):
        [found] = await search(organizer, text=f"{name} {school}")
        await organizer.execute(SET_GROUPS, input={"userId": found["id"], "groups": groups})
    listed = await organizer.all_nodes(USER_GROUPS, first=2)
    names = [each["name"] for each in listed]
    assert names == sorted(set(names))
    assert [each for each in listed if each["name"].startswith(school)] == [
        {"name": school, "userCount": 25},
        {"name": both, "userCount": 2},
        {"name": one, "userCount": 1},
    ]


@pytest.mark.parametrize("filter_", [{"text": "x" * 201}, {"group": "a,b*"}, {"group": "x" * 51}])
async def test_an_invalid_filter_is_bad_user_input(clients: Two, filter_: Json) -> None:
    assert await clients[1].error_code(USERS, filter=filter_) == "BAD_USER_INPUT"


async def test_setting_groups_normalizes_and_replaces_them(clients: Two) -> None:
    member, organizer = clients
    user_id = await member.fetch_user_id()
    input_ = {"userId": user_id, "groups": [" 5a ", "choir", "5a", ""]}
    for _ in range(2):
        outcome = await organizer.execute(SET_GROUPS, input=input_)
        assert (outcome["__typename"], outcome["groups"]) == ("User", ["5a", "choir"])
    assert (await member.execute(ME))["groups"] == ["5a", "choir"]
    outcome = await organizer.execute(SET_GROUPS, input={"userId": user_id, "groups": []})
    assert outcome["groups"] == []


@pytest.mark.parametrize(
    "groups", [["a;b"], ["a,b"], ["*"], ["x" * 51], ["a\nb"], [str(n) for n in range(21)]]
)
async def test_invalid_groups_change_nothing(clients: Two, groups: list[str]) -> None:
    member, organizer = clients
    user_id = await member.fetch_user_id()
    await organizer.execute(SET_GROUPS, input={"userId": user_id, "groups": ["5a"]})
    outcome = await organizer.execute(SET_GROUPS, input={"userId": user_id, "groups": groups})
    assert outcome["code"] == "INVALID_INPUT"
    assert [field["field"] for field in outcome["fields"]] == ["groups"]
    assert (await member.execute(ME))["groups"] == ["5a"]


@pytest.mark.parametrize("user_id", ["", "x", "user_" + "f" * 24, "slot_" + "0" * 24, "\0"])
async def test_an_unknown_user_id_is_not_found(clients: Two, user_id: str) -> None:
    organizer = clients[1]
    outcomes = [
        await organizer.execute(SET_GROUPS, input={"userId": user_id, "groups": []}),
        await organizer.execute(BAN, user=user_id),
        await organizer.execute(UNBAN, user=user_id),
    ]
    assert [outcome["code"] for outcome in outcomes] == ["USER_NOT_FOUND"] * 3


async def test_a_user_sees_their_groups_and_an_organizer_also_sees_bans(clients: Two) -> None:
    member, organizer = clients
    user_id = await member.fetch_user_id()
    await organizer.execute(SET_GROUPS, input={"userId": user_id, "groups": ["5a"]})
    own = await member.execute(ME)
    assert (own["groups"], own["hasPassword"], own["banned"]) == (["5a"], True, None)
    assert (await member.execute(NODE, id=user_id)) == own
    seen_by_organizer = await organizer.execute(NODE, id=user_id)
    assert (
        seen_by_organizer["groups"],
        seen_by_organizer["banned"],
        seen_by_organizer["bannedAt"],
    ) == (["5a"], False, None)
    assert await member.execute(NODE, id=await organizer.fetch_user_id()) is None


async def test_a_ban_signs_the_user_out_everywhere_and_preserves_bookings(
    two_apps: Pair, clients: Two, http: httpx.AsyncClient
) -> None:
    organizer = clients[1]
    email = f"{secrets.token_hex(8)}@slotlock.test"
    fields = {"name": "Eve", "email": email, "password": PASSWORD}
    session = await GraphQLTestClient(http, two_apps[1].url).execute(REGISTER, input=fields)
    eve = GraphQLTestClient(http, two_apps[0].url, session["accessToken"])
    user_id, slot_id = (await eve.execute(ME))["id"], await organizer.add_slot(capacity=2)
    assert (await eve.book(slot_id))["__typename"] == "Booked"

    banned = await organizer.execute(BAN, user=user_id, reason="Loud")
    assert (banned["banned"], banned["banReason"]) == (True, "Loud")
    assert banned["bannedAt"]
    # The process that made the ban rejects the access token at once.
    assert await eve.error_code(ME) == "UNAUTHENTICATED"
    other_process = GraphQLTestClient(http, two_apps[1].url)
    refreshed = await other_process.execute(REFRESH, token=session["refreshToken"])
    assert refreshed["__typename"] == "InvalidSession"
    for password, code in ((PASSWORD, "BANNED"), ("wrong password", "INVALID_CREDENTIALS")):
        credentials = {"email": email, "password": password}
        assert (await other_process.execute(LOGIN, input=credentials))["code"] == code
    roster = "query($slot: ID!) { slotRoster(slotId: $slot) { nodes { user { id } } } }"
    assert (await organizer.execute(roster, slot=slot_id))["nodes"] == [{"user": {"id": user_id}}]

    unbanned = await organizer.execute(UNBAN, user=user_id)
    assert (unbanned["banned"], unbanned["banReason"]) == (False, None)
    again = await other_process.execute(LOGIN, input={"email": email, "password": PASSWORD})
    assert again["__typename"] == "Session"


async def test_ban_permissions_and_reason_length_are_enforced(
    two_apps: Pair, clients: Two, http: httpx.AsyncClient
) -> None:
    member, organizer = clients
    organizer_id = await organizer.fetch_user_id()
    assert (await organizer.execute(BAN, user=organizer_id))["code"] == "CANNOT_BAN_SELF"
    credentials = {"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD}
    token = (await GraphQLTestClient(http, two_apps[0].url).execute(LOGIN, input=credentials))[
        "accessToken"
    ]
    admin = GraphQLTestClient(http, two_apps[0].url, token)
    admin_id = (await admin.execute(ME))["id"]
    for operation in (BAN, UNBAN):
        assert (await organizer.execute(operation, user=admin_id))["code"] == "ADMIN_REQUIRED"
    assert (await admin.execute(BAN, user=organizer_id))["banned"] is True
    assert (await admin.execute(UNBAN, user=organizer_id))["banned"] is False
    outcome = await admin.execute(BAN, user=await member.fetch_user_id(), reason="x" * 201)
    assert outcome["code"] == "INVALID_INPUT"


UPDATE_ME = """mutation($locale: String) { updateMe(locale: $locale) {
  __typename ... on User { locale } ... on InvalidInput { fields { field } } } }"""
WANTS = "wantsReminders wantsAnnouncements"
PREFER = f"""mutation($reminders: Boolean, $announcements: Boolean) {{
  updateMe(wantsReminders: $reminders, wantsAnnouncements: $announcements) {{
    ... on User {{ locale {WANTS} }} }} }}"""
LOCALE = "query($id: ID!) { node(id: $id) { ... on User { locale } } }"


async def test_users_choose_a_language_that_they_and_organizers_see(clients: Two) -> None:
    member, organizer = clients
    user_id = await member.fetch_user_id()
    assert await member.execute("{ me { locale } }") == {"locale": None}
    for tag, stored in ((" ZH-hant-tw ", "zh-Hant-TW"), ("de", "de"), ("gsw-CH", "gsw-CH")):
        assert (await member.execute(UPDATE_ME, locale=tag))["locale"] == stored
        assert await organizer.execute(LOCALE, id=user_id) == {"locale": stored}
    assert (await member.execute("mutation { updateMe { ... on User { locale } } }")) == {
        "locale": "gsw-CH"
    }
    for invalid in ("", "d", "de_DE", "de-", "deutsch!", "x" * 36, "de-" + "a" * 33):
        refused = await member.execute(UPDATE_ME, locale=invalid)
        assert refused == {"__typename": "InvalidInput", "fields": [{"field": "locale"}]}, invalid
    assert (await member.execute(UPDATE_ME, locale=None))["locale"] is None
    slot_id = await organizer.add_slot()
    booked_by = (
        "mutation($s: ID!) { bookSlot(input: {slotId: $s}) { ... on Booked { slot {id} } } }"
    )
    await organizer.execute(UPDATE_ME, locale="de")
    await organizer.execute(booked_by, s=slot_id)
    organizer_id = await organizer.fetch_user_id()
    assert await member.execute(LOCALE, id=organizer_id) in (None, {"locale": None})


async def test_users_choose_which_mails_they_get_and_only_they_and_organizers_see_it(
    clients: Two,
) -> None:
    member, organizer = clients
    both = {"wantsReminders": True, "wantsAnnouncements": True}
    assert await member.execute(f"{{ me {{ {WANTS} }} }}") == both
    await member.execute(UPDATE_ME, locale="de")
    changed = await member.execute(PREFER, reminders=False)
    assert changed == {"locale": "de", **both, "wantsReminders": False}
    changed = await member.execute(PREFER, announcements=False)
    assert changed == {"locale": "de", "wantsReminders": False, "wantsAnnouncements": False}
    changed = await member.execute(PREFER, reminders=True)
    assert changed == {"locale": "de", **both, "wantsAnnouncements": False}
    user_id = await member.fetch_user_id()
    query = f"query($id: ID!) {{ node(id: $id) {{ ... on User {{ {WANTS} }} }} }}"
    assert await organizer.execute(query, id=user_id) == {**both, "wantsAnnouncements": False}
    with pytest.raises(AssertionError, match="cannot be null"):
        await member.execute(PREFER, reminders=None)
