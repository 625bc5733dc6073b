"""Users list and end their sessions. A password change ends all other sessions."""

import asyncio
import secrets
from typing import Any

import httpx
import pytest

from tests.support.apps.processes import Pair
from tests.support.clients.client import GraphQLTestClient, Json

SESSION = "{ __typename ... on Session { accessToken refreshToken } ... on Refusal { code } }"
REGISTER = "mutation($input: RegisterInput!) { register(input: $input) " + SESSION + " }"
LOGIN = "mutation($input: LoginInput!) { login(input: $input) " + SESSION + " }"
REFRESH = "mutation($token: String!) { refreshSession(refreshToken: $token) " + SESSION + " }"
MY_SESSIONS = "{ mySessions { id createdAt lastUsedAt client current } }"
END_SESSION = "mutation($id: ID!) { endSession(id: $id) { __typename ... on Refusal { code } } }"
END_OTHER_SESSIONS = "mutation { endOtherSessions }"
CHANGE_PASSWORD = """mutation($old: String!, $new: String!) {
  changePassword(input: {currentPassword: $old, newPassword: $new}) {
    __typename ... on PasswordChanged { endedSessions } ... on Refusal { code }
    ... on InvalidInput { fields { field } }
  }
}"""
NODE = "query($id: ID!) { node(id: $id) { id } }"
ME = "{ me { id } }"
PASSWORD, NEW_PASSWORD = "correct horse battery", "another horse battery"


class PatientClient(GraphQLTestClient):
    """Waits as long as a process says that is too busy for a new document."""

    async def send(self, document: str, **variables: Any) -> Json:
        """Send a document until it is read, and return the whole response."""
        while True:
            result = await super().send(document, **variables)
            (error, *_) = result.get("errors") or [{"extensions": {}}]
            if error["extensions"].get("code") != "RATE_LIMITED":
                return result
            await asyncio.sleep(error["extensions"]["retryAfterMs"] / 1000)


class AccountUser:
    """A user with an account. Signs in through either of two processes."""

    def __init__(self, http: httpx.AsyncClient, apps: Pair) -> None:
        self.http = http
        self.apps = apps
        self.email = f"{secrets.token_hex(8)}@slotlock.test"

    async def register(self) -> PatientClient:
        """Create the account and return a client that is signed in."""
        anonymous = PatientClient(self.http, self.apps[0].url)
        input_ = {"name": "Ada", "email": self.email, "password": PASSWORD}
        session = await anonymous.execute(REGISTER, input=input_)
        return PatientClient(self.http, self.apps[0].url, session["accessToken"])

    async def login(self, app_index: int = 0, password: str = PASSWORD) -> Json:
        """Sign in and return the outcome."""
        input_ = {"email": self.email, "password": password}
        outcome: Json = await PatientClient(self.http, self.apps[app_index].url).execute(
            LOGIN, input=input_
        )
        return outcome

    async def client(self, app_index: int = 0, password: str = PASSWORD) -> PatientClient:
        """Sign in and return a client with the new session."""
        token = (await self.login(app_index, password))["accessToken"]
        return PatientClient(self.http, self.apps[app_index].url, token)


@pytest.fixture
def ada(http: httpx.AsyncClient, two_apps: Pair) -> AccountUser:
    return AccountUser(http, two_apps)


async def is_signed_out(client: PatientClient) -> bool:
    return "errors" in await client.send(ME)


async def test_a_user_sees_their_sessions_and_which_one_is_current(ada: AccountUser) -> None:
    first = await ada.register()
    ada.http.headers["User-Agent"] = "A browser " + "x" * 300
    second = await ada.client(1)
    for client, current in ((first, [False, True]), (second, [True, False])):
        sessions = await client.execute(MY_SESSIONS)
        assert [session["current"] for session in sessions] == current
        agents = [session["client"] for session in sessions]
        assert (len(agents[0]), agents[0][:9], agents[1][:6]) == (200, "A browser", "python")
        assert all(session["createdAt"] == session["lastUsedAt"] for session in sessions)
        assert await client.execute(NODE, id=sessions[0]["id"]) == {"id": sessions[0]["id"]}


async def test_a_refresh_updates_the_last_use_of_the_same_session(ada: AccountUser) -> None:
    await ada.register()
    session = await ada.login(1)  # by the clock of the process that refreshes it
    client = PatientClient(ada.http, ada.apps[1].url, session["accessToken"])
    before = (await client.execute(MY_SESSIONS))[0]
    await client.execute(REFRESH, token=session["refreshToken"])
    after = (await client.execute(MY_SESSIONS))[0]
    assert after["lastUsedAt"] > before["lastUsedAt"]
    assert {**after, "lastUsedAt": before["lastUsedAt"]} == before


