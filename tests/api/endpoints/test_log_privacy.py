"""The log contains no passwords, tokens, private addresses or request data."""

import asyncio
import json
import secrets
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from bson import ObjectId
from pymongo import MongoClient
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.fork_server import forked_app
from tests.support.apps.processes import ADMIN_PASSWORD, SECRET, AppProcess, app_environment
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.calendars import create_calendar
from tests.support.clients.client import GraphQLTestClient, Json
from tests.support.clients.exports import create_export_link
from tests.support.clients.user_files import create_invitations, import_users, user_csv
from tests.support.polling import wait_until

SESSION = "{ __typename ... on Session { accessToken refreshToken } }"
REGISTER = "mutation($input: RegisterInput!) { register(input: $input) " + SESSION + " }"
LOGIN = "mutation($input: LoginInput!) { login(input: $input) " + SESSION + " }"
REFRESH = "mutation($token: String!) { refreshSession(refreshToken: $token) " + SESSION + " }"
SET_PASSWORD = (
    "mutation($token: String!, $password: String!) "
    "{ setPassword(token: $token, password: $password) " + SESSION + " }"
)
# Clears a terminal, and sets its title.
TERMINAL_CODES = "\x1b[2J\x1b]0;a title\x07 \x9b2J"
BOOK = "mutation($input: BookSlotInput!) { bookSlot(input: $input) { __typename } }"


@pytest.fixture
def own_app(servers: EmbeddedServers, tmp_path: Path) -> Iterator[AppProcess]:
    """Yield an app with an access log, whose log belongs to one test."""
    settings = app_environment(servers, f"logs_{secrets.token_hex(4)}")
    logs = {"SLOTLOCK_ACCESS_LOG": "on", "SLOTLOCK_BOARD_ERRORS": "on"}
    with forked_app({**settings, **logs}, tmp_path) as running:
        yield running


def corrupt_slot(mongo_url: str, slot_id: str) -> None:
    """Remove a field of a slot, so that every read of it and every booking fails."""
    with closing(MongoClient[Json](mongo_url)) as client:
        slots = client.get_default_database()["slots"]
        slots.update_one({"_id": ObjectId(slot_id[-24:])}, {"$unset": {"capacity": 1}})


async def send_credentials(client: GraphQLTestClient) -> list[str]:
    """Register, sign in and refresh with valid and invalid credentials; return the secrets."""
    password, wrong = secrets.token_urlsafe(12), secrets.token_urlsafe(12)
    email = f"{secrets.token_hex(8)}@slotlock.test"
    session = await client.execute(
        REGISTER, input={"name": "A", "email": email, "password": password}
    )
    for attempt in (password, wrong, wrong * 1_000):
        await client.execute(LOGIN, input={"email": email, "password": attempt})
    renewed = await client.execute(REFRESH, token=session["refreshToken"])
    for token in (session["refreshToken"], session["accessToken"], renewed["refreshToken"] + "x"):
        await client.execute(REFRESH, token=token)
    signed_in = GraphQLTestClient(client.http, client.url, renewed["accessToken"])
    await signed_in.send("{ me { id } }")
    tokens = [each[name] for each in (session, renewed) for name in ("accessToken", "refreshToken")]
    return [password, wrong, email, *(token.rpartition(".")[2] for token in tokens)]


async def invite_and_set_password(organizer: BookingClient) -> list[str]:
    """Import a user, who sets a password by an invitation; return the secrets."""
    domain, password = f"{secrets.token_hex(8)}.test", secrets.token_urlsafe(12)
    name = secrets.token_hex(8)
    await import_users(organizer, user_csv(domain, {"ada": name}, domain))
    (row,) = await create_invitations(organizer, group=domain)
    for token in (row["token"][::-1], row["token"], row["token"]):
        await organizer.execute(SET_PASSWORD, token=token, password=password)
    return [domain, password, name, row["token"], row["token"][::-1]]


