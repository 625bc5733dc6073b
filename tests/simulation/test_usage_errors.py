"""A simulation that cannot run ends with one line before it does anything."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slotlock.simulation.client.http import RATE_LIMITED_MESSAGE
from slotlock.simulation.model.plan import SimulationError
from slotlock.simulation.setup import _store_session, generate_users
from tests.support.apps.processes import AppProcess, free_port
from tests.support.cli.command_line import replace_environment
from tests.support.cli.simulation import SimulationRunner

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def simulate(
    monkeypatch: pytest.MonkeyPatch, app: AppProcess, capsys: Capture, tmp_path: Path
) -> SimulationRunner:
    """Return a runner of the command that signs in as the admin of the app."""
    replace_environment(monkeypatch, app.environment)
    return SimulationRunner(monkeypatch, capsys, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--users", "0"), "argument --users: a number from 1 to 20000"),
        (("--users", "20001"), "argument --users: a number from 1 to 20000"),
        (("--slots", "501"), "argument --slots: a number from 1 to 500"),
        (("--places", "many"), "argument --places: a number from 1 to 1000"),
        (("--attempts", "-1"), "argument --attempts: a number from 1 to 500"),
        (("--attempts", "5"), "argument --attempts: at most as many as there are --slots"),
        (("--mode", "luck"), "argument --mode: lock, wait, queue or draw"),
        (("--seed", "x"), "argument --seed: a number from 0 to 4294967295"),
        (("--url", "127.0.0.1:8000"), "argument --url: an address like http://127.0.0.1:8000"),
        (("--plot", "rush.pdf"), "argument --plot: a file that ends in .svg or .png"),
        (("--plot", "/nowhere/rush.svg"), "argument --plot: /nowhere/rush.svg cannot be written"),
        (
            ("--results", "/nowhere/rush.json"),
            "argument --results: /nowhere/rush.json cannot be written",
        ),
        (("--results", "/"), "argument --results: / cannot be written"),
    ],
)
def test_a_wrong_argument_is_a_usage_error(
    simulate: SimulationRunner, arguments: tuple[str, ...], message: str
) -> None:
    assert simulate.expect_error(*arguments) == f"slotlock simulate: error: {message}"


def test_an_address_without_a_server_is_reported(simulate: SimulationRunner) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert simulate.expect_error("--url", url).startswith(f"slotlock: {url} does not respond: ")


def test_another_program_at_the_address_is_reported(
    simulate: SimulationRunner, app: AppProcess
) -> None:
    line = simulate.expect_error("--url", f"{app.url}/metrics")
    assert line == f"slotlock: {app.url}/metrics/graphql does not speak GraphQL: HTTP 404"


def test_a_wrong_admin_password_is_reported(
    simulate: SimulationRunner, app: AppProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLOTLOCK_ADMIN_PASSWORD", "not the password")
    line = simulate.expect_error("--url", app.url)
    assert (
        "admin@slotlock.test cannot sign in with the password from SLOTLOCK_ADMIN_PASSWORD" in line
    )


def test_a_server_with_closed_registration_is_reported() -> None:
    (user,) = generate_users(1)
    refusal = {"__typename": "RegistrationClosed", "message": "Registration is closed."}
    with pytest.raises(SimulationError, match="set SLOTLOCK_REGISTRATION=open at the server"):
        _store_session(user, refusal)


def test_a_missing_organizer_is_reported(
    simulate: SimulationRunner, app: AppProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    replace_environment(monkeypatch, {"SLOTLOCK_DATA_DIR": str(tmp_path)})
    line = simulate.expect_error("--url", app.url)
    assert line.startswith("slotlock: no organizer: set SLOTLOCK_ADMIN_EMAIL and")
    assert str(tmp_path / "secrets.json") in line


def test_the_secrets_of_the_dev_server_are_the_default(
    simulate: SimulationRunner, app: AppProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    replace_environment(monkeypatch, {"SLOTLOCK_DATA_DIR": str(tmp_path)})
    path = tmp_path / "secrets.json"
    path.write_text('{"secret_key": "a secret", "admin_password": "a password"}')
    line = simulate.expect_error("--url", app.url)
    assert f"admin@slotlock.localhost cannot sign in with the password from {path}" in line
    path.write_text("not JSON")
    assert "cannot be read" in simulate.expect_error("--url", app.url)


def test_a_member_without_the_organizer_role_is_reported(
    simulate: SimulationRunner, app: AppProcess, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from slotlock.cli.main import main

    email = "simulation.member@slotlock.test"
    monkeypatch.setattr("getpass.getpass", lambda _: "a member's password")
    assert main(["users", "create", email]) == 0
    capsys.readouterr()
    monkeypatch.setenv("SLOTLOCK_ADMIN_EMAIL", email)
    monkeypatch.setenv("SLOTLOCK_ADMIN_PASSWORD", "a member's password")
    code = main(["simulate", "--url", app.url, "--users", "1", "--slots", "1"])
    assert code == 2
    assert "(FORBIDDEN)" in capsys.readouterr().err


@contextmanager
def fake_server(status: int, body: str = "") -> Iterator[str]:
    """Run a server that sends the same response to every request, in another process."""
    script = (
        "import http.server\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def do_POST(self):\n"
        "        self.rfile.read(int(self.headers['content-length']))\n"
        f"        self.send_response({status}); self.end_headers()\n"
        f"        self.wfile.write({body.encode()!r})\n"
        "    def log_message(self, *_): pass\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), Handler)\n"
        "print(server.server_port, flush=True)\n"
        "server.serve_forever()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.kill()


def test_a_server_with_rate_limits_is_reported(simulate: SimulationRunner) -> None:
    with fake_server(429) as url:
        assert simulate.expect_error("--url", url) == f"slotlock: {RATE_LIMITED_MESSAGE}"
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
def test_a_server_with_invalid_responses_is_reported(simulate: SimulationRunner, body: str) -> None:
    with fake_server(200, body) as url:
        assert simulate.expect_error("--url", url).startswith(f"slotlock: {url}")


def test_an_address_too_long_for_a_host_is_reported(simulate: SimulationRunner) -> None:
    url = f"http://{'a' * 300}"
    assert simulate.expect_error("--url", url).startswith(f"slotlock: {url} does not respond")
