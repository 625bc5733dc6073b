"""What the log never tells: passwords, tokens, private addresses, and what people send."""

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
from tests.support.apps.processes import (
    ADMIN_PASSWORD,
    SECRET,
    AppProcess,
    app_environment,
    app_process,
)
from tests.support.clients.booking_client import BookingClient, create_booking_clients
from tests.support.clients.calendars import create_calendar
from tests.support.clients.client import GraphQLTestClient, Json
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


@pytest.fixture
def own_app(servers: EmbeddedServers, tmp_path: Path) -> Iterator[AppProcess]:
    """An app whose log is of this test alone."""
    with forked_app(app_environment(servers, f"logs_{secrets.token_hex(4)}"), tmp_path) as running:
        yield running


def damage(mongo_url: str, slot_id: str) -> None:
    """Let a slot be such that whoever reads it fails."""
    with closing(MongoClient[Json](mongo_url)) as client:
        slots = client.get_default_database()["slots"]
        slots.update_one({"_id": ObjectId(slot_id[-24:])}, {"$unset": {"capacity": 1}})


async def sign_in_and_fail(anonymous: GraphQLTestClient) -> list[str]:
    """Register, sign in and stay signed in, rightly and wrongly; what nobody else may know."""
    password, wrong = secrets.token_hex(8), secrets.token_hex(8)
    email = f"{secrets.token_hex(8)}@slotlock.test"
    session = await anonymous.execute(
        REGISTER, input={"name": "A", "email": email, "password": password}
    )
    for given in (password, wrong, wrong * 1_000):
        await anonymous.execute(LOGIN, input={"email": email, "password": given})
    renewed = await anonymous.execute(REFRESH, token=session["refreshToken"])
    for token in (session["refreshToken"], session["accessToken"], renewed["refreshToken"] + "x"):
        await anonymous.execute(REFRESH, token=token)
    known = GraphQLTestClient(anonymous.http, anonymous.url, renewed["accessToken"])
    await known.send("{ me { id } }")
    tokens = [each[name] for each in (session, renewed) for name in ("accessToken", "refreshToken")]
    return [password, wrong, email, *(token.rpartition(".")[2] for token in tokens)]


async def invite_and_set(organizer: BookingClient) -> list[str]:
    """Import somebody, who sets a first password by a token."""
    school, password = f"{secrets.token_hex(8)}.test", secrets.token_hex(8)
    name = secrets.token_hex(8)
    await import_users(organizer, user_csv(school, {"ada": name}, school))
    (row,) = await create_invitations(organizer, group=school)
    for token in (row["token"][::-1], row["token"], row["token"]):
        await organizer.execute(SET_PASSWORD, token=token, password=password)
    return [school, password, name, row["token"], row["token"][::-1]]


async def send_what_breaks(organizer: BookingClient) -> list[str]:
    """Requests that are refused before anybody knows what they want."""
    sent = [secrets.token_hex(8) for _ in range(6)]
    url, http = organizer.url, organizer.http
    bearer = {"Authorization": f"Bearer {sent[0]}", "Content-Type": "application/json"}
    for body in (f'{{"query": "{{ {sent[1]}', f'{{"query": "{{ {sent[1]} }}"}}', sent[1]):
        await http.post(url + "/graphql", content=body, headers=bearer)
    await http.get(url + "/graphql", params={"query": "{", "token": sent[2]})
    await http.get(f"{url}/calendars/private/{sent[3] * 2}{sent[3][:11]}.ics")
    await http.get(f"{url}/exports/{sent[3]}", headers=bearer)
    reader, writer = await asyncio.open_connection(*urlsplit(url).netloc.split(":"))
    writer.write(f"{sent[4]} {sent[4]}\r\nX: {sent[4]}\r\n\r\n".encode())
    await reader.read()
    writer.close()
    protocols = [Subprotocol("graphql-transport-ws")]
    with suppress(ConnectionClosed):
        address = url.replace("http", "ws", 1) + f"/graphql?token={sent[5]}"
        async with connect(address, subprotocols=protocols, proxy=None) as socket:
            init = {"type": "connection_init", "payload": {"authorization": f"Bearer {sent[5]}"}}
            await socket.send(json.dumps(init))
            await socket.recv()
            await socket.send(sent[5])
            await socket.recv()
    return sent


async def fail_inside(app: AppProcess, ada: BookingClient, organizer: BookingClient) -> list[str]:
    """Failures of ours, whose tracebacks are logged: of a query, a socket, a file, a calendar."""
    key, location = secrets.token_hex(8), secrets.token_hex(8)
    slot = await organizer.add_slot(location=location)
    path = await create_calendar(ada)
    await ada.book_slot(slot)
    damage(app.environment["SLOTLOCK_MONGO_URL"], slot)
    before = app.log.count(" ERROR ")
    assert await ada.error_code("query($id: ID!) { slot(id: $id) { id } }", id=slot) == "INTERNAL"
    booking = "mutation($input: BookSlotInput!) { bookSlot(input: $input) { __typename } }"
    wish = {"slotId": slot, "idempotencyKey": key}
    assert await ada.error_code(booking, input=wish) == "INTERNAL"
    assert (await ada.http.get(ada.url + path)).status_code == 500
    export = f"{ada.url}/exports/slots/{slot}.csv"
    assert (await ada.http.get(export, headers=organizer.headers)).status_code == 500
    wait_until(lambda: app.log.count(" ERROR ") >= before + 4, "the failures are in the log")
    return [key, location, path.rpartition("/")[2].removesuffix(".ics")]


async def test_the_log_tells_no_secret_of_anybody_whatever_fails(
    own_app: AppProcess, http: httpx.AsyncClient
) -> None:
    (ada,), organizer = await create_booking_clients(http, 1, own_app)
    told = [
        *await sign_in_and_fail(GraphQLTestClient(http, own_app.url)),
        *await invite_and_set(organizer),
        *await send_what_breaks(organizer),
        *await fail_inside(own_app, ada, organizer),
        *(str(each.token).rpartition(".")[2] for each in (ada, organizer)),
    ]
    assert own_app.stop() == 0
    assert "Traceback" in own_app.log
    assert "Invalid HTTP" not in own_app.log
    settings = [SECRET, ADMIN_PASSWORD, own_app.environment["SLOTLOCK_MONGO_URL"]]
    assert [each for each in (*told, *settings) if each in own_app.log] == []


async def test_the_log_tells_no_password_of_a_server_that_refuses_it(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    password = secrets.token_hex(8)
    refused = servers.redis_url.replace("://", f"://nobody:{password}@")
    settings = {**app_environment(servers, "logs_redis"), "SLOTLOCK_REDIS_URL": refused}
    with app_process(settings, tmp_path, ready_path="/readyz?of=mongodb") as running:
        assert running.stop() == 0
        assert "Redis" in running.log
        assert password not in running.log