async def send_malformed_requests(organizer: BookingClient) -> list[str]:
    """Send requests that are rejected before they are executed; return their random parts."""
    parts = [secrets.token_hex(8) for _ in range(6)]
    url, http = organizer.url, organizer.http
    bearer = {"Authorization": f"Bearer {parts[0]}", "Content-Type": "application/json"}
    for body in (f'{{"query": "{{ {parts[1]}', f'{{"query": "{{ {parts[1]} }}"}}', parts[1]):
        await http.post(url + "/graphql", content=body, headers=bearer)
    await http.get(url + "/graphql", params={"query": "{", "token": parts[2]})
    await http.get(f"{url}/calendars/private/{parts[3] * 2}{parts[3][:11]}.ics")
    await http.get(f"{url}/exports/{parts[3]}", headers=bearer)
    await http.post(f"{url}/board/errors", content=TERMINAL_CODES)
    reader, writer = await asyncio.open_connection(*urlsplit(url).netloc.split(":"))
    writer.write(f"{parts[4]} {parts[4]}\r\nX: {parts[4]}\r\n\r\n".encode())
    await reader.read()
    writer.close()
    protocols = [Subprotocol("graphql-transport-ws")]
    with suppress(ConnectionClosed):
        address = url.replace("http", "ws", 1) + f"/graphql?token={parts[5]}"
        async with connect(address, subprotocols=protocols, proxy=None) as socket:
            init = {"type": "connection_init", "payload": {"authorization": f"Bearer {parts[5]}"}}
            await socket.send(json.dumps(init))
            await socket.recv()
            await socket.send(parts[5])
            await socket.recv()
    return parts


async def cause_internal_errors(
    app: AppProcess, ada: BookingClient, organizer: BookingClient
) -> list[str]:
    """Let a query, a mutation, a calendar and an export fail; return what they were about."""
    key, location = secrets.token_hex(8), secrets.token_hex(8)
    slot_id = await organizer.add_slot(location=location)
    link = await create_export_link(organizer, slot_id)
    assert (await ada.http.get(ada.url + link)).status_code == 200
    calendar_path = await create_calendar(ada)
    await ada.book_slot(slot_id)
    corrupt_slot(app.environment["SLOTLOCK_MONGO_URL"], slot_id)
    before = app.log.count(" ERROR ")
    query = "query($id: ID!) { slot(id: $id) { id capacity } }"
    assert await ada.error_code(query, id=slot_id) == "INTERNAL"
    booking = {"slotId": slot_id, "idempotencyKey": key}
    assert await ada.error_code(BOOK, input=booking) == "INTERNAL"
    assert (await ada.http.get(ada.url + calendar_path)).status_code == 500
    export_url = f"{ada.url}/exports/slots/{slot_id}.csv"
    assert (await ada.http.get(export_url, headers=organizer.headers)).status_code == 500
    wait_until(lambda: app.log.count(" ERROR ") >= before + 4, "the failures are in the log")
    link_secret, calendar_secret = (path.rpartition("/")[2] for path in (link, calendar_path))
    return [key, location, link_secret, calendar_secret.removesuffix(".ics")]


async def test_the_log_contains_no_secret_of_a_user_whatever_fails(
    own_app: AppProcess, http: httpx.AsyncClient
) -> None:
    (ada,), organizer = create_booking_clients(http, 1, own_app)
    user_secrets = [
        *await send_credentials(GraphQLTestClient(http, own_app.url)),
        *await invite_and_set_password(organizer),
        *await send_malformed_requests(organizer),
        *await cause_internal_errors(own_app, ada, organizer),
        *(str(each.token).rpartition(".")[2] for each in (ada, organizer)),
    ]
    assert own_app.stop() == 0
    assert "Traceback" in own_app.log
    assert "slotlock.access" in own_app.log
    assert "Invalid HTTP" not in own_app.log
    assert "an error of the board: \\x1b[2J" in own_app.log
    assert all(line.isprintable() for line in own_app.log.split("\n"))
    settings = [SECRET, ADMIN_PASSWORD, own_app.environment["SLOTLOCK_MONGO_URL"]]
    assert [each for each in (*user_secrets, *settings) if each in own_app.log] == []


async def test_the_log_does_not_contain_a_redis_password_that_redis_rejects(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    password = secrets.token_hex(8)
    redis_url = servers.redis_url.replace("://", f"://nobody:{password}@")
    settings = {**app_environment(servers, "logs_redis"), "SLOTLOCK_REDIS_URL": redis_url}
    with forked_app(settings, tmp_path, ready_path="/readyz?of=mongodb") as running:
        wait_until(lambda: "Redis" in running.log, "the rejection is in the log")
        assert running.stop() == 0
        assert password not in running.log
