"""`slotlock dev` says which of its servers ended, restarts it once, and fails the next time."""

import os
import signal
from pathlib import Path

import httpx
import pytest

from tests.support.apps.dev_server import DevServer, run_dev_server
from tests.support.clients.client import GraphQLTestClient, Json, http_client
from tests.support.polling import wait_until

REGISTER = """mutation($email: EmailAddress!) {
  register(input: {name: "Ada", email: $email, password: "correct horse"}) { __typename }
}"""
# What the log of each server says at its start.
LAST_LINES = {"mongod": '"msg":"', "valkey": "Ready to accept connections"}


def server_pid(running: DevServer, name: str) -> int:
    """Return the process id of an embedded server; 0 while the server writes its file."""
    return int((running.data / f"{name}.pid").read_text() or 0)


def is_ready(running: DevServer) -> bool:
    """Return whether MongoDB and Redis respond to the app."""
    return httpx.get(running.url + "/readyz", trust_env=False, timeout=30).status_code == 200


async def register(running: DevServer, email: str) -> Json:
    """Return the outcome of a registration."""
    async with http_client() as http:
        outcome: Json = await GraphQLTestClient(http, running.url).execute(REGISTER, email=email)
        return outcome


@pytest.mark.parametrize("name", ["mongod", "valkey"])
async def test_a_server_that_ends_is_restarted_once_and_the_second_end_stops_the_command(
    name: str, tmp_path: Path
) -> None:
    with run_dev_server(tmp_path / "data") as running:
        assert await register(running, "ada@slotlock.test") == {"__typename": "Session"}
        killed = server_pid(running, name)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: server_pid(running, name) not in (0, killed), f"{name} runs again")
        output = running.output.read_text()
        assert f"{name} ended (killed by SIGKILL); the end of its log:\n" in output
        assert LAST_LINES[name] in output
        wait_until(lambda: is_ready(running), "the app reaches its servers again")
        assert await register(running, "ada@slotlock.test") == {"__typename": "EmailTaken"}

        os.kill(server_pid(running, name), signal.SIGKILL)
        assert running.process.wait(40) == 1
        output = running.output.read_text()
        assert f"{name} was restarted on port" in output
        assert f"{name} ended twice, so slotlock stops: see " in output
        assert "Traceback" not in output
    assert not list(running.data.glob("*.pid"))
