"""Organizers and admins create, edit, erase and sign out users."""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from bson import ObjectId
from pymongo.asynchronous.client_session import AsyncClientSession

from slotlock.auth.container import Auth
from slotlock.auth.invitations import create_password_reset
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.user import Role, UserId
from slotlock.infrastructure.mongo.client import Database
from slotlock.infrastructure.mongo.users import account_admin_writer
from tests.support.apps.processes import Pair, database_url
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.calendars import parse_calendar
from tests.support.clients.client import GraphQLTestClient, Json, hours_from_now, open_websocket
from tests.support.clients.exports import csv_rows, download_export
from tests.support.clients.fixtures import Two
from tests.support.stores.users import auth_for_database, insert_user, new_email

MEMBER_COUNT = 1


CREATE = """mutation($input: CreateUserInput!) { createUser(input: $input) {
  __typename ... on Refusal { code }
  ... on UserCreated { invitationToken user { id name email role groups hasPassword } } } }"""
INVITE = """mutation($user: ID!) { inviteUser(userId: $user) {
  __typename ... on InvalidInput { fields { field } }
  ... on UserInvited { invitationToken invitationExpiresAt user { email } } } }"""
UPDATE = """mutation($input: UpdateUserInput!) { updateUser(input: $input) {
  __typename ... on Refusal { code } ... on UserUpdated { user { name email } } } }"""
SET_ROLE = """mutation($user: ID!, $role: Role!) { setUserRole(userId: $user, role: $role) {
  __typename ... on Refusal { code } ... on User { role } } }"""
END_SESSIONS = """mutation($user: ID!, $feed: Boolean! = false) {
  endUserSessions(userId: $user, endCalendarFeed: $feed) {
  __typename ... on Refusal { code } ... on UserSessionsEnded { endedSessions } } }"""
ERASE = """mutation($user: ID!) { eraseUser(userId: $user) {
  __typename ... on Refusal { code } ... on UserErased { user { name email erased } } } }"""
RESET = """mutation($user: ID!) { createPasswordReset(userId: $user) {
  __typename ... on PasswordResetCreated { resetToken user { hasPassword } } } }"""
LOG = """query($user: ID!) { auditLog(filter: {userId: $user}, first: 5) {
  nodes { action by { id } } } }"""
TOKEN_OWNER = "query($token: String!) { tokenOwner(token: $token) { name email username } }"
SET_PASSWORD = """mutation($token: String!, $password: String!) {
  setPassword(token: $token, password: $password) {
    __typename ... on Session { user { email } } } }"""
USERS = "query($text: String!) { users(filter: {text: $text}) { nodes { id } } }"
SET_GROUPS = "mutation($input: SetGroupsInput!) { setGroups(input: $input) { __typename } }"
FEED = "mutation { createCalendarFeed { url organizedUrl } }"


async def create(client: GraphQLTestClient, **fields: Any) -> Json:
    """Create a user and return the result."""
    created: Json = await client.execute(CREATE, input={"name": "Ada", **fields})
    return created


async def test_a_created_user_sets_a_password_with_the_returned_invitation(
    clients: Two, anonymous: GraphQLTestClient
) -> None:
    _, organizer = clients
    email = new_email()
    created = await create(organizer, email=email, groups=["Grade 5"])
    user = created["user"]
    assert (user["email"], user["role"], user["groups"]) == (email, "MEMBER", ["Grade 5"])
    assert user["hasPassword"] is False
    assert await create(organizer, email=email) == {
        "__typename": "EmailTaken",
        "code": "EMAIL_TAKEN",
    }
    owner = {"name": created["user"]["name"], "email": email, "username": None}
    assert await anonymous.execute(TOKEN_OWNER, token=created["invitationToken"]) == owner
    signed_in = await organizer.execute(
        SET_PASSWORD, token=created["invitationToken"], password="correct horse battery"
    )
    assert signed_in["user"]["email"] == email
    assert await anonymous.execute(TOKEN_OWNER, token=created["invitationToken"]) is None


async def set_password(client: GraphQLTestClient, token: str) -> str:
    """Set a password with a token and return the type of the result."""
    result = await client.execute(SET_PASSWORD, token=token, password="correct horse battery")
    return str(result["__typename"])


