"""The command line does what an operator asks, or says in one line why it cannot."""

import asyncio
import io
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
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
from tests.support.stores.users import auth_for_database

MODULE = (sys.executable, "-m", "slotlock")
PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch, servers: EmbeddedServers) -> pytest.MonkeyPatch:
    """The settings of an operator, and nothing else."""
    for name in list(os.environ):
        if name.startswith("SLOTLOCK_") or name == "PORT":
            monkeypatch.delenv(name)
    for name, value in app_environment(servers, "operators").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PORT", str(free_port()))
    monkeypatch.setattr(sys, "stdin", io.StringIO(PASSWORD + "\n"))
    return monkeypatch


@pytest.fixture
def email() -> str:
    return f"{secrets.token_hex(8)}@slotlock.test"


def ran(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a command that works prints."""
    assert main(arguments) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of a command that does not work."""
    assert main(arguments) == 1
    output = capsys.readouterr()
    assert output.out == ""
    (line,) = output.err.splitlines()
    assert line.startswith("slotlock: ")
    return line


def create(email: str, *more: str) -> tuple[str, ...]:
    return ("users", "create", email, "--password-stdin", *more)


def test_a_person_who_was_created_is_listed_and_signs_in(
    capsys: pytest.CaptureFixture[str], servers: EmbeddedServers, email: str
) -> None:
    line = ran(capsys, *create(email.upper(), "--name", "Ada", "--role", "organizer"))
    assert line.startswith(f"created {email}\torganizer\tAda\t")
    assert line.removeprefix("created ") in ran(capsys, "users", "list")

    async def login() -> object:
        async with auth_for_database(database_url(servers, "operators")) as auth:
            return await accounts.login(auth, email, PASSWORD)

    assert isinstance(asyncio.run(login()), SignedInSession)


def test_a_person_is_a_member_of_their_addresss_name_unless_told_otherwise(
    capsys: pytest.CaptureFixture[str], email: str
) -> None:
    name = email.partition("@")[0]
    assert ran(capsys, *create(email)).startswith(f"created {email}\tmember\t{name}\t")


def test_a_role_is_given(capsys: pytest.CaptureFixture[str], email: str) -> None:
    ran(capsys, *create(email))
    assert ran(capsys, "users", "set-role", email, "admin").startswith(f"now {email}\tadmin\t")
    assert f"{email}\tadmin\t" in ran(capsys, "users", "list")


def test_people_are_listed_by_address(capsys: pytest.CaptureFixture[str], email: str) -> None:
    ran(capsys, *create(f"b{email}"))
    sys.stdin.seek(0)
    ran(capsys, *create(f"a{email}"))
    listed = [line.partition("\t")[0] for line in ran(capsys, "users", "list").splitlines()]
    assert listed == sorted(listed)
    assert {f"a{email}", f"b{email}"} <= set(listed)


def test_a_taken_address_is_refused(capsys: pytest.CaptureFixture[str], email: str) -> None:
    ran(capsys, *create(email))
    sys.stdin.seek(0)
    assert f"{email} has an account already" in refused(capsys, *create(email))


def test_an_unknown_address_is_refused(capsys: pytest.CaptureFixture[str], email: str) -> None:
    line = refused(capsys, "users", "set-role", email, "admin")
    assert f"nobody has the address {email}" in line


def test_what_is_wrong_with_an_account_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    sys.stdin.readline()  # so that no password is left
    line = refused(capsys, *create("nobody"))
    assert "email:" in line
    assert "password:" in line


@pytest.mark.parametrize(
    "arguments", [create("a@b.test", "--role", "boss"), ("users", "set-role", "a@b.test", "boss")]
)
def test_a_role_that_is_none_is_refused_with_those_there_are(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    complaint = capsys.readouterr().err
    assert "'boss'" in complaint.splitlines()[-1]
    assert all(role in complaint for role in ("member", "organizer", "admin"))


def test_a_mongodb_that_is_away_is_told(environ: pytest.MonkeyPatch) -> None:
    address = f"127.0.0.1:{free_port()}"
    environ.setenv("SLOTLOCK_MONGO_URL", f"mongodb://{address}/")
    # In processes of their own: the driver's last attempt to connect ends with them.
    waiting = [
        subprocess.Popen(MODULE + command, stderr=subprocess.PIPE, text=True)
        for command in (("users", "list"), ("serve",))
    ]
    for process in waiting:
        (line,) = process.communicate()[1].splitlines()
        assert line.startswith("slotlock: MongoDB")
        assert address in line
        assert process.returncode == 1


def test_serving_without_settings_names_each_that_is_missing(
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
    assert "SLOTLOCK_MONGO_URL is not set" in refused(capsys, "users", "list")


@pytest.mark.parametrize("workers", [(), ("--workers", "2")])
def test_a_taken_port_is_told_with_what_to_do(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, workers: tuple[str, ...]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        port = squatter.getsockname()[1]
        environ.setenv("PORT", str(port))
        line = refused(capsys, "serve", *workers)
    assert f"127.0.0.1:{port}" in line
    assert "PORT" in line


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """The address of a MongoDB that is no replica set."""
    port = free_port()
    place = ("--dbpath", str(tmp_path), "--port", str(port), "--bind_ip", "127.0.0.1")
    command = (find_binary(MONGOD, None), *place, "--nounixsocket", "--quiet")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        url = f"mongodb://127.0.0.1:{port}/"
        try:
            with closing(MongoClient[dict[str, object]](url)) as client:
                client.admin.command("ping")  # waits for the server
            yield url
        finally:
            process.kill()


def test_a_mongodb_without_transactions_is_refused_with_what_to_do(
    capsys: pytest.CaptureFixture[str], environ: pytest.MonkeyPatch, standalone: str
) -> None:
    environ.setenv("SLOTLOCK_MONGO_URL", standalone)
    line = refused(capsys, "serve")
    assert "not a replica set" in line
    assert "--replSet" in line


def test_workers_that_cannot_start_end_with_a_failure(
    environ: pytest.MonkeyPatch, servers: EmbeddedServers
) -> None:
    url = database_url(servers, "broken")
    with closing(MongoClient[dict[str, object]](url)) as client:
        client.get_default_database()["users"].create_index("email", name="email")  # not unique
    environ.setenv("SLOTLOCK_MONGO_URL", url)
    ended = subprocess.run((*MODULE, "serve", "--workers", "2"), capture_output=True, check=False)
    assert ended.returncode == 1


@pytest.mark.parametrize("number", ["0", "-1", "x", "65"])
def test_a_number_of_workers_is_1_to_64(capsys: pytest.CaptureFixture[str], number: str) -> None:
    with pytest.raises(SystemExit):
        main(["serve", f"--workers={number}"])
    assert "1 to 64" in capsys.readouterr().err


def test_the_package_runs_as_a_module() -> None:
    ended = subprocess.run((*MODULE, "--version"), capture_output=True, text=True, check=True)
    assert ended.stdout == f"slotlock {__version__}\n"


def test_a_reader_who_has_read_enough_makes_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as gone:
        ended = subprocess.run(
            (*MODULE, "schema"), stdout=gone, stderr=subprocess.PIPE, check=False
        )
    assert (ended.returncode, ended.stderr) == (141, b"")
