"""What comes late is done for who asks by then: after a long body, after other root fields."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from redis import Redis
from websockets.exceptions import ConnectionClosed

from slotlock.auth.container import Auth
from slotlock.auth.sessions import open_session
from slotlock.domain.users.user import Role, User
from slotlock.graphql.execution.documents import DocumentCache
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.deployment import lock_key
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient, Json, hours_from_now, open_websocket
from tests.support.clients.raw_connection import open_tcp_connection, read_until, read_until_closed
from tests.support.clients.user_files import generated_user_csv
from tests.support.stores.lock_nodes import eventually
from tests.support.stores.users import auth_for_database, insert_user

LOGOUT = "mutation { logout }"
ADDRESS = "createCalendarFeed { __typename }"
THEIRS = "{ myCalendarFeed { __typename } }"
BOOK = "bookSlot(input: {slotId: $id, waitMs: 20000}) { __typename }"
CREATE = f"""createSlot(input: {{
  title: "Another", startTime: "{hours_from_now(24)}", endTime: "{hours_from_now(25)}"
}}) {{ __typename }}"""
BOOKED = "query($id: ID!) { slot(id: $id) { myBooking { status } } }"


@dataclass(frozen=True)
class Organiser:
    """Somebody who is signed in twice."""

    user: User
    here: GraphQLTestClient
    elsewhere: GraphQLTestClient


@pytest.fixture
async def auth(app: AppProcess) -> AsyncIterator[Auth]:
    async with auth_for_database(app.environment["SLOTLOCK_MONGO_URL"]) as opened:
        yield opened


@pytest.fixture
async def ada(app: AppProcess, http: httpx.AsyncClient, auth: Auth) -> Organiser:
    user = await insert_user(auth, Role.ORGANIZER)
    tokens = [(await open_session(auth, user)).access_token for _ in range(2)]
    here, elsewhere = [GraphQLTestClient(http, app.url, token) for token in tokens]
    return Organiser(user, here, elsewhere)


Meanwhile = Callable[[Auth, Organiser], Coroutine[Any, Any, None]]


async def nothing(auth: Auth, ada: Organiser) -> None:
    """All stays as it is."""


async def sign_out(auth: Auth, ada: Organiser) -> None:
    """The session ends."""
    assert await ada.here.execute(LOGOUT) is True


async def demote(auth: Auth, ada: Organiser) -> None:
    """The role is taken away."""
    await auth.users.set_role(ada.user.email, Role.MEMBER, None, auth.now())


async def in_halves(
    who: GraphQLTestClient,
    app: AppProcess,
    head: str,
    body: bytes,
    meanwhile: Coroutine[Any, Any, None],
) -> tuple[int, Json]:
    """What is answered to a body of which half came before something else happened."""
    half = len(body) // 2
    more = f"Authorization: Bearer {who.token}\r\nContent-Length: {len(body)}\r\n"
    with open_tcp_connection(app) as peer:
        lines = f"{head}Host: here\r\n{more}Expect: 100-continue\r\nConnection: close\r\n\r\n"
        peer.sendall(lines.encode())
        # Whoever asks has been looked at, where that comes before the body.
        read_until(peer, b"100 Continue\r\n\r\n")
        peer.sendall(body[:half])
        await meanwhile
        peer.sendall(body[half:])
        top, _, told = read_until_closed(peer).partition(b"\r\n\r\n")
    return int(top.split()[1]), json.loads(told)


@pytest.mark.parametrize("query", ["", "?dryRun=true"])
@pytest.mark.parametrize(
    ("meanwhile", "status", "code"),
    [(nothing, 200, None), (sign_out, 401, "UNAUTHENTICATED"), (demote, 403, "FORBIDDEN")],
)
async def test_a_file_is_imported_for_who_still_organises_when_the_last_of_it_came(
    app: AppProcess, auth: Auth, ada: Organiser, meanwhile: Meanwhile, status: int,
    code: str | None, query: str,
) -> None:  # fmt: skip
    head = f"POST /users/import{query} HTTP/1.1\r\nContent-Type: text/csv\r\n"
    body = generated_user_csv(f"{ada.user.id}.test", 30)
    answered, told = await in_halves(ada.here, app, head, body, meanwhile(auth, ada))
    assert (answered, told.get("code")) == (status, code)


@pytest.mark.parametrize("signs_out", [False, True])
async def test_a_request_is_answered_for_who_asks_when_the_last_of_it_came(
    app: AppProcess, auth: Auth, ada: Organiser, signs_out: bool
) -> None:
    head = "POST /graphql HTTP/1.1\r\nContent-Type: application/json\r\n"
    body = json.dumps({"query": f"mutation {{ {ADDRESS} }}"}).encode()
    meanwhile = sign_out if signs_out else nothing
    _, told = await in_halves(ada.here, app, head, body, meanwhile(auth, ada))
    codes = [error["extensions"]["code"] for error in told.get("errors", [])]
    assert codes == (["UNAUTHENTICATED"] if signs_out else [])
    assert (await ada.elsewhere.execute(THEIRS) is None) is signs_out


async def by_post(who: GraphQLTestClient, app: AppProcess, query: str) -> Json:
    """The answer to a request."""
    return await who.send(query)


async def by_events(who: GraphQLTestClient, app: AppProcess, query: str) -> Json:
    """The answer as an event."""
    headers = {**who.headers, "Accept": "text/event-stream"}
    response = await who.http.post(who.url + "/graphql", json={"query": query}, headers=headers)
    answer: Json = json.loads(response.text.partition("data: ")[2].partition("\n")[0])
    return answer


Ask = Callable[[GraphQLTestClient, AppProcess, str], Coroutine[Any, Any, Json]]


@pytest.mark.parametrize("ask", [by_post, by_events])
@pytest.mark.parametrize(
    "query",
    [
        f"mutation {{ logout {ADDRESS} }}",
        f"mutation {{ ...Both }} fragment Both on Mutation {{ logout {ADDRESS} }}",
        f'mutation {{ endSession(id: "MINE") {{ __typename }} ... {{ {ADDRESS} }} }}',
        f"mutation {{ __typename logout revokeCalendarFeed {ADDRESS} }}",
    ],
)
async def test_what_comes_after_a_field_that_ends_the_session_is_not_done(
    app: AppProcess, ada: Organiser, ask: Ask, query: str
) -> None:
    sessions = await ada.here.execute("{ mySessions { id current } }")
    (mine,) = [session["id"] for session in sessions if session["current"]]
    answer = await ask(ada.here, app, query.replace("MINE", mine))
    (error,) = answer["errors"]
    assert error["extensions"]["code"] == "UNAUTHENTICATED"
    first = "revokeCalendarFeed" if "revoke" in query else "createCalendarFeed"
    assert error["path"] == [first]
    assert await ada.here.error_code("{ me { id } }") == "UNAUTHENTICATED"
    assert await ada.elsewhere.execute(THEIRS) is None


async def test_a_socket_does_nothing_more_for_who_signed_out_in_the_same_mutation(
    app: AppProcess, ada: Organiser
) -> None:
    async def refused() -> float:
        text = (await ada.here.http.get(app.url + "/metrics")).text
        labels = '{operation="createCalendarFeed",outcome="UNAUTHENTICATED"}'
        counted = text.partition(f"slotlock_requests_total{labels} ")[2].partition("\n")[0]
        return float(counted or 0)

    before = await refused()
    async with open_websocket(app, ada.here.token) as opened:
        await opened.subscribe("1", f"mutation {{ logout {ADDRESS} }}")
        # The socket closes, and whether that is before the answer is open.
        with contextlib.suppress(ConnectionClosed):
            while True:
                await opened.receive()

    async def done() -> bool:
        return await refused() > before

    await eventually(done, "the mutation is over")
    assert await ada.elsewhere.execute(THEIRS) is None


@pytest.mark.parametrize(
    ("meanwhile", "code"),
    [(nothing, None), (sign_out, "UNAUTHENTICATED"), (demote, "FORBIDDEN")],
)
async def test_what_others_end_while_a_field_waits_counts_for_the_fields_after_it(
    app: AppProcess, auth: Auth, ada: Organiser, meanwhile: Meanwhile, code: str | None
) -> None:
    slot_id = (await ada.here.create_slot())["id"]
    lock = lock_key(slot_id)
    query = f"mutation($id: ID!) {{ {BOOK} {CREATE} }}"
    sent = {"query": query, "variables": {"id": slot_id}}
    url, headers = ada.here.url + "/graphql", ada.here.headers
    with Redis.from_url(app.environment["SLOTLOCK_REDIS_URL"]) as redis:
        redis.set(lock, "somebody-else:1", px=60_000)
        asking = asyncio.create_task(ada.here.http.post(url, json=sent, headers=headers))

        async def waits() -> bool:
            return bool(redis.exists(lock.replace(":lock", ":queue")))

        await eventually(waits, "it waits")
        await meanwhile(auth, ada)
        redis.delete(lock)
        answer = (await asking).json()
    told = [(error["path"], error["extensions"]["code"]) for error in answer.get("errors", [])]
    assert told == ([(["createSlot"], code)] if code else [])
    assert (await ada.elsewhere.execute(BOOKED, id=slot_id))["myBooking"] == {"status": "CONFIRMED"}


async def test_fields_of_a_session_that_goes_on_are_done_in_order_also_those_for_nobody(
    app: AppProcess, ada: Organiser
) -> None:
    login = 'login(input: {email: "nobody@slotlock.test", password: "not theirs"}) { __typename }'
    query = f"""mutation {{
      a: revokeCalendarFeed b: {ADDRESS} c: revokeCalendarFeed d: revokeCalendarFeed
      e: logout f: {login}
    }}"""
    for who, ask in ((ada.here, by_post), (ada.elsewhere, by_events)):
        answer = await ask(who, app, query)
        assert "errors" not in answer
        assert list(answer["data"].items()) == [
            ("a", False), ("b", {"__typename": "CalendarFeed"}), ("c", True), ("d", False),
            ("e", True), ("f", {"__typename": "InvalidCredentials"}),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "several"),
    [
        (f"mutation {{ {ADDRESS} }}", False),
        ("mutation { ...One } fragment One on Mutation { logout }", False),
        ("{ a: me { id } b: me { id } }", False),
        (f"mutation {{ logout {ADDRESS} }}", True),
        ("mutation { ...Two } fragment Two on Mutation { a: logout b: logout }", True),
    ],
)
def test_only_mutations_of_several_fields_are_looked_at_again(text: str, several: bool) -> None:
    documents = DocumentCache(executable_schema, introspection=False)
    assert documents.resolve_operation(text, None).has_several_mutations is several