async def test_a_new_address_ends_the_invitation_and_gets_another(clients: Two) -> None:
    member, organizer = clients
    created, email = await create(organizer, email=new_email()), new_email()
    user_id, first_token = created["user"]["id"], created["invitationToken"]
    await organizer.execute(UPDATE, input={"userId": user_id, "email": email})
    assert await set_password(organizer, first_token) == "InvalidInvitation"
    assert await member.error_code(INVITE, user=user_id) == "FORBIDDEN"
    second = await organizer.execute(INVITE, user=user_id)
    third = await organizer.execute(INVITE, user=user_id)
    assert (third["__typename"], third["user"]["email"]) == ("UserInvited", email)
    assert await set_password(organizer, second["invitationToken"]) == "InvalidInvitation"
    await organizer.execute(UPDATE, input={"userId": user_id, "name": "Ada Lovelace"})
    assert await set_password(organizer, third["invitationToken"]) == "Session"
    invited = await organizer.execute(INVITE, user=user_id)
    assert invited == {"__typename": "InvalidInput", "fields": [{"field": "userId"}]}


async def test_a_new_address_ends_a_reset_token(
    auth: Auth, clients: Two, admin: BookingClient
) -> None:
    member, organizer = clients
    user = await insert_user(auth)
    reset = await create_password_reset(auth, user)
    assert reset is not None
    user_id = (await organizer.execute(USERS, text=user.email))["nodes"][0]["id"]
    await admin.execute(UPDATE, input={"userId": user_id, "email": new_email()})
    assert await set_password(member, reset.token) == "InvalidInvitation"


async def test_an_admin_lets_a_user_replace_a_forgotten_password(
    clients: Two, admin: BookingClient
) -> None:
    member, organizer = clients
    user_id, admin_id = await member.fetch_user_id(), await admin.fetch_user_id()
    first, second = [(await admin.execute(RESET, user=user_id))["resetToken"] for _ in range(2)]
    assert await member.fetch_user_id() == user_id  # still signed in
    assert await set_password(organizer, first) == "InvalidInvitation"
    assert await set_password(organizer, second) == "Session"
    assert await set_password(organizer, second) == "InvalidInvitation"
    assert await member.error_code("{ mySessions { id } }") == "UNAUTHENTICATED"
    logged = (await admin.execute(LOG, user=user_id))["nodes"]
    assert logged == [{"action": "PASSWORD_RESET_CREATED", "by": {"id": admin_id}}] * 2


async def test_only_an_admin_creates_edits_and_signs_out_organizers(
    clients: Two, admin: BookingClient
) -> None:
    member, organizer = clients
    refusal = {"__typename": "AdminRequired", "code": "ADMIN_REQUIRED"}
    assert await create(organizer, email=new_email(), role="ORGANIZER") == refusal
    created = await create(admin, email=new_email(), role="ORGANIZER")
    user_id = created["user"]["id"]
    assert await organizer.execute(UPDATE, input={"userId": user_id, "name": "Eve"}) == refusal
    assert await organizer.execute(END_SESSIONS, user=user_id) == refusal
    assert (await organizer.execute(INVITE, user=user_id))["__typename"] == "AdminRequired"
    assert (await admin.execute(INVITE, user=user_id))["__typename"] == "UserInvited"
    for document in (SET_ROLE, ERASE):
        variables = {"user": user_id, **({"role": "MEMBER"} if document is SET_ROLE else {})}
        assert await organizer.error_code(document, **variables) == "FORBIDDEN"
    assert await member.error_code(CREATE, input={"name": "E", "email": "e@e.test"}) == "FORBIDDEN"


async def test_a_renamed_user_is_found_and_takes_no_address_of_others(
    clients: Two, admin: BookingClient
) -> None:
    member, organizer = clients
    user_id, email, name = await member.fetch_user_id(), new_email(), f"N{new_email()[:12]}"
    updated = await admin.execute(
        UPDATE, input={"userId": user_id, "name": name, "email": email.upper()}
    )
    assert updated == {"__typename": "UserUpdated", "user": {"name": name, "email": email}}
    assert await organizer.execute(USERS, text=name) == {"nodes": [{"id": user_id}]}
    other = (await create(organizer, email=new_email()))["user"]["id"]
    taken = await organizer.execute(UPDATE, input={"userId": other, "email": email})
    assert taken["code"] == "EMAIL_TAKEN"