async def test_ending_another_session_is_idempotent(ada: AccountUser) -> None:
    here, there = await ada.register(), await ada.client(1)
    (session_id,) = [
        session["id"] for session in await here.execute(MY_SESSIONS) if not session["current"]
    ]
    for _ in range(2):
        assert await here.execute(END_SESSION, id=session_id) == {"__typename": "SessionEnded"}
        assert await is_signed_out(there)
        assert await here.execute(NODE, id=session_id) is None
    assert [session["current"] for session in await here.execute(MY_SESSIONS)] == [True]


async def test_the_session_of_another_user_is_not_found(
    http: httpx.AsyncClient, two_apps: Pair, ada: AccountUser
) -> None:
    ada_client, eve_client = await ada.register(), await AccountUser(http, two_apps).register()
    session_id = (await ada_client.execute(MY_SESSIONS))[0]["id"]
    not_found = {"__typename": "SessionNotFound", "code": "SESSION_NOT_FOUND"}
    for other_id in (
        session_id,
        session_id[:-1],
        "session_" + "0" * 56,
        "",
        "\u0000",
        session_id + "\n",
        session_id.upper(),
    ):
        assert await eve_client.execute(END_SESSION, id=other_id) == not_found
        assert await eve_client.execute(NODE, id=other_id) is None
    # An id of Ada with an unknown session part ends no session.
    assert (await ada_client.execute(END_SESSION, id=session_id[:-32] + "0" * 32))[
        "__typename"
    ] == "SessionEnded"
    assert not await is_signed_out(ada_client)
    for query in (MY_SESSIONS, END_OTHER_SESSIONS):
        assert await PatientClient(http, two_apps[0].url).error_code(query) == "UNAUTHENTICATED"


async def test_all_other_sessions_end_at_once(ada: AccountUser) -> None:
    here = await ada.register()
    others = [await ada.client(app_index) for app_index in (0, 1, 1)]
    assert await here.execute(END_OTHER_SESSIONS) == 3
    assert [await is_signed_out(client) for client in (here, *others)] == [False, True, True, True]
    assert await here.execute(END_OTHER_SESSIONS) == 0


async def test_a_password_change_ends_all_other_sessions(ada: AccountUser) -> None:
    here = await ada.register()
    others = [await ada.client(app_index) for app_index in (0, 1)]
    changed = await here.execute(CHANGE_PASSWORD, old=PASSWORD, new=NEW_PASSWORD)
    assert changed == {"__typename": "PasswordChanged", "endedSessions": 2}
    assert [await is_signed_out(client) for client in (here, *others)] == [False, True, True]
    assert (await ada.login())["code"] == "INVALID_CREDENTIALS"
    assert (await ada.login(1, NEW_PASSWORD))["__typename"] == "Session"


async def test_a_password_change_needs_the_old_and_a_valid_new_one(ada: AccountUser) -> None:
    here, other = await ada.register(), await ada.client(1)
    for wrong in (NEW_PASSWORD, "", "x" * 5_000):
        assert (await here.execute(CHANGE_PASSWORD, old=wrong, new=NEW_PASSWORD))[
            "code"
        ] == "INVALID_CREDENTIALS"
    for new in ("short", "x" * 129):
        refused = await here.execute(CHANGE_PASSWORD, old=PASSWORD, new=new)
        assert (refused["code"], refused["fields"]) == ("INVALID_INPUT", [{"field": "newPassword"}])
    assert not await is_signed_out(other)
    assert (await ada.login())["__typename"] == "Session"


async def test_no_concurrent_session_survives_a_password_change(ada: AccountUser) -> None:
    here = await ada.register()
    family = await ada.login(1)
    *outcomes, changed = await asyncio.gather(
        *(ada.login(app_index) for app_index in (0, 1) * 3),
        PatientClient(ada.http, ada.apps[1].url).execute(REFRESH, token=family["refreshToken"]),
        here.execute(CHANGE_PASSWORD, old=PASSWORD, new=NEW_PASSWORD),
    )
    assert changed["__typename"] == "PasswordChanged"
    for session in [outcome for outcome in outcomes if outcome["__typename"] == "Session"]:
        for app in ada.apps:
            assert await is_signed_out(PatientClient(ada.http, app.url, session["accessToken"]))
        refreshed = await here.execute(REFRESH, token=session["refreshToken"])
        assert refreshed["code"] == "INVALID_SESSION"
    assert len(await here.execute(MY_SESSIONS)) == 1


async def test_one_of_two_concurrent_password_changes_succeeds(ada: AccountUser) -> None:
    clients = [await ada.register(), await ada.client(1)]
    responses = await asyncio.gather(
        *(
            client.send(CHANGE_PASSWORD, old=PASSWORD, new=NEW_PASSWORD + str(index))
            for index, client in enumerate(clients)
        )
    )
    (winner,) = [
        index
        for index, response in enumerate(responses)
        # The session of the other one may have ended before its request began.
        if "PasswordChanged" in str(response["data"])
    ]
    assert [await is_signed_out(client) for client in clients] == [winner == 1, winner == 0]
    assert (await ada.login(0, NEW_PASSWORD + str(winner)))["__typename"] == "Session"
