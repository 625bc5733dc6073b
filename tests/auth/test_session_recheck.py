"""The session is checked again after a long body and between the root fields of a mutation."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from redis import Redis
from websockets.exceptions import ConnectionClosed

from slotlock.auth.admin import account_admin
from slotlock.auth.container import Auth
from slotlock.auth.sessions import open_session
from slotlock.domain.users.user import Role, User
from slotlock.graphql.execution.document_cache import DocumentCache
from slotlock.graphql.schema.schema import executable_schema
from tests.support.apps.deployment import lock_key
from tests.support.apps.processes import AppProcess
from tests.support.clients.client import GraphQLTestClient, Json, hours_from_now, open_websocket
from tests.support.clients.user_files import generated_user_csv
from tests.support.polling import eventually
from tests.support.stores.users import insert_user
from tests.support.transport.raw_connection import (
    open_tcp_connection,
    read_until,
    read_until_closed,
)

LOGOUT = "mutation { logout }"
CREATE_FEED = "createCalendarFeed { __typename }"
MY_FEED = "{ myCalendarFeed { __typename } }"
BOOK = "bookSlot(input: {slotId: $id, waitMs: 20000}) { __typename }"
CREATE = f"""createSlot(input: {{
  title: "Another", startTime: "{hours_from_now(24)}", endTime: "{hours_from_now(25)}"
}}) {{ __typename }}"""
MY_BOOKING = "query($id: ID!) { slot(id: $id) { myBooking { status } } }"


@dataclass(frozen=True)
class OrganizerWithTwoSessions:
    """An organizer with two sessions."""

    user: User
    client: GraphQLTestClient
    other_client: GraphQLTestClient


@pytest.fixture
def mongo_url(app: AppProcess) -> str:
    return app.environment["SLOTLOCK_MONGO_URL"]


@pytest.fixture
async def ada(app: AppProcess, http: httpx.AsyncClient, auth: Auth) -> OrganizerWithTwoSessions:
    user = await insert_user(auth, Role.ORGANIZER)
    tokens = [(await open_session(auth, user)).access_token for _ in range(2)]
    client, other_client = [GraphQLTestClient(http, app.url, token) for token in tokens]
    return OrganizerWithTwoSessions(user, client, other_client)


Interruption = Callable[[Auth, OrganizerWithTwoSessions], Coroutine[Any, Any, None]]


async def do_nothing(auth: Auth, ada: OrganizerWithTwoSessions) -> None:
    """Change nothing."""


async def log_out(auth: Auth, ada: OrganizerWithTwoSessions) -> None:
    """End the session."""
    assert await ada.client.execute(LOGOUT) is True


async def demote(auth: Auth, ada: OrganizerWithTwoSessions) -> None:
    """Remove the role."""
    await account_admin.set_role(auth, None, ada.user.id, Role.MEMBER)


async def post_in_halves(
    client: GraphQLTestClient,
    app: AppProcess,
    head: str,
    body: bytes,
    interruption: Coroutine[Any, Any, None],
) -> tuple[int, Json]:
    """Send half of the body, wait for the interruption, send the rest. Return status and JSON."""
    half = len(body) // 2
    more_headers = f"Authorization: Bearer {client.token}\r\nContent-Length: {len(body)}\r\n"
    with open_tcp_connection(app) as connection:
        lines = (
            f"{head}Host: here\r\n{more_headers}Expect: 100-continue\r\nConnection: close\r\n\r\n"
        )
        connection.sendall(lines.encode())
        # By now the server has authenticated the caller, if it does so before it reads the body.
        read_until(connection, b"100 Continue\r\n\r\n")
        connection.sendall(body[:half])
        await interruption
        connection.sendall(body[half:])
        response_head, _, response_body = read_until_closed(connection).partition(b"\r\n\r\n")
    return int(response_head.split()[1]), json.loads(response_body)


@pytest.mark.parametrize("query", ["", "?dryRun=true"])
@pytest.mark.parametrize(
    ("interruption", "status", "code"),
    [(do_nothing, 200, None), (log_out, 401, "UNAUTHENTICATED"), (demote, 403, "FORBIDDEN")],
)
async def test_an_import_needs_an_organizer_when_the_end_of_the_file_arrives(
    app: AppProcess, auth: Auth, ada: OrganizerWithTwoSessions, interruption: Interruption,
    status: int, code: str | None, query: str,
) -> None:  # fmt: skip
    head = f"POST /users/import{query} HTTP/1.1\r\nContent-Type: text/csv\r\n"
    body = generated_user_csv(f"{ada.user.id}.test", 30)
    actual_status, response = await post_in_halves(
        ada.client, app, head, body, interruption(auth, ada)
    )
    assert (actual_status, response.get("code")) == (status, code)


@pytest.mark.parametrize("logs_out", [False, True])
async def test_a_request_needs_an_open_session_when_the_end_of_its_body_arrives(
    app: AppProcess, auth: Auth, ada: OrganizerWithTwoSessions, logs_out: bool
) -> None:
    head = "POST /graphql HTTP/1.1\r\nContent-Type: application/json\r\n"
    body = json.dumps({"query": f"mutation {{ {CREATE_FEED} }}"}).encode()
    interruption = log_out if logs_out else do_nothing
    _, response = await post_in_halves(ada.client, app, head, body, interruption(auth, ada))
    codes = [error["extensions"]["code"] for error in response.get("errors", [])]
    assert codes == (["UNAUTHENTICATED"] if logs_out else [])
    assert (await ada.other_client.execute(MY_FEED) is None) is logs_out


async def send_by_post(client: GraphQLTestClient, app: AppProcess, query: str) -> Json:
    """Return the JSON response of a POST request."""
    return await client.send(query)


async def send_by_event_stream(client: GraphQLTestClient, app: AppProcess, query: str) -> Json:
    """Return the first event of an event stream."""
    headers = {**client.headers, "Accept": "text/event-stream"}
    response = await client.http.post(
        client.url + "/graphql", json={"query": query}, headers=headers
    )
    event: Json = json.loads(response.text.partition("data: ")[2].partition("\n")[0])
    return event


Send = Callable[[GraphQLTestClient, AppProcess, str], Coroutine[Any, Any, Json]]


@pytest.mark.parametrize("send", [send_by_post, send_by_event_stream])
@pytest.mark.parametrize(
    "query",
    [
        f"mutation {{ logout {CREATE_FEED} }}",
        f"mutation {{ ...Both }} fragment Both on Mutation {{ logout {CREATE_FEED} }}",
        f'mutation {{ endSession(id: "CURRENT") {{ __typename }} ... {{ {CREATE_FEED} }} }}',
        f"mutation {{ __typename logout revokeCalendarFeed {CREATE_FEED} }}",
    ],
)
async def test_fields_after_one_that_ends_the_session_are_not_executed(
    app: AppProcess, ada: OrganizerWithTwoSessions, send: Send, query: str
) -> None:
    sessions = await ada.client.execute("{ mySessions { id current } }")
    (current_id,) = [session["id"] for session in sessions if session["current"]]
    response = await send(ada.client, app, query.replace("CURRENT", current_id))
    (error,) = response["errors"]
    assert error["extensions"]["code"] == "UNAUTHENTICATED"
    next_field = "revokeCalendarFeed" if "revoke" in query else "createCalendarFeed"
    assert error["path"] == [next_field]
    assert await ada.client.error_code("{ me { id } }") == "UNAUTHENTICATED"
    assert await ada.other_client.execute(MY_FEED) is None


async def test_a_socket_executes_no_field_after_a_logout_in_the_same_mutation(
    app: AppProcess, ada: OrganizerWithTwoSessions
) -> None:
    async def rejected_count() -> float:
        text = (await ada.client.http.get(app.url + "/metrics")).text
        labels = '{operation="createCalendarFeed",outcome="UNAUTHENTICATED"}'
        value = text.partition(f"slotlock_requests_total{labels} ")[2].partition("\n")[0]
        return float(value or 0)

    before = await rejected_count()
    async with open_websocket(app, ada.client.token) as websocket:
        await websocket.subscribe("1", f"mutation {{ logout {CREATE_FEED} }}")
        # The socket closes, perhaps before it sends the response.
        with contextlib.suppress(ConnectionClosed):
            while True:
                await websocket.receive()

    async def is_over() -> bool:
        return await rejected_count() > before

    await eventually(is_over, "the mutation is over")
    assert await ada.other_client.execute(MY_FEED) is None


@pytest.mark.parametrize(
    ("interruption", "code"),
    [(do_nothing, None), (log_out, "UNAUTHENTICATED"), (demote, "FORBIDDEN")],
)
async def test_a_change_of_the_session_while_a_field_waits_applies_to_the_next_field(
    app: AppProcess,
    auth: Auth,
    ada: OrganizerWithTwoSessions,
    interruption: Interruption,
    code: str | None,
) -> None:
    slot_id = (await ada.client.create_slot())["id"]
    lock = lock_key(slot_id)
    query = f"mutation($id: ID!) {{ {BOOK} {CREATE} }}"
    payload = {"query": query, "variables": {"id": slot_id}}
    url, headers = ada.client.url + "/graphql", ada.client.headers
    with Redis.from_url(app.environment["SLOTLOCK_REDIS_URL"]) as redis:
        redis.set(lock, "somebody-else:1", px=60_000)
        request = asyncio.create_task(ada.client.http.post(url, json=payload, headers=headers))

        async def is_queued() -> bool:
            return bool(redis.exists(lock.replace(":lock", ":queue")))

        await eventually(is_queued, "the booking waits for the lock")
        await interruption(auth, ada)
        redis.delete(lock)
        response = (await request).json()
    errors = [(error["path"], error["extensions"]["code"]) for error in response.get("errors", [])]
    assert errors == ([(["createSlot"], code)] if code else [])
    assert (await ada.other_client.execute(MY_BOOKING, id=slot_id))["myBooking"] == {
        "status": "CONFIRMED"
    }


async def test_fields_of_an_open_session_are_executed_in_order_also_anonymous_ones(
    app: AppProcess, ada: OrganizerWithTwoSessions
) -> None:
    login = 'login(input: {email: "nobody@slotlock.test", password: "not theirs"}) { __typename }'
    query = f"""mutation {{
      a: revokeCalendarFeed b: {CREATE_FEED} c: revokeCalendarFeed d: revokeCalendarFeed
      e: logout f: {login}
    }}"""
    for client, send in ((ada.client, send_by_post), (ada.other_client, send_by_event_stream)):
        response = await send(client, app, query)
        assert "errors" not in response
        assert list(response["data"].items()) == [
            ("a", False), ("b", {"__typename": "CalendarFeed"}), ("c", True), ("d", False),
            ("e", True), ("f", {"__typename": "InvalidCredentials"}),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "has_several_mutations"),
    [
        (f"mutation {{ {CREATE_FEED} }}", False),
        ("mutation { ...One } fragment One on Mutation { logout }", False),
        ("{ a: me { id } b: me { id } }", False),
        (f"mutation {{ logout {CREATE_FEED} }}", True),
        ("mutation { ...Two } fragment Two on Mutation { a: logout b: logout }", True),
    ],
)
def test_only_mutations_with_several_fields_recheck_the_session(
    text: str, has_several_mutations: bool
) -> None:
    documents = DocumentCache(executable_schema, introspection=False)
    assert documents.resolve_operation(text, None).has_several_mutations is has_several_mutations