async def test_a_name_as_lists_show_it_is_listed_by_the_family_name(clients: Two) -> None:
    async def listed() -> list[str]:
        users = await organizer.execute(USERS, text=tag)
        return [each["id"] for each in users["nodes"]]

    _, organizer = clients
    tag = f"n{new_email()[:8]}"
    names = [f"{tag}winter, Ute", f"{tag}maier, Berta"]
    created = [await create(organizer, email=new_email(), name=each) for each in names]
    assert created[0]["user"]["name"] == f"Ute {tag}winter"
    winter, maier = (each["user"]["id"] for each in created)
    assert await listed() == [maier, winter]
    changed = {"userId": winter, "name": f"{tag}adler, Ute"}
    updated = await organizer.execute(UPDATE, input=changed)
    assert updated["user"]["name"] == f"Ute {tag}adler"
    assert await listed() == [winter, maier]


async def test_a_member_becomes_an_organizer_and_loses_the_role_again(
    clients: Two, admin: BookingClient
) -> None:
    member, _ = clients
    user_id = await member.fetch_user_id()
    assert (await admin.execute(SET_ROLE, user=user_id, role="ORGANIZER"))["role"] == "ORGANIZER"
    await member.execute(USERS, text="nobody")
    assert (await admin.execute(SET_ROLE, user=user_id, role="MEMBER"))["role"] == "MEMBER"
    assert await member.error_code(USERS, text="nobody") == "FORBIDDEN"


Check = Callable[[Database, UserId, AsyncClientSession], Awaitable[bool]]


async def demote_each_other(
    servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch, has_other_admin: Check
) -> list[Role]:
    """Let the only two admins take the role from each other, and return their roles.

    Both transactions have written the new role before either looks for another admin.
    """
    arrived: set[UserId] = set()
    both_arrived = asyncio.Barrier(2)

    async def check_together(*arguments: Any) -> bool:
        user_id: UserId = arguments[1]
        if user_id not in arrived:
            arrived.add(user_id)
            async with asyncio.timeout(20):
                await both_arrived.wait()
        return await has_other_admin(*arguments)

    monkeypatch.setattr(account_admin_writer, "has_other_admin", check_together)
    own_database = database_url(servers, f"two_admins_{secrets.token_hex(4)}")
    async with auth_for_database(own_database) as auth:
        first, second = await insert_user(auth, Role.ADMIN), await insert_user(auth)
        # Its audit note creates the collection, for which the two transactions would conflict.
        await auth.repositories.account_admin_writer.set_role(
            second.id, Role.ADMIN, None, auth.now()
        )
        await asyncio.gather(
            auth.repositories.account_admin_writer.set_role(
                first.id, Role.MEMBER, second.id, auth.now()
            ),
            auth.repositories.account_admin_writer.set_role(
                second.id, Role.MEMBER, first.id, auth.now()
            ),
        )
        found = await auth.repositories.users.find_many([first.id, second.id])
    return sorted(user.role for user in found.values())


