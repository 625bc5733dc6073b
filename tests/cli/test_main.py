"""Each command does its work, or prints the reason in one line."""

import asyncio
import io
import json
import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest
from pymongo import MongoClient

from slotlock import __version__
from slotlock.auth import accounts
from slotlock.auth.sessions import SignedInSession
from slotlock.cli.main import main
from slotlock.devserver.binaries import MONGOD, find_binary
from slotlock.devserver.embedded import EmbeddedServers
from tests.support.apps.processes import app_environment, database_url, free_port
from tests.support.cli.command_line import command_errors, replace_environment, run_command
from tests.support.stores.users import auth_for_database

MODULE = (sys.executable, "-m", "slotlock")
PASSWORD = "correct horse battery"
GRAPHQL = {"graphql", "strawberry", "starlette", "uvicorn"}
UNUSED = GRAPHQL | {"redis", "argon2", "email_validator", "pydantic", "opentelemetry"}
OF_BOOKINGS = {
    "prometheus_client",
    "slotlock.domain.booking.booking_outcomes",
    "slotlock.infrastructure.mongo.repositories",
}
# Most servers have no provider, webhook, mail server, calendar or GraphiQL page.
UNUSED_BY_SERVERS = {
    "aiohttp",
    "icalendar",
    "jinja2",
    "jwt",
    "cryptography.x509",
    "email_validator",
    "opentelemetry.sdk",
    "pydantic",
    "strawberry.http",
    "typst",
    "xlsxwriter",
}


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch, servers: EmbeddedServers) -> pytest.MonkeyPatch:
    """Set the settings of an operator and remove all others."""
    settings = {**app_environment(servers, "operators"), "PORT": str(free_port())}
    replace_environment(monkeypatch, settings)
    monkeypatch.setattr(sys, "stdin", io.StringIO(PASSWORD + "\n"))
    return monkeypatch


@pytest.fixture
def email() -> str:
    """Return an address without an account."""
    return f"{secrets.token_hex(8)}@slotlock.test"


