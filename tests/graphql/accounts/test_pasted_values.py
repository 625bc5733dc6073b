"""Blanks and line ends around a pasted value are ignored at every door."""

import secrets

from tests.support.apps.processes import Pair
from tests.support.clients.booking_client import BookingClient
from tests.support.clients.client import GraphQLTestClient, open_websocket, slot_input
from tests.support.clients.user_files import post_user_file

PASSWORD = "correct horse battery"
SESSION = "{ __typename ... on Session { accessToken refreshToken user { name email } } }"
REGISTER = "mutation($input: RegisterInput!) { register(input: $input) " + SESSION + "}"
LOGIN = "mutation($input: LoginInput!) { login(input: $input) " + SESSION + "}"
REFRESH = "mutation($token: String!) { refreshSession(refreshToken: $token) " + SESSION + "}"
SET_PASSWORD = (
    """mutation($token: String!, $password: String!) {
  setPassword(token: $token, password: $password) """
    + SESSION
    + "}"
)
CREATE_USER = """mutation($input: CreateUserInput!) { createUser(input: $input) {
  __typename ... on UserCreated { invitationToken user { id name email groups } } } }"""
UPDATE_USER = """mutation($input: UpdateUserInput!) { updateUser(input: $input) {
  ... on UserUpdated { user { name email } } } }"""
BAN = """mutation($user: ID!, $reason: String) { banUser(userId: $user, reason: $reason) {
  ... on User { banReason } } }"""
CREATE_TEAM = """mutation($name: String!) {
  createTeam(input: {name: $name}) { ... on Team { id name } } }"""
CREATE_CAMPAIGN = """mutation($input: CreateCampaignInput!) {
  createCampaign(input: $input) { ... on Campaign { name } } }"""
CREATE_SLOT = """mutation($input: CreateSlotInput!) {
  createSlot(input: $input) { ... on Slot { title location choiceGroup } } }"""

AROUND = ("\u00a0\u3000\u200e", "\u202c\ufeff \r\n")


def pasted(text: str) -> str:
    """Return a text as it is copied from a document or a mail."""
    return AROUND[0] + text + AROUND[1]


async def test_addresses_names_and_tokens_of_accounts_may_be_pasted(
    two_apps: Pair, organizer: BookingClient
) -> None:
    app = two_apps[0]
    client = GraphQLTestClient(organizer.http, app.url)
    email = f"{secrets.token_hex(8)}@slotlock.test"
    ada = {"name": "Ren\u00e9", "email": email}
    account = {"name": pasted("Rene\u0301"), "email": pasted(email), "password": PASSWORD}
    registered = await client.execute(REGISTER, input=account)
    assert registered["user"] == ada
    credentials = {"email": pasted(email), "password": PASSWORD}
    assert (await client.execute(LOGIN, input=credentials))["user"] == ada
    refreshed = await client.execute(REFRESH, token=pasted(registered["refreshToken"]))
    assert refreshed["user"] == ada
    async with open_websocket(app, pasted(refreshed["accessToken"])) as websocket:
        await websocket.subscribe("1", "{ me { email } }")
        assert await websocket.next_result() == {"email": email}

    email = f"{secrets.token_hex(8)}@slotlock.test"
    fields = {"name": pasted("Ada"), "email": pasted(email), "groups": [pasted("5a")]}
    created = await organizer.execute(CREATE_USER, input=fields)
    user_id = created["user"].pop("id")
    assert created["user"] == {"name": "Ada", "email": email, "groups": ["5a"]}
    change = {"userId": user_id, "name": pasted("Ada B."), "email": pasted(email.upper())}
    updated = await organizer.execute(UPDATE_USER, input=change)
    assert updated["user"] == {"name": "Ada B.", "email": email}
    token = pasted(created["invitationToken"])
    accepted = await client.execute(SET_PASSWORD, token=token, password=PASSWORD)
    assert accepted["user"]["email"] == email
    file = f"email,name,groups\n{pasted(email).strip()},\u3000Ada B.\u00a0,\u00a05a\n"
    assert (await post_user_file(organizer, file.encode())).json()["unchanged"] == 1
    banned = await organizer.execute(BAN, user=user_id, reason=pasted("Loud"))
    assert banned == {"banReason": "Loud"}


async def test_names_and_titles_may_be_pasted(organizer: BookingClient) -> None:
    pasted_name, name = pasted("Rene\u0301"), "Ren\u00e9"
    assert (await organizer.execute(CREATE_TEAM, name=pasted_name))["name"] == name
    slot = slot_input() | dict.fromkeys(("title", "location", "choiceGroup"), pasted_name)
    created = await organizer.execute(CREATE_SLOT, input=slot)
    assert created == {"title": name, "location": name, "choiceGroup": name}
    times = {"opensAt": "2031-01-01T00:00:00Z", "closesAt": "2032-01-01T00:00:00Z"}
    campaign = {"name": pasted_name, **times}
    assert (await organizer.execute(CREATE_CAMPAIGN, input=campaign)) == {"name": name}


async def test_a_private_calendar_address_may_be_pasted(organizer: BookingClient) -> None:
    feed = await organizer.execute("mutation { createCalendarFeed { url } }")
    response = await organizer.http.get(f"{organizer.url}{feed['url']}%20%0D%0A")
    assert response.status_code == 200
