"""`slotlock dev` as a new developer uses it: one command, its output, a kill, a restart."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.apps.dev_server import DevServer, run_dev_server
from tests.support.apps.processes import free_port
from tests.support.clients.client import GraphQLTestClient, Json, http_client

LOGIN = """mutation($email: EmailAddress!, $password: String!) {
  login(input: {email: $email, password: $password}) {
    __typename
    ... on Session { accessToken user { role } }
  }
}"""
REGISTER = """mutation($email: EmailAddress!) {
  register(input: {name: "Ada", email: $email, password: "correct horse"}) {
    ... on Session { accessToken }
  }
}"""
ROSTER = "query($id: ID!) { slotRoster(slotId: $id) { nodes { id } } }"
ADMIN = {"SLOTLOCK_ADMIN_EMAIL": "Boss@Slotlock.Test", "SLOTLOCK_ADMIN_PASSWORD": "very secret"}


async def sign_in_admin(http: httpx.AsyncClient, running: DevServer) -> GraphQLTestClient:
    """Return a client of the admin whose password the banner shows."""
    email, password = running.sign_in()
    session = await GraphQLTestClient(http, running.url).execute(
        LOGIN, email=email, password=password
    )
    assert session["user"]["role"] == "ADMIN"
    return GraphQLTestClient(http, running.url, session["accessToken"])


async def book_five(http: httpx.AsyncClient, running: DevServer) -> tuple[str, list[Json]]:
    """Create a slot, let five users book it at once, and return its id and the outcomes."""
    admin = await sign_in_admin(http, running)
    slot = await admin.create_slot(capacity=5)
    users = []
    for number in range(5):
        email = f"ada{number}@slotlock.test"
        session = await GraphQLTestClient(http, running.url).execute(REGISTER, email=email)
        users.append(GraphQLTestClient(http, running.url, session["accessToken"]))
    outcomes = await asyncio.gather(*(user.book(slot["id"]) for user in users))
    return slot["id"], list(outcomes)


async def fetch_booking_ids(running: DevServer, slot_id: str) -> set[str]:
    """Return the ids of the bookings of a slot."""
    async with http_client() as http:
        roster = await (await sign_in_admin(http, running)).execute(ROSTER, id=slot_id)
    return {booking["id"] for booking in roster["nodes"]}


@pytest.fixture(scope="module")
def dev_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevServer]:
    """Yield a running `slotlock dev` with an admin in its settings."""
    with run_dev_server(tmp_path_factory.mktemp("data"), **ADMIN) as running:
        yield running


async def test_bookings_and_the_admin_password_survive_a_sigkill_and_ctrl_c(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with run_dev_server(data) as first:
        async with http_client() as http:
            slot_id, outcomes = await book_five(http, first)
        first.process.kill()
        first.process.wait()
        printed = first.sign_in()
    acknowledged = {o["booking"]["id"] for o in outcomes if o["__typename"] == "Booked"}
    assert acknowledged
    with run_dev_server(data) as second:
        assert second.sign_in() == printed
        assert await fetch_booking_ids(second, slot_id) >= acknowledged
        second.process.send_signal(signal.SIGINT)
        assert second.process.wait(40) == 0
        assert "Traceback" not in second.output.read_text()
    with run_dev_server(data) as third:
        assert await fetch_booking_ids(third, slot_id) >= acknowledged


async def test_the_admin_of_the_settings_is_created_and_the_password_is_not_printed(
    dev_server: DevServer,
) -> None:
    async with http_client() as http:
        user = GraphQLTestClient(http, dev_server.url)
        session = await user.execute(LOGIN, email="boss@slotlock.test", password="very secret")
    assert session["user"]["role"] == "ADMIN"
    assert "very secret" not in dev_server.output.read_text()


async def test_a_configured_admin_with_another_password_is_reported(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with run_dev_server(data, **ADMIN):
        pass
    with run_dev_server(data, **{**ADMIN, "SLOTLOCK_ADMIN_PASSWORD": "another one"}) as running:
        assert "exists with a different password" in running.output.read_text()


@pytest.mark.parametrize("variable", ["SLOTLOCK_DATA_DIR", "PORT"])
def test_a_second_dev_server_on_the_same_data_or_port_fails_with_one_line(
    dev_server: DevServer, tmp_path: Path, variable: str
) -> None:
    own = {"PORT": str(free_port()), "SLOTLOCK_DATA_DIR": str(tmp_path / "other")}
    used = {"PORT": dev_server.url.rsplit(":", 1)[1], "SLOTLOCK_DATA_DIR": str(dev_server.data)}
    second = subprocess.run(
        [sys.executable, "-m", "slotlock", "dev"],
        env={**os.environ, **own, variable: used[variable]},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert second.returncode == 1
    (line,) = second.stderr.splitlines()
    assert variable in line