async def test_of_two_admins_who_lose_the_role_at_once_one_stays_an_admin(
    servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    roles = await demote_each_other(servers, monkeypatch, account_admin_writer.has_other_admin)
    assert roles == [Role.ADMIN, Role.MEMBER]


async def test_control_with_a_read_of_the_other_admin_both_lose_the_role(
    servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reads_other_admin(
        database: Database, user_id: UserId, session: AsyncClientSession
    ) -> bool:
        other = {"_id": {"$ne": ObjectId(user_id)}, "role": Role.ADMIN.value}
        return await database["users"].find_one(other, session=session) is not None

    roles = await demote_each_other(servers, monkeypatch, reads_other_admin)
    assert roles == [Role.MEMBER, Role.MEMBER]


async def test_ending_the_sessions_of_a_user_closes_their_sockets_in_every_process(
    two_apps: Pair, clients: Two
) -> None:
    member, organizer = clients
    user_id = await member.fetch_user_id()
    await member.execute(FEED)
    async with open_websocket(two_apps[1], member.token) as socket:
        ended = await organizer.execute(END_SESSIONS, user=user_id)
        assert ended == {"__typename": "UserSessionsEnded", "endedSessions": 1}
        async with asyncio.timeout(20):
            await socket.connection.wait_closed()
    assert await member.error_code("{ mySessions { id } }") == "UNAUTHENTICATED"
    for ends_feed in (False, True, True):  # there is one, and no session
        ended = await organizer.execute(END_SESSIONS, user=user_id, feed=ends_feed)
        assert ended["endedSessions"] == 0
    log = await organizer.execute(LOG, user=user_id)
    assert [(each["action"], each["by"]["id"]) for each in log["nodes"]] == [
        *[("SESSIONS_ENDED", await organizer.fetch_user_id())] * 2,
        ("CALENDAR_FEED_CREATED", user_id),
    ]


async def test_an_erased_user_is_signed_out_unlisted_and_only_a_placeholder(
    two_apps: Pair, clients: Two, admin: BookingClient
) -> None:
    member, organizer = clients
    slot = await organizer.create_slot()
    booked = await member.book(slot["id"])
    user_id = booked["booking"]["user"]["id"]
    erased = await admin.execute(ERASE, user=user_id)
    assert erased["user"] == {"name": "Erased user", "email": None, "erased": True}
    assert (await admin.execute(ERASE, user=user_id))["__typename"] == "UserErased"
    assert await member.error_code("{ mySessions { id } }") == "UNAUTHENTICATED"
    free = await organizer.send("query($id: ID!) { slot(id: $id) { remaining } }", id=slot["id"])
    assert free["data"]["slot"]["remaining"] == 1
    assert await organizer.execute(USERS, text="Erased") == {"nodes": []}
    changed = await admin.execute(UPDATE, input={"userId": user_id, "name": "Eve"})
    assert changed["code"] == "USER_NOT_FOUND"
    own_id = await admin.fetch_user_id()
    assert (await admin.execute(ERASE, user=own_id))["code"] == "CANNOT_ERASE_SELF"


async def test_personal_data_has_bookings_and_no_secret(clients: Two, admin: BookingClient) -> None:
    member, organizer = clients
    slot = await organizer.create_slot(title="Own data")
    await member.book(slot["id"])
    await member.execute(FEED)
    user_id = await member.fetch_user_id()
    own = await member.http.get(f"{member.url}/personal-data", headers=member.headers)
    assert own.status_code == 200, own.text
    data = json.loads(own.text)
    assert data["bookings"][0]["slot"]["title"] == "Own data"
    assert data["account"][0]["name"] == "Somebody"
    assert len(data["sessions"]) == 1
    for secret in ("hash", "passwordHash", "refreshTokenId"):
        assert f'"{secret}"' not in own.text
    booking = data["bookings"][0]
    assert booking["slot"]["id"] == slot["id"]
    assert booking["createdAt"] == (await member.fetch_booking(booking["id"]))["createdAt"]
    path = f"/personal-data/{user_id}"
    by_admin = await admin.http.get(admin.url + path, headers=admin.headers)
    assert json.loads(by_admin.text)["bookings"] == data["bookings"]
    statuses = [
        (await client.http.get(client.url + path, headers=client.headers)).status_code
        for client in (organizer, BookingClient(member.http, member.url))
    ]
    assert statuses == [403, 401]


async def test_personal_data_has_the_names_and_ids_of_the_api(
    clients: Two, admin: BookingClient
) -> None:
    member, organizer = clients
    user_id, by = await member.fetch_user_id(), await organizer.fetch_user_id()
    begun = await organizer.add_slot(startTime=hours_from_now(-1))
    booked = (await organizer.book_slot(begun, userId=user_id))["booking"]
    full = await organizer.add_slot()
    await organizer.book_slot(full)
    waits = (await member.join(full))["entry"]
    ended = (await member.book_slot(await organizer.add_slot()))["booking"]
    await member.cancel_booking(ended["id"])
    await admin.execute(SET_GROUPS, input={"userId": user_id, "groups": ["5a"]})
    await member.execute("mutation { updateMe(wantsReminders: false) { __typename } }")
    own = await member.http.get(f"{member.url}/personal-data", headers=member.headers)
    data = json.loads(own.text)
    for name in ("_id", "schemaVersion", "userAgent", "start", "refusedTopics", "slot.id"):
        assert f'"{name}":' not in own.text
    account = data["account"][0]
    assert (account["id"], account["role"], account["hasPassword"]) == (user_id, "MEMBER", True)
    assert (account["wantsReminders"], account["wantsAnnouncements"]) == (False, True)
    (booking,) = data["bookings"]
    change = booking["history"][0]
    assert (booking["id"], booking["slot"]["id"], change["by"]) == (booked["id"], begun, by)
    assert (change["action"], change["after"]) == ("BOOKED", "CONFIRMED")
    assert change["overriddenRefusals"] == ["SLOT_STARTED"]
    assert [each["id"] for each in data["waitlistEntries"]] == [waits["id"]]
    assert [each["id"] for each in data["endedBookings"]] == [ended["id"]]
    assert data["auditEntries"][0]["action"] == "GROUPS_SET"


async def test_the_calendar_of_an_organizer_has_the_slots_they_created(clients: Two) -> None:
    member, organizer = clients
    await organizer.create_slot(title="Created here")
    feed = await organizer.execute(FEED)
    response = await organizer.http.get(organizer.url + feed["organizedUrl"])
    titles = [str(event["SUMMARY"]) for event in parse_calendar(response.text).walk("VEVENT")]
    assert titles == ["Created here"]
    of_member = await member.execute(FEED)
    assert of_member["organizedUrl"] is None
    path = of_member["url"].replace(".ics", "/organized.ics")
    assert (await member.http.get(member.url + path)).status_code == 404


LOGIN = """mutation($input: LoginInput!) { login(input: $input) {
  __typename ... on Session { accessToken user { email username } } } }"""
LOGIN_NAME_PROBLEMS = """mutation($input: CreateUserInput!) { createUser(input: $input) {
  ... on InvalidInput { fields { field } } } }"""


async def test_an_account_has_an_address_or_a_valid_user_name(clients: Two) -> None:
    _, organizer = clients
    username = secrets.token_hex(8)
    assert (await create(organizer, username=username))["__typename"] == "UserCreated"
    for login_name, field in (
        ({}, "email"),
        ({"email": "ada"}, "email"),
        ({"email": new_email(), "username": "ada"}, "username"),
        ({"username": f" {username.upper()}"}, "username"),  # taken
        *(({"username": each}, "username") for each in ("", "a b", "a@b", "a\uff20b", "a" * 101)),
    ):
        account = {"name": "Ada", **login_name}
        invalid = await organizer.execute(LOGIN_NAME_PROBLEMS, input=account)
        assert invalid == {"fields": [{"field": field}]}, login_name
    register = "mutation($input: RegisterInput!) { register(input: $input) { __typename } }"
    account = {"name": "Ada", "email": "ada", "password": "correct horse battery"}
    assert await organizer.execute(register, input=account) == {"__typename": "InvalidInput"}


async def test_a_user_without_an_address_signs_in_books_and_is_listed(
    clients: Two, admin: BookingClient
) -> None:
    member, organizer = clients
    username = f"änne.{secrets.token_hex(8)}"
    created = await create(organizer, username=f" {username.upper()} ")
    user_id = created["user"]["id"]
    assert await set_password(member, created["invitationToken"]) == "Session"
    credentials = {"email": username.title(), "password": "correct horse battery"}
    session = await organizer.execute(LOGIN, input=credentials)
    assert session["user"] == {"email": None, "username": username}
    assert await organizer.execute(USERS, text=username[:12]) == {"nodes": [{"id": user_id}]}

    user = BookingClient(member.http, member.url, session["accessToken"])
    team = await member.execute(
        """mutation { createTeam(input: {name: "T"}) { ... on Team { id } } }"""
    )
    invite = (
        """mutation($input: InviteToTeamInput!) { inviteToTeam(input: $input) { __typename } }"""
    )
    await member.execute(invite, input={"teamId": team["id"], "email": username})
    accept = "mutation($id: ID!) { acceptTeamInvitation(teamId: $id) { __typename } }"
    assert await user.execute(accept, id=team["id"]) == {"__typename": "Team"}
    slot = await organizer.create_slot()
    await user.book(slot["id"])
    (row,) = csv_rows(await download_export(organizer, f"slots/{slot['id']}.csv"))
    assert (row["name"], row["email"]) == ("Ada", username)
    own = await user.http.get(f"{user.url}/personal-data", headers=user.headers)
    (account,) = json.loads(own.text)["account"]
    assert (account.get("email"), account["username"]) == (None, username)

    email = new_email()
    await admin.execute(UPDATE, input={"userId": user_id, "email": email})
    log = """query($id: ID!) { auditLog(filter: {userId: $id}, first: 1) {
      nodes { edits { field before after } } } }"""
    (entry,) = (await organizer.execute(log, id=user_id))["nodes"]
    assert entry["edits"] == [
        {"field": "email", "before": None, "after": email},
        {"field": "username", "before": username, "after": None},
    ]
    assert (await organizer.execute(LOGIN, input=credentials))["__typename"] == "InvalidCredentials"


async def test_lists_go_on_after_a_user_name(clients: Two) -> None:
    _, organizer = clients
    group = secrets.token_hex(8)
    names = sorted(f"{letter}.{group}" for letter in "abc")
    for name in names:
        await create(organizer, username=name, groups=[group])
    document = """query($group: String!, $after: String) {
      users(filter: {group: $group}, first: 1, after: $after) {
        nodes { username } pageInfo { endCursor } } }"""
    listed, after = [], None
    while (page := await organizer.execute(document, group=group, after=after))["nodes"]:
        listed += [user["username"] for user in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
    assert listed == names
