"""`slotlock dev` as a new developer uses it: one command, its output, a kill, a restart."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from slotlock.graphql.transport.graphiql import graphiql_page
from tests.support.apps.processes import free_port, wait_until
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


class Dev:
    """A running `slotlock dev`."""

    def __init__(self, directory: Path, port: int, **settings: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if "SLOTLOCK" not in name}
        own = {"PORT": str(port), "SLOTLOCK_DATA_DIR": str(directory), **settings}
        self.url = f"http://127.0.0.1:{port}"
        self.output = directory / "output"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "slotlock", "dev"],
                env={**inherited, **own},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        wait_until(lambda: "Ctrl-C" in self.output.read_text(), "the banner is printed", 60)

    def sign_in(self) -> tuple[str, str]:
        """Return the admin's e-mail address and password from the banner."""
        printed = re.search(r"sign-in +(\S+) +(\S+)", self.output.read_text())
        assert printed is not None
        return printed[1], printed[2]


@contextmanager
def dev(directory: Path, **settings: str) -> Iterator[Dev]:
    """Run `slotlock dev`, and stop it with SIGINT, like Ctrl-C, if the test did not."""
    directory.mkdir(exist_ok=True)
    running = Dev(directory, free_port(), **settings)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.send_signal(signal.SIGINT)
        running.process.wait(40)


async def sign_in_admin(http: httpx.AsyncClient, running: Dev) -> GraphQLTestClient:
    """Return a client of the admin whose password the banner shows."""
    email, password = running.sign_in()
    session = await GraphQLTestClient(http, running.url).execute(
        LOGIN, email=email, password=password
    )
    assert session["user"]["role"] == "ADMIN"
    return GraphQLTestClient(http, running.url, session["accessToken"])


async def book_five(http: httpx.AsyncClient, running: Dev) -> tuple[str, list[Json]]:
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
    with dev(data) as first:
        async with http_client() as http:
            slot_id, outcomes = await book_five(http, first)
        first.process.kill()
        first.process.wait()
        printed = first.sign_in()
    with dev(data) as second:
        assert second.sign_in() == printed
        async with http_client() as http:
            roster = await (await sign_in_admin(http, second)).execute(ROSTER, id=slot_id)
    acknowledged = {o["booking"]["id"] for o in outcomes if o["__typename"] == "Booked"}
    assert acknowledged
    assert {booking["id"] for booking in roster["nodes"]} >= acknowledged


async def test_ctrl_c_stops_the_app_and_its_servers_and_the_data_remain(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with dev(data) as first:
        async with http_client() as http:
            slot_id, _ = await book_five(http, first)
        first.process.send_signal(signal.SIGINT)
        assert first.process.wait(40) == 0
        assert "Traceback" not in first.output.read_text()
    with dev(data) as second:
        async with http_client() as http:
            assert (await (await sign_in_admin(http, second)).execute(ROSTER, id=slot_id))["nodes"]


async def test_the_admin_of_the_settings_is_created_and_the_password_is_not_printed(
    tmp_path: Path,
) -> None:
    admin = {"SLOTLOCK_ADMIN_EMAIL": "Boss@Slotlock.Test", "SLOTLOCK_ADMIN_PASSWORD": "very secret"}
    with dev(tmp_path / "data", **admin) as running:
        async with http_client() as http:
            user = GraphQLTestClient(http, running.url)
            session = await user.execute(LOGIN, email="boss@slotlock.test", password="very secret")
        assert session["user"]["role"] == "ADMIN"
        assert "very secret" not in running.output.read_text()


async def test_a_configured_admin_with_another_password_is_reported(tmp_path: Path) -> None:
    data = tmp_path / "data"
    admin = {"SLOTLOCK_ADMIN_EMAIL": "boss@slotlock.test", "SLOTLOCK_ADMIN_PASSWORD": "very secret"}
    with dev(data, **admin):
        pass
    with dev(data, **{**admin, "SLOTLOCK_ADMIN_PASSWORD": "another one"}) as running:
        assert "another password than the one set" in running.output.read_text()


def test_graphiql_is_served_to_browsers_with_a_policy_that_lets_it_load(tmp_path: Path) -> None:
    with dev(tmp_path / "data") as running:
        page = httpx.get(running.url + "/graphql", headers={"Accept": "text/html"}, trust_env=False)
    assert page.headers["content-type"].startswith("text/html")
    policy = graphiql_page().headers["content-security-policy"]
    assert page.headers.get_list("content-security-policy") == [policy]


def test_a_second_dev_server_on_the_same_data_or_port_fails_with_one_line(tmp_path: Path) -> None:
    with dev(tmp_path / "data") as running:
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
