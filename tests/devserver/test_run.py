"""`slotlock dev` as a new developer uses it: one command, its output, a kill, a restart."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx

from slotlock.graphql.transport.graphiql import graphiql_page
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


ROSTER = "query($id: ID!) { slotRoster(slotId: $id) { nodes { id } } }"


async def test_after_a_sigkill_acknowledged_bookings_and_the_admin_password_remain(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with run_dev_server(data) as first:
        async with http_client() as http:
            slot_id, outcomes = await book_five(http, first)
        first.process.kill()
        first.process.wait()
        printed = first.sign_in()
    with run_dev_server(data) as second:
        assert second.sign_in() == printed
        async with http_client() as http:
            roster = await (await sign_in_admin(http, second)).execute(ROSTER, id=slot_id)
    acknowledged = {o["booking"]["id"] for o in outcomes if o["__typename"] == "Booked"}
    assert acknowledged
    assert {booking["id"] for booking in roster["nodes"]} >= acknowledged


async def test_ctrl_c_stops_the_app_and_its_servers_and_the_data_remain(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with run_dev_server(data) as first:
        async with http_client() as http:
            slot_id, _ = await book_five(http, first)
        first.process.send_signal(signal.SIGINT)
        assert first.process.wait(40) == 0
        assert "Traceback" not in first.output.read_text()
    with run_dev_server(data) as second:
        async with http_client() as http:
            assert (await (await sign_in_admin(http, second)).execute(ROSTER, id=slot_id))["nodes"]


async def test_the_admin_of_the_settings_is_created_and_the_password_is_not_printed(
    tmp_path: Path,
) -> None:
    admin = {"SLOTLOCK_ADMIN_EMAIL": "Boss@Slotlock.Test", "SLOTLOCK_ADMIN_PASSWORD": "very secret"}
    with run_dev_server(tmp_path / "data", **admin) as running:
        async with http_client() as http:
            user = GraphQLTestClient(http, running.url)
            session = await user.execute(LOGIN, email="boss@slotlock.test", password="very secret")
        assert session["user"]["role"] == "ADMIN"
        assert "very secret" not in running.output.read_text()


async def test_a_configured_admin_with_another_password_is_reported(tmp_path: Path) -> None:
    data = tmp_path / "data"
    admin = {"SLOTLOCK_ADMIN_EMAIL": "boss@slotlock.test", "SLOTLOCK_ADMIN_PASSWORD": "very secret"}
    with run_dev_server(data, **admin):
        pass
    with run_dev_server(data, **{**admin, "SLOTLOCK_ADMIN_PASSWORD": "another one"}) as running:
        assert "exists with a different password" in running.output.read_text()


def test_graphiql_is_served_to_browsers_with_a_policy_that_lets_it_load(tmp_path: Path) -> None:
    with run_dev_server(tmp_path / "data") as running:
        page = httpx.get(running.url + "/graphql", headers={"Accept": "text/html"}, trust_env=False)
    assert page.headers["content-type"].startswith("text/html")
    policy = graphiql_page().headers["content-security-policy"]
    assert page.headers.get_list("content-security-policy") == [policy]


def test_a_second_dev_server_on_the_same_data_or_port_fails_with_one_line(tmp_path: Path) -> None:
    with run_dev_server(tmp_path / "data") as running:
        for port, data, variable in (
            (str(free_port()), tmp_path / "data", "SLOTLOCK_DATA_DIR"),
            (running.url.rsplit(":", 1)[1], tmp_path / "other", "PORT"),
        ):
            second = subprocess.run(
                [sys.executable, "-m", "slotlock", "dev"],
                env={**os.environ, "PORT": port, "SLOTLOCK_DATA_DIR": str(data)},
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            assert second.returncode == 1
            (line,) = second.stderr.splitlines()
            assert variable in line
