"""`slotlock dev` as a newcomer uses it: one command, its output, a kill, and the data again."""

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
        own = {name: value for name, value in os.environ.items() if "SLOTLOCK" not in name}
        self.url = f"http://127.0.0.1:{port}"
        self.output = directory / "output"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "slotlock", "dev"],
                env={**own, "PORT": str(port), "SLOTLOCK_DATA_DIR": str(directory), **settings},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        wait_until(lambda: "Ctrl-C" in self.output.read_text(), "it says that it runs", 60)

    def sign_in(self) -> tuple[str, str]:
        """The organiser's address and password as they are printed."""
        printed = re.search(r"sign-in +(\S+) +(\S+)", self.output.read_text())
        assert printed is not None
        return printed[1], printed[2]


@contextmanager
def dev(directory: Path, **settings: str) -> Iterator[Dev]:
    """A running `slotlock dev`, ended with SIGINT as by Ctrl-C if the test did not end it."""
    directory.mkdir(exist_ok=True)
    running = Dev(directory, free_port(), **settings)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.send_signal(signal.SIGINT)
        running.process.wait(40)


async def signed_in(http: httpx.AsyncClient, running: Dev) -> GraphQLTestClient:
    """The organiser whose sign-in was printed."""
    email, password = running.sign_in()
    session = await GraphQLTestClient(http, running.url).execute(
        LOGIN, email=email, password=password
    )
    assert session["user"]["role"] == "ADMIN"
    return GraphQLTestClient(http, running.url, session["accessToken"])


async def book_some(http: httpx.AsyncClient, running: Dev) -> tuple[str, list[Json]]:
    """A slot and the outcomes of five people who booked it at once."""
    organiser = await signed_in(http, running)
    slot = await organiser.create_slot(capacity=5)
    people = []
    for number in range(5):
        email = f"ada{number}@slotlock.test"
        session = await GraphQLTestClient(http, running.url).execute(REGISTER, email=email)
        people.append(GraphQLTestClient(http, running.url, session["accessToken"]))
    outcomes = await asyncio.gather(*(person.book(slot["id"]) for person in people))
    return slot["id"], list(outcomes)


ROSTER = "query($id: ID!) { slotRoster(slotId: $id) { nodes { id } } }"


async def test_after_a_sigkill_every_acknowledged_booking_is_there_and_the_sign_in_still_works(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with dev(data) as first:
        async with http_client() as http:
            slot_id, outcomes = await book_some(http, first)
        first.process.kill()
        first.process.wait()
        printed = first.sign_in()
    with dev(data) as second:
        assert second.sign_in() == printed
        async with http_client() as http:
            roster = await (await signed_in(http, second)).execute(ROSTER, id=slot_id)
    acknowledged = {o["booking"]["id"] for o in outcomes if o["__typename"] == "Booked"}
    assert acknowledged
    assert {booking["id"] for booking in roster["nodes"]} >= acknowledged


async def test_ctrl_c_ends_it_with_its_servers_and_the_data_stays(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with dev(data) as first:
        async with http_client() as http:
            slot_id, _ = await book_some(http, first)
        first.process.send_signal(signal.SIGINT)
        assert first.process.wait(40) == 0
        assert "Traceback" not in first.output.read_text()
    with dev(data) as second:
        async with http_client() as http:
            assert (await (await signed_in(http, second)).execute(ROSTER, id=slot_id))["nodes"]


async def test_the_admin_of_the_settings_is_created_and_the_password_is_not_printed(
    tmp_path: Path,
) -> None:
    admin = {"SLOTLOCK_ADMIN_EMAIL": "Boss@Slotlock.Test", "SLOTLOCK_ADMIN_PASSWORD": "very secret"}
    with dev(tmp_path / "data", **admin) as running:
        async with http_client() as http:
            person = GraphQLTestClient(http, running.url)
            session = await person.execute(
                LOGIN, email="boss@slotlock.test", password="very secret"
            )
        assert session["user"]["role"] == "ADMIN"
        assert "very secret" not in running.output.read_text()


async def test_an_admin_of_the_settings_who_cannot_sign_in_is_told_of(tmp_path: Path) -> None:
    data = tmp_path / "data"
    admin = {"SLOTLOCK_ADMIN_EMAIL": "boss@slotlock.test", "SLOTLOCK_ADMIN_PASSWORD": "very secret"}
    with dev(data, **admin):
        pass
    with dev(data, **{**admin, "SLOTLOCK_ADMIN_PASSWORD": "another one"}) as running:
        assert "another password than the one set" in running.output.read_text()


def test_graphiql_is_there_for_browsers_and_may_load_itself(tmp_path: Path) -> None:
    with dev(tmp_path / "data") as running:
        page = httpx.get(running.url + "/graphql", headers={"Accept": "text/html"}, trust_env=False)
    assert page.headers["content-type"].startswith("text/html")
    policy = graphiql_page().headers["content-security-policy"]
    assert page.headers.get_list("content-security-policy") == [policy]


def test_a_second_one_on_the_same_data_or_port_says_in_one_line_what_to_do(tmp_path: Path) -> None:
    with dev(tmp_path / "data") as running:
        for port, data, said in (
            (str(free_port()), tmp_path / "data", "SLOTLOCK_DATA_DIR"),
            (running.url.rsplit(":", 1)[1], tmp_path / "other", "PORT"),
        ):
            refused = subprocess.run(
                [sys.executable, "-m", "slotlock", "dev"],
                env={**os.environ, "PORT": port, "SLOTLOCK_DATA_DIR": str(data)},
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            assert refused.returncode == 1
            (line,) = refused.stderr.splitlines()
            assert said in line
