"""One's own sessions: seen, ended one by one or all at once, and by a new password."""

import asyncio
import secrets

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient, Json

Pair = tuple[AppProcess, AppProcess]

SESSION = "{ __typename ... on Session { accessToken refreshToken } ... on Refusal { code } }"
REGISTER = "mutation($input: RegisterInput!) { register(input: $input) " + SESSION + " }"
LOGIN = "mutation($input: LoginInput!) { login(input: $input) " + SESSION + " }"
REFRESH = "mutation($token: String!) { refreshSession(refreshToken: $token) " + SESSION + " }"
MINE = "{ mySessions { id createdAt lastUsedAt client current } }"
END = "mutation($id: ID!) { endSession(id: $id) { __typename ... on Refusal { code } } }"
END_OTHERS = "mutation { endOtherSessions }"
CHANGE = """mutation($old: String!, $new: String!) {
  changePassword(input: {currentPassword: $old, newPassword: $new}) {
    __typename ... on PasswordChanged { endedSessions } ... on Refusal { code }
    ... on InvalidInput { fields { field } }
  }
}"""
NODE = "query($id: ID!) { node(id: $id) { id } }"
ME = "{ me { id } }"
PASSWORD, NEW = "correct horse battery", "another horse battery"


class Person:
    """Somebody with an account, who signs in at any process."""

    def __init__(self, http: httpx.AsyncClient, apps: Pair) -> None:
        self.http = http
        self.apps = apps
        self.email = f"{secrets.token_hex(8)}@slotlock.test"

    async def register(self) -> GraphQLTestClient:
        """A client that is signed in to a new account."""
        nobody = GraphQLTestClient(self.http, self.apps[0].url)
        given = {"name": "Ada", "email": self.email, "password": PASSWORD}
        session = await nobody.execute(REGISTER, input=given)
        return GraphQLTestClient(self.http, self.apps[0].url, session["accessToken"])

    async def login(self, where: int = 0, password: str = PASSWORD) -> Json:
        """What comes of signing in."""
        given = {"email": self.email, "password": password}
        outcome: Json = await GraphQLTestClient(self.http, self.apps[where].url).execute(
            LOGIN, input=given
        )
        return outcome

    async def client(self, where: int = 0, password: str = PASSWORD) -> GraphQLTestClient:
        """A client that is signed in."""
        token = (await self.login(where, password))["accessToken"]
        return GraphQLTestClient(self.http, self.apps[where].url, token)


@pytest.fixture
def ada(http: httpx.AsyncClient, two_apps: Pair) -> Person:
    return Person(http, two_apps)


async def is_out(client: GraphQLTestClient) -> bool:
    return "errors" in await client.send(ME)


async def test_one_sees_ones_own_sessions_and_which_one_asks(ada: Person) -> None:
    first = await ada.register()
    ada.http.headers["User-Agent"] = "A browser " + "x" * 300
    second = await ada.client(1)
    for client, current in ((first, [False, True]), (second, [True, False])):
        sessions = await client.execute(MINE)
        assert [session["current"] for session in sessions] == current
        agents = [session["client"] for session in sessions]
        assert (len(agents[0]), agents[0][:9], agents[1][:6]) == (200, "A browser", "python")
        assert all(session["createdAt"] == session["lastUsedAt"] for session in sessions)
        assert await client.execute(NODE, id=sessions[0]["id"]) == {"id": sessions[0]["id"]}


async def test_a_refresh_is_a_use_of_the_same_session(ada: Person) -> None:
    await ada.register()
    session = await ada.login()
    client = GraphQLTestClient(ada.http, ada.apps[1].url, session["accessToken"])
    before = (await client.execute(MINE))[0]
    await client.execute(REFRESH, token=session["refreshToken"])
    after = (await client.execute(MINE))[0]
    assert after["lastUsedAt"] > before["lastUsedAt"]
    assert {**after, "lastUsedAt": before["lastUsedAt"]} == before


async def test_a_session_is_ended_from_another_as_often_as_one_likes(ada: Person) -> None:
    here, there = await ada.register(), await ada.client(1)
    (gid,) = [session["id"] for session in await here.execute(MINE) if not session["current"]]
    for _ in range(2):
        assert await here.execute(END, id=gid) == {"__typename": "SessionEnded"}
        assert await is_out(there)
        assert await here.execute(NODE, id=gid) is None
    assert [session["current"] for session in await here.execute(MINE)] == [True]


