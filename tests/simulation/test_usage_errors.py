"""What cannot be simulated is told in one line, before anything is done."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slotlock.simulation import tickets
from slotlock.simulation.client.http import RATE_LIMITED_MESSAGE
from tests.support.apps.processes import AppProcess, free_port
from tests.support.clients.simulation import SimulationRunner, replace_environment

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def simulate(
    monkeypatch: pytest.MonkeyPatch, app: AppProcess, capsys: Capture, tmp_path: Path
) -> SimulationRunner:
    """The command, for the organiser of the app."""
    replace_environment(monkeypatch, app.environment)
    return SimulationRunner(monkeypatch, capsys, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--people", "0"), "argument --people: a number from 1 to 20000"),
        (("--people", "20001"), "argument --people: a number from 1 to 20000"),
        (("--slots", "501"), "argument --slots: a number from 1 to 500"),
        (("--places", "many"), "argument --places: a number from 1 to 1000"),
        (("--asks", "-1"), "argument --asks: a number from 1 to 500"),
        (("--asks", "5"), "argument --asks: at most as many as there are --slots"),
        (("--by", "luck"), "argument --by: lock, wait or queue"),
        (("--seed", "x"), "argument --seed: a number from 0 to 4294967295"),
        (("--url", "127.0.0.1:8000"), "argument --url: an address like http://127.0.0.1:8000"),
        (("--plot", "rush.pdf"), "argument --plot: a file that ends in .svg or .png"),
        (("--plot", "/nowhere/rush.svg"), "argument --plot: /nowhere/rush.svg cannot be written"),
        (("--json", "/nowhere/rush.json"), "argument --json: /nowhere/rush.json cannot be written"),
        (("--json", "/"), "argument --json: / cannot be written"),
    ],
)
def test_wrong_arguments(simulate: SimulationRunner, arguments: tuple[str, ...], said: str) -> None:
    assert simulate.expect_usage_error(*arguments) == f"slotlock simulate: error: {said}"


def test_a_server_that_is_not_there(simulate: SimulationRunner) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert simulate.expect_usage_error("--url", url).startswith(
        f"slotlock: {url} does not answer: "
    )


def test_something_else_that_is_there(simulate: SimulationRunner, app: AppProcess) -> None:
    said = simulate.expect_usage_error("--url", f"{app.url}/metrics")
    assert said == f"slotlock: {app.url}/metrics/graphql does not speak GraphQL: HTTP 404"


def test_an_organiser_who_is_not_let_in(
    simulate: SimulationRunner, app: AppProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOTLOCK_ADMIN_PASSWORD", "not the password")
    said = simulate.expect_usage_error("--url", app.url)
    assert "admin@slotlock.test cannot sign in" in said
    assert "with the password from SLOTLOCK_ADMIN_PASSWORD" in said


def test_no_organiser_at_all(
    simulate: SimulationRunner, app: AppProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    replace_environment(monkeypatch, {"SLOTLOCK_DATA_DIR": str(tmp_path)})
    said = simulate.expect_usage_error("--url", app.url)
    assert said.startswith("slotlock: who organises? Set SLOTLOCK_ADMIN_EMAIL and")
    assert str(tmp_path / "secrets.json") in said


def test_secrets_that_dev_keeps_are_taken_where_there_are_no_others(
    simulate: SimulationRunner, app: AppProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    replace_environment(monkeypatch, {"SLOTLOCK_DATA_DIR": str(tmp_path)})
    kept = tmp_path / "secrets.json"
    kept.write_text('{"secret_key": "a secret", "admin_password": "a password"}')
    said = simulate.expect_usage_error("--url", app.url)
    assert f"admin@slotlock.localhost cannot sign in, with the password from {kept}" in said
    kept.write_text("not JSON")
    assert "cannot be read" in simulate.expect_usage_error("--url", app.url)


def test_a_member_who_cannot_organise(
    simulate: SimulationRunner, app: AppProcess, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from slotlock.cli.main import main

    email = "simulating.member@slotlock.test"
    monkeypatch.setattr("getpass.getpass", lambda _: "a member's password")
    assert main(["users", "create", email]) == 0
    capsys.readouterr()
    monkeypatch.setenv("SLOTLOCK_ADMIN_EMAIL", email)
    monkeypatch.setenv("SLOTLOCK_ADMIN_PASSWORD", "a member's password")
    code = main(["simulate", "--url", app.url, "--people", "1", "--slots", "1"])
    assert code == 2
    assert "(FORBIDDEN)" in capsys.readouterr().err


def test_no_queue_where_people_should_queue(
    simulate: SimulationRunner, app: AppProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = "query Unknown($id: ID!) { ticketOfYesteryear(id: $id) { id } }"
    monkeypatch.setattr(tickets, "TICKET_QUERY", unknown)
    said = simulate.expect_usage_error("--url", app.url, "--by", "queue")
    assert said == (
        "slotlock: this server has no admission queue; let people ask --by lock or --by wait"
    )


@contextmanager
def answering(status: int, body: str = "") -> Iterator[str]:
    """A server that has one answer to everything, in a process of its own."""
    script = (
        "import http.server\n"
        "class One(http.server.BaseHTTPRequestHandler):\n"
        "    def do_POST(self):\n"
        "        self.rfile.read(int(self.headers['content-length']))\n"
        f"        self.send_response({status}); self.end_headers()\n"
        f"        self.wfile.write({body.encode()!r})\n"
        "    def log_message(self, *_): pass\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), One)\n"
        "print(server.server_port, flush=True)\n"
        "server.serve_forever()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.kill()


def test_a_server_that_limits_rates(simulate: SimulationRunner) -> None:
    with answering(429) as url:
        assert simulate.expect_usage_error("--url", url) == f"slotlock: {RATE_LIMITED_MESSAGE}"
    assert "SLOTLOCK_RATE_LIMITS=off" in RATE_LIMITED_MESSAGE


@pytest.mark.parametrize(
    "body",
    [
        "<html>",
        "[]",
        '{"data": {}}',
        '{"data": [1]}',
        '{"data": {"a": 1, "b": 2}}',
        '{"data": {"login": null}}',
        '{"data": {"login": "x"}}',
        '{"data": {"login": {}}}',
        '{"data": {"login": {"__typename": "Session"}}}',
        '{"data": {"login": {"__typename": "InvalidCredentials"}}}',
        '{"errors": "boom"}',
        '{"errors": ["boom"]}',
        '{"errors": {"message": "x"}}',
        '{"errors": [{"message": "x", "extensions": null}]}',
    ],
)
def test_a_server_that_answers_garbage(simulate: SimulationRunner, body: str) -> None:
    with answering(200, body) as url:
        assert simulate.expect_usage_error("--url", url).startswith(f"slotlock: {url}")


def test_an_address_that_no_host_has(simulate: SimulationRunner) -> None:
    url = f"http://{'a' * 300}"
    assert simulate.expect_usage_error("--url", url).startswith(f"slotlock: {url} does not answer")