def error_line(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that fails and return its one line of stderr."""
    (line,) = command_errors(capsys, *arguments)
    return line


def create_arguments(email: str, *options: str) -> tuple[str, ...]:
    """Return the arguments that create an account with the password from stdin."""
    return ("users", "create", email, "--password-stdin", *options)


def test_a_created_user_is_listed_and_can_sign_in(
    capsys: pytest.CaptureFixture[str], servers: EmbeddedServers, email: str
) -> None:
    line = run_command(
        capsys, *create_arguments(email.upper(), "--name", "Ada", "--role", "organizer")
    )
    assert line == f"created {email}, organizer\n"
    listed = json.loads(run_command(capsys, "users", "list", "--json"))
    (found,) = [each for each in listed if each["login"] == email]
    assert (found["role"], found["name"], found["bannedAt"]) == ("organizer", "Ada", None)

    async def login() -> object:
        async with auth_for_database(database_url(servers, "operators")) as auth:
            return await accounts.login(auth, email, PASSWORD)

    assert isinstance(asyncio.run(login()), SignedInSession)


def test_by_default_a_user_is_a_member_named_after_the_address(
    capsys: pytest.CaptureFixture[str], email: str
) -> None:
    name = email.partition("@")[0]
    assert run_command(capsys, *create_arguments(email)) == f"created {email}, member\n"
    shown = json.loads(run_command(capsys, "users", "show", email, "--json"))
    assert (shown["role"], shown["name"], shown["hasPassword"]) == ("member", name, True)


def test_a_role_can_be_changed(capsys: pytest.CaptureFixture[str], email: str) -> None:
    run_command(capsys, *create_arguments(email))
    changed = run_command(capsys, "users", "set-role", email, "admin")
    assert changed == f"{email} has the role admin\n"
    assert re.search(f"{email} +admin ", run_command(capsys, "users", "list"))


def test_set_role_rejects_the_demotion_of_the_last_admin(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, servers: EmbeddedServers
) -> None:
    environ.setenv("SLOTLOCK_MONGO_URL", database_url(servers, f"admins_{secrets.token_hex(4)}"))
    run_command(capsys, *create_arguments("ada@a.test", "--role", "admin"))
    sys.stdin.seek(0)
    run_command(capsys, *create_arguments("ben@a.test"))
    for command in (
        ("set-role", "ada@a.test", "member"),
        ("delete", "ada@a.test", "--yes"),
        ("ban", "ada@a.test"),
    ):
        assert "is the last admin" in error_line(capsys, "users", *command)
    run_command(capsys, "users", "set-role", "ada@a.test", "admin")
    run_command(capsys, "users", "set-role", "ben@a.test", "admin")
    run_command(capsys, "users", "ban", "ada@a.test")
    assert "is the last admin" in error_line(capsys, "users", "ban", "ben@a.test")
    run_command(capsys, "users", "set-role", "ada@a.test", "member")


def test_a_deployment_without_an_admin_can_change_other_roles(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, servers: EmbeddedServers
) -> None:
    environ.setenv("SLOTLOCK_MONGO_URL", database_url(servers, f"admins_{secrets.token_hex(4)}"))
    run_command(capsys, *create_arguments("ben@a.test"))
    changed = run_command(capsys, "users", "set-role", "BEN@a.test", "organizer")
    assert changed == "ben@a.test has the role organizer\n"


def test_users_are_listed_by_address(capsys: pytest.CaptureFixture[str], email: str) -> None:
    run_command(capsys, *create_arguments(f"b{email}"))
    sys.stdin.seek(0)
    run_command(capsys, *create_arguments(f"a{email}"))
    head, *lines = run_command(capsys, "users", "list").splitlines()
    assert head.split("  ")[0] == "LOGIN"
    listed = [line.split()[0] for line in lines]
    assert listed == sorted(listed)
    assert {f"a{email}", f"b{email}"} <= set(listed)


def test_a_taken_address_is_rejected(capsys: pytest.CaptureFixture[str], email: str) -> None:
    run_command(capsys, *create_arguments(email))
    sys.stdin.seek(0)
    assert f"{email} already has an account" in error_line(capsys, *create_arguments(email))


def test_an_unknown_address_is_rejected(capsys: pytest.CaptureFixture[str], email: str) -> None:
    line = error_line(capsys, "users", "set-role", email, "admin")
    assert f"no account has the address or user name {email}" in line


def test_each_invalid_field_of_an_account_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    sys.stdin.readline()  # consume the password
    line = error_line(capsys, *create_arguments("no body"))
    assert "email:" in line
    assert "password:" in line


@pytest.mark.parametrize(
    "arguments",
    [create_arguments("a@b.test", "--role", "boss"), ("users", "set-role", "a@b.test", "boss")],
)
def test_an_unknown_role_is_rejected_with_the_list_of_roles(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == 2
    message = capsys.readouterr().err
    assert "'boss'" in message.splitlines()[-1]
    assert all(role in message for role in ("member", "organizer", "admin"))


def test_an_unavailable_mongodb_is_reported(environ: pytest.MonkeyPatch) -> None:
    address = f"127.0.0.1:{free_port()}"
    environ.setenv("SLOTLOCK_MONGO_URL", f"mongodb://{address}/")
    # Other processes, because the driver would still try to connect after the command.
    processes = [
        subprocess.Popen(MODULE + command, stderr=subprocess.PIPE, text=True)
        for command in (("users", "list"), ("serve",))
    ]
    for process in processes:
        (line,) = process.communicate()[1].splitlines()
        assert line.startswith("slotlock: MongoDB")
        assert address in line
        assert process.returncode == 1


def test_serve_reports_each_missing_setting(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch
) -> None:
    for name in ("SLOTLOCK_MONGO_URL", "SLOTLOCK_REDIS_URL", "SLOTLOCK_SECRET_KEY"):
        environ.delenv(name)
    assert main(["serve"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == [
        "SLOTLOCK_MONGO_URL",
        "SLOTLOCK_REDIS_URL",
        "SLOTLOCK_SECRET_KEY",
    ]
    assert "SLOTLOCK_MONGO_URL is not set" in error_line(capsys, "users", "list")


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_a_list_of_documents_that_cannot_be_used_is_reported(
    environ: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str
) -> None:
    environ.setenv("SLOTLOCK_OPERATIONS", str(tmp_path / "none.json"))
    line = error_line(capsys, command)
    assert line.startswith("SLOTLOCK_OPERATIONS: ")
    assert "cannot be read" in line


@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_a_port_in_use_is_reported_with_the_remedy(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as port_holder:
        port = port_holder.getsockname()[1]
        environ.setenv("PORT", str(port))
        line = error_line(capsys, "serve", *workers)
    assert f"127.0.0.1:{port}" in line
    assert "PORT" in line


@pytest.mark.parametrize(
    ("password", "problem"),
    [
        ("x" * 7, "The password must have 8 to 128 characters"),
        ("x" * 129, "The password must have 8 to 128 characters"),
        ("password", "This password is too easy to guess"),
        ("headmistress-1", "The password must not contain the name, the email address"),
        ("administrator-1", "The password must not contain the name, the email address"),
    ],
)
def test_a_weak_password_of_an_admin_who_does_not_exist_stops_the_start(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, password: str, problem: str
) -> None:
    environ.setenv("SLOTLOCK_ADMIN_EMAIL", "headmistress@slotlock.test")
    environ.setenv("SLOTLOCK_ADMIN_PASSWORD", password)
    line = error_line(capsys, "serve")
    assert line.startswith(f"SLOTLOCK_ADMIN_PASSWORD: {problem}")


def test_a_weak_password_of_an_admin_who_exists_is_only_a_warning(
    capsys: pytest.CaptureFixture[str],
    environ: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    email: str,
) -> None:
    run_command(capsys, *create_arguments(email, "--role", "admin"))
    environ.setenv("SLOTLOCK_ADMIN_EMAIL", email)
    environ.setenv("SLOTLOCK_ADMIN_PASSWORD", "Summer2026!")
    with socket.create_server(("127.0.0.1", 0)) as port_holder:
        # The start ends here, and not before.
        environ.setenv("PORT", str(port_holder.getsockname()[1]))
        assert "PORT" in error_line(capsys, "serve")
    assert "SLOTLOCK_ADMIN_PASSWORD: This password is too easy to guess" in caplog.text
    assert "Summer2026!" not in caplog.text


@pytest.mark.parametrize("role", ["organizer", "admin"])
def test_serve_says_how_to_create_the_first_admin_until_there_is_one(
    capsys: pytest.CaptureFixture[str],
    environ: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    servers: EmbeddedServers,
    email: str,
    role: str,
) -> None:
    environ.setenv("SLOTLOCK_MONGO_URL", database_url(servers, f"first_{role}"))
    for name in ("SLOTLOCK_ADMIN_EMAIL", "SLOTLOCK_ADMIN_PASSWORD"):
        environ.delenv(name)
    run_command(capsys, *create_arguments(email, "--role", role))
    with socket.create_server(("127.0.0.1", 0)) as port_holder:
        # The start ends here, and not before.
        environ.setenv("PORT", str(port_holder.getsockname()[1]))
        assert "PORT" in error_line(capsys, "serve")
    assert ("slotlock users create you@example.org --role admin" in caplog.text) is (
        role == "organizer"
    )


@pytest.fixture(params=[(), ("--replSet", "rs0")], ids=["standalone", "not initiated"])
def standalone(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a MongoDB that is not a replica set, or not yet, and return its address."""
    port = free_port()
    options = ("--dbpath", str(tmp_path), "--port", str(port), "--bind_ip", "127.0.0.1")
    options += request.param
    command = (find_binary(MONGOD, None), *options, "--nounixsocket", "--quiet")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        url = f"mongodb://127.0.0.1:{port}/?directConnection=true"
        try:
            with closing(MongoClient[dict[str, object]](url)) as client:
                client.admin.command("ping")  # waits for the server
            yield url
        finally:
            process.kill()


def test_a_mongodb_without_transactions_is_reported_with_the_remedy(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, standalone: str
) -> None:
    environ.setenv("SLOTLOCK_MONGO_URL", standalone)
    line = error_line(capsys, "serve")
    assert "not a replica set" in line
    assert "--replSet" in line


def test_workers_that_cannot_start_end_with_a_failure(
    environ: pytest.MonkeyPatch, servers: EmbeddedServers
) -> None:
    url = database_url(servers, "broken")
    with closing(MongoClient[dict[str, object]](url)) as client:
        database = client.get_default_database()
        database["users"].create_index("email", name="email")  # not unique
        environ.setenv("SLOTLOCK_MONGO_URL", url)
        command = (*MODULE, "serve", "--workers", "2")
        ended = subprocess.run(command, capture_output=True, check=False)
        client.drop_database(database)
    assert ended.returncode == 1


def test_several_processes_are_refused_where_a_fork_is_not_safe(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch
) -> None:
    environ.setattr(sys, "platform", "darwin")
    assert "needs Linux" in error_line(capsys, "serve", "--workers", "2")


@pytest.mark.parametrize("number", ["0", "-1", "x", "65"])
def test_a_number_of_workers_is_1_to_64(capsys: pytest.CaptureFixture[str], number: str) -> None:
    with pytest.raises(SystemExit):
        main(["serve", f"--workers={number}"])
    assert "1 to 64" in capsys.readouterr().err


def test_the_package_runs_as_a_module() -> None:
    ended = subprocess.run((*MODULE, "--version"), capture_output=True, text=True, check=True)
    assert ended.stdout == f"slotlock {__version__}\n"
    assert version("slotlock") == __version__


def last_line(program: str) -> str:
    """Run a program with the settings of an operator, and return its last line."""
    command = (sys.executable, "-c", program)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[
        -1
    ]


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        # `serve --workers` relies on it: prometheus_client is imported after its setting.
        ("--version", {"asyncio", "pymongo", "redis", "prometheus_client"} | GRAPHQL),
        ("users list", UNUSED | OF_BOOKINGS),
        ("migrate", UNUSED),
        ("doctor", (UNUSED - {"redis", "opentelemetry"}) | {"prometheus_client"}),
    ],
)
def test_a_command_imports_only_what_it_needs(arguments: str, unneeded: set[str]) -> None:
    program = (
        "import sys; from slotlock.cli.main import main\n"
        f"try: main({arguments.split()})\n"
        "finally: print('imported', *sys.modules)"
    )
    imported = last_line(program).split()
    assert imported[0] == "imported"
    assert unneeded.intersection(imported) == set()