async def test_the_session_of_somebody_else_is_as_one_that_is_not_there(
    http: httpx.AsyncClient, two_apps: Pair, ada: Person
) -> None:
    hers, eve = await ada.register(), await Person(http, two_apps).register()
    gid = (await hers.execute(MINE))[0]["id"]
    not_found = {"__typename": "SessionNotFound", "code": "SESSION_NOT_FOUND"}
    for wrong in (gid, gid[:-1], "session_" + "0" * 56, "", "\u0000", gid + "\n", gid.upper()):
        assert await eve.execute(END, id=wrong) == not_found
        assert await eve.execute(NODE, id=wrong) is None
    # Of her own person, and none that there ever was: nothing happens to any.
    assert (await hers.execute(END, id=gid[:-32] + "0" * 32))["__typename"] == "SessionEnded"
    assert not await is_out(hers)
    for query in (MINE, END_OTHERS):
        assert await GraphQLTestClient(http, two_apps[0].url).error_code(query) == "UNAUTHENTICATED"


async def test_all_other_sessions_end_at_once(ada: Person) -> None:
    here = await ada.register()
    others = [await ada.client(where) for where in (0, 1, 1)]
    assert await here.execute(END_OTHERS) == 3
    assert [await is_out(client) for client in (here, *others)] == [False, True, True, True]
    assert await here.execute(END_OTHERS) == 0


async def test_a_new_password_ends_all_sessions_but_ones_own(ada: Person) -> None:
    here = await ada.register()
    others = [await ada.client(where) for where in (0, 1)]
    changed = await here.execute(CHANGE, old=PASSWORD, new=NEW)
    assert changed == {"__typename": "PasswordChanged", "endedSessions": 2}
    assert [await is_out(client) for client in (here, *others)] == [False, True, True]
    assert (await ada.login())["code"] == "INVALID_CREDENTIALS"
    assert (await ada.login(1, NEW))["__typename"] == "Session"


async def test_a_password_is_changed_only_by_who_knows_it_to_one_that_can_be_taken(
    ada: Person,
) -> None:
    here, other = await ada.register(), await ada.client(1)
    for wrong in (NEW, "", "x" * 5_000):
        assert (await here.execute(CHANGE, old=wrong, new=NEW))["code"] == "INVALID_CREDENTIALS"
    for new in ("short", "x" * 129):
        refused = await here.execute(CHANGE, old=PASSWORD, new=new)
        assert (refused["code"], refused["fields"]) == ("INVALID_INPUT", [{"field": "newPassword"}])
    assert not await is_out(other)
    assert (await ada.login())["__typename"] == "Session"


async def test_no_sign_in_or_refresh_at_the_same_time_outlives_a_new_password(
    ada: Person,
) -> None:
    here = await ada.register()
    family = await ada.login(1)
    *outcomes, changed = await asyncio.gather(
        *(ada.login(where) for where in (0, 1) * 3),
        GraphQLTestClient(ada.http, ada.apps[1].url).execute(REFRESH, token=family["refreshToken"]),
        here.execute(CHANGE, old=PASSWORD, new=NEW),
    )
    assert changed["__typename"] == "PasswordChanged"
    for session in [one for one in outcomes if one["__typename"] == "Session"]:
        for app in ada.apps:
            assert await is_out(GraphQLTestClient(ada.http, app.url, session["accessToken"]))
        refreshed = await here.execute(REFRESH, token=session["refreshToken"])
        assert refreshed["code"] == "INVALID_SESSION"
    assert len(await here.execute(MINE)) == 1


async def test_of_two_who_change_a_password_at_once_one_does(ada: Person) -> None:
    clients = [await ada.register(), await ada.client(1)]
    told = await asyncio.gather(
        *(c.execute(CHANGE, old=PASSWORD, new=NEW + str(i)) for i, c in enumerate(clients))
    )
    (winner,) = [i for i, one in enumerate(told) if one["__typename"] == "PasswordChanged"]
    assert [await is_out(client) for client in clients] == [winner == 1, winner == 0]
    assert (await ada.login(0, NEW + str(winner)))["__typename"] == "Session"