def test_a_server_process_imports_neither_what_it_may_never_need_nor_collects_all_objects() -> None:
    program = (
        "import gc, sys; import slotlock.api.app\n"
        "print(gc.isenabled(), gc.get_stats()[2]['collections'], *sys.modules)"
    )
    is_collecting, full_collections, *imported = last_line(program).split()
    assert UNUSED_BY_SERVERS.intersection(imported) == set()
    assert (is_collecting, full_collections) == ("True", "0")


def test_the_last_collection_of_a_process_visits_nothing() -> None:
    # Handlers run in the opposite order.
    program = "import atexit, gc; atexit.register(lambda: print(len(gc.get_objects())))"
    assert int(last_line(f"{program}; import slotlock.domain.booking.slot")) < 100


def test_a_closed_output_pipe_causes_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as closed_pipe:
        ended = subprocess.run(
            (*MODULE, "schema"), stdout=closed_pipe, stderr=subprocess.PIPE, check=False
        )
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_the_draw_mode_of_simulate_compares_three_ways_on_the_same_wishes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    results, plot = tmp_path / "results.json", tmp_path / "plot.svg"
    size = ["--users", "60", "--slots", "6", "--places", "5", "--seed", "1"]
    files = ["--results", str(results), "--plot", str(plot)]
    assert main(["simulate", "--mode", "draw", *size, *files]) == 0
    measures = json.loads(results.read_text())["measures"]
    assert list(measures) == ["rush", "serial", "rounds"]
    assert {each["places"] for each in measures.values()} == {30}
    assert measures["rounds"]["without_place"] < measures["rush"]["without_place"]
    assert measures["rounds"]["envious"] == 0
    assert "<svg" in plot.read_text()
    printed = capsys.readouterr().out
    assert printed.startswith("60 users, 6 slots of 5 places, 6 wishes and 3 places each at most")
