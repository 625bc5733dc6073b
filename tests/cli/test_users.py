"""Operators import user files and print invitations without a running app."""

import asyncio
import csv
import json
import os
import re
import secrets
from io import StringIO
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest
from bson import ObjectId

from slotlock.auth.accounts import login, register
from slotlock.auth.sessions import SignedInSession
from slotlock.cli.main import main
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.shared.tables.table import MAX_FILE_BYTES
from slotlock.domain.users.user import Role
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.users.user_documents import new_login_name, to_new_document
from slotlock.services.container import utc_now
from tests.support.apps.processes import AppProcess, app_environment
from tests.support.cli.command_line import command_errors, replace_environment, run_command
from tests.support.clients.user_files import generated_user_csv, user_csv
from tests.support.stores.users import auth_for_database

PUBLIC_URL = "https://slots.example.org"


@pytest.fixture(autouse=True)
def environ(monkeypatch: pytest.MonkeyPatch, servers: EmbeddedServers) -> None:
    """Set the settings of an operator and remove all others."""
    settings = {**app_environment(servers, "operators"), "SLOTLOCK_PUBLIC_URL": PUBLIC_URL}
    replace_environment(monkeypatch, settings)


@pytest.fixture
def school() -> str:
    """Return a mail domain that no other test uses."""
    return f"{secrets.token_hex(8)}.test"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of the user file."""
    return tmp_path / "users.csv"


def test_a_dry_run_changes_nothing_and_an_import_runs_once(
    capsys: pytest.CaptureFixture[str], file: Path, school: str
) -> None:
    file.write_bytes(generated_user_csv(school, 3))
    importing = ("users", "import", str(file))
    for _ in range(2):
        counts, advice = run_command(capsys, *importing).splitlines()
        assert counts == "3 created, 0 updated, 0 unchanged"
        assert "--apply makes these changes" in advice
    planned = json.loads(run_command(capsys, *importing, "--json"))
    assert (planned["dryRun"], planned["created"]) == (True, 3)
    assert run_command(capsys, *importing, "--apply") == "3 created, 0 updated, 0 unchanged\n"
    assert run_command(capsys, *importing, "--apply") == "0 created, 0 updated, 3 unchanged\n"
    listed = run_command(capsys, "users", "list")
    assert re.search(f"person0@{school} +member +Somebody ", listed)
    file.write_bytes(generated_user_csv(school, 2))
    _, leaver, advice = run_command(capsys, "users", "import", str(file), "--apply").splitlines()
    assert leaver == f"not in the file\tperson2@{school}\tSomebody\t5a {school}"
    assert "slotlock users sync" in advice


def test_an_account_that_registered_itself_is_listed_until_claimed(
    capsys: pytest.CaptureFixture[str], file: Path, school: str
) -> None:
    async def register_first() -> None:
        async with auth_for_database(os.environ["SLOTLOCK_MONGO_URL"]) as auth:
            await register(auth, "Eve", f"ada@{school}", "correct horse battery")

    asyncio.run(register_first())
    file.write_bytes(user_csv(school, {"ada": "Ada"}))
    found = json.loads(run_command(capsys, "users", "import", str(file), "--json"))
    assert [(each["line"], each["name"]) for each in found["selfRegistered"]] == [(2, "Eve")]
    counts, line = run_command(capsys, "users", "import", str(file), "--apply").splitlines()
    assert counts == "0 created, 0 updated, 0 unchanged"
    assert line.startswith(f"line 2: ada@{school} registered as Eve on ")
    (line,) = command_errors(capsys, "users", "import", str(file), "--claim", "two")
    assert "are all or numbers" in line
    claimed = run_command(capsys, "users", "import", str(file), "--claim", "2", "--apply")
    assert claimed == "0 created, 0 updated, 0 unchanged, 1 claimed\n"


def test_equal_problems_of_a_file_are_one_line(
    capsys: pytest.CaptureFixture[str], file: Path, school: str
) -> None:
    file.write_bytes(user_csv(school, {"ada": "Ada"}) + b"\nnobody,Ben," * 102 + b"\nben@x.org,,")
    for option in ((), ("--apply",)):
        assert command_errors(capsys, "users", "import", str(file), *option) == [
            "lines 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, ... (102 in total), email: "
            "This is not an email address.",
            "line 105, name: Please enter a name.",
        ]
    assert school not in run_command(capsys, "users", "list")


def test_a_user_name_stands_wherever_an_address_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, file: Path, school: str
) -> None:
    name = f"Anna.{school.removesuffix('.test')}"
    file.write_text(f"Benutzername;Vorname;Nachname\n{name};Änne;Müller\n", encoding="cp1252")
    imported = run_command(capsys, "users", "import", str(file), "--apply")
    assert imported == "1 created, 0 updated, 0 unchanged\n"
    invited = run_command(capsys, "users", "invite")
    (row,) = [
        each for each in csv.DictReader(StringIO(invited)) if each["username"] == name.lower()
    ]
    assert row["name"] == "Änne Müller"
    run_command(capsys, "users", "set-role", name, "organizer")
    listed = run_command(capsys, "users", "list")
    assert re.search(f"{name.lower()} +organizer +Änne Müller ", listed)
    monkeypatch.setattr("sys.stdin", StringIO("correct horse battery\n"))
    line = run_command(capsys, "users", "set-password", name, "--password-stdin")
    assert line == f"set the password of {name.lower()}; all sessions ended\n"
    assert run_command(capsys, "users", "reset-link", name).startswith("link:")
    run_command(capsys, "users", "delete", name, "--yes")
    create_account(capsys, monkeypatch, name)
    assert name.lower() in run_command(capsys, "users", "list")


def test_an_unreadable_or_too_large_file_is_reported(
    capsys: pytest.CaptureFixture[str], file: Path, tmp_path: Path
) -> None:
    for path in (file, tmp_path):
        (line,) = command_errors(capsys, "users", "import", str(path))
        assert "cannot be read" in line
    file.write_bytes(b"email\n".ljust(MAX_FILE_BYTES + 1))
    (line,) = command_errors(capsys, "users", "import", str(file))
    assert f"more than {MAX_FILE_BYTES} bytes" in line


def test_invitations_are_printed_for_a_group_or_for_all(
    capsys: pytest.CaptureFixture[str], file: Path, school: str
) -> None:
    file.write_bytes(user_csv(school, {"ada": "Ada", "ben": "=Ben"}, school))
    run_command(capsys, "users", "import", str(file), "--apply")
    printed = run_command(capsys, "users", "invite", "--group", school)
    rows = list(csv.DictReader(StringIO(printed.removeprefix("\ufeff"))))
    assert [(row["email"], row["name"]) for row in rows] == [
        (f"ada@{school}", "Ada"),
        (f"ben@{school}", "'=Ben"),
    ]
    links = {row["link"] for row in rows}
    assert len(links) == 2
    assert {link[:-64] for link in links} == {f"{PUBLIC_URL}/board#/invitation/"}
    assert school in run_command(capsys, "users", "invite", "--separator", "semicolon")
    (line,) = command_errors(capsys, "users", "invite", "--group", "a;b")
    assert line.startswith("--group: ")
    assert main(("users", "invite", "--group", school.upper())) == 0
    assert capsys.readouterr().err == f"perhaps one group: {school.upper()}, {school}\n"


def create_account(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, email: str
) -> None:
    """Create an account with a password."""
    monkeypatch.setattr("sys.stdin", StringIO("correct horse battery\n"))
    run_command(capsys, "users", "create", email, "--password-stdin")


def test_a_password_is_set_from_stdin_and_a_weak_one_is_rejected(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, school: str
) -> None:
    email = f"ada@{school}"
    create_account(capsys, monkeypatch, email)
    monkeypatch.setattr("sys.stdin", StringIO("another horse battery\n"))
    line = run_command(capsys, "users", "set-password", email, "--password-stdin")
    assert line == f"set the password of {email}; all sessions ended\n"
    monkeypatch.setattr("sys.stdin", StringIO("short\n"))
    (error,) = command_errors(capsys, "users", "set-password", email, "--password-stdin")
    assert error == "The password must have 8 to 128 characters."


def test_a_link_that_replaces_a_password_leads_to_the_board_or_to_a_page_of_ones_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, school: str
) -> None:
    email = f"ada@{school}"
    create_account(capsys, monkeypatch, email)
    link, expires = run_command(capsys, "users", "reset-link", email).splitlines()
    assert re.fullmatch(rf"link: +{PUBLIC_URL}/board#/invitation/[0-9a-f]{{64}}", link)
    assert expires.startswith("expires at: ")
    page = "https://app.example.org/new?token="
    for name, value in (("SLOTLOCK_PUBLIC_URL", ""), ("SLOTLOCK_BOARD", "off")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            for command in (("reset-link", email), ("invite",)):
                (error,) = command_errors(capsys, "users", *command)
                assert name in error
            printed = run_command(capsys, "users", "reset-link", email, "--page", page, "--json")
            assert json.loads(printed)["link"].startswith(page)


def test_a_link_of_the_command_line_sets_the_password(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    app: AppProcess,
    school: str,
) -> None:
    replace_environment(monkeypatch, {**app.environment, "SLOTLOCK_PUBLIC_URL": app.url})
    email = f"ada@{school}"
    create_account(capsys, monkeypatch, email)
    link = json.loads(run_command(capsys, "users", "reset-link", email, "--json"))["link"]
    query = (
        'mutation ($t: String!) { setPassword(token: $t, password: "x horse x") { __typename } }'
    )
    body = {"query": query, "variables": {"t": link.rpartition("/")[2]}}
    response = httpx.post(f"{app.url}/graphql", json=body, trust_env=False, timeout=30)
    assert response.json() == {"data": {"setPassword": {"__typename": "Session"}}}


def test_a_password_is_asked_for_twice_and_never_without_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, school: str
) -> None:
    email, answers = f"ada@{school}", ["correct horse battery", "correct horse batery"] * 2
    answers += ["correct horse battery"]
    with monkeypatch.context() as patch:
        patch.setattr("getpass.getpass", lambda _: answers.pop())
        (error,) = command_errors(capsys, "users", "create", email)
        assert error == "the two passwords differ; nothing was changed"
        answers[:] = ["correct horse battery"] * 2
        assert run_command(capsys, "users", "create", email) == f"created {email}, member\n"
    monkeypatch.setattr("sys.stdin", StringIO("correct horse battery\n"))
    monkeypatch.setattr("os.open", Mock(side_effect=OSError))  # there is no /dev/tty
    (error,) = command_errors(capsys, "users", "set-password", email)
    assert "--password-stdin reads one from stdin" in error


def test_a_ban_ends_sessions_and_can_be_lifted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, school: str
) -> None:
    async def is_signed_in() -> bool:
        async with auth_for_database(os.environ["SLOTLOCK_MONGO_URL"]) as auth:
            return isinstance(await login(auth, email, "correct horse battery"), SignedInSession)

    def shown() -> dict[str, object]:
        return dict(json.loads(run_command(capsys, "users", "show", email, "--json")))

    email = f"ada@{school}"
    create_account(capsys, monkeypatch, email)
    assert asyncio.run(is_signed_in())
    (error,) = command_errors(capsys, "users", "ban", email, "--reason", "x" * 201)
    assert error.startswith("--reason: ")
    run_command(capsys, "users", "ban", email, "--reason", "Loud")
    assert (shown()["banReason"], shown()["bannedAt"] is None) == ("Loud", False)
    assert not asyncio.run(is_signed_in())
    for _ in range(2):
        run_command(capsys, "users", "unban", email)
    assert shown()["bannedAt"] is None
    assert asyncio.run(is_signed_in())
    for command in ("ban", "unban", "show"):
        assert "no account has" in command_errors(capsys, "users", command, "x@x.test")[0]


async def add_children(email: str) -> None:
    """Store Ben, whose only guardian has this address, and Mia, who has another one, too."""
    client, database = connect(os.environ["SLOTLOCK_MONGO_URL"])
    guardian = await database["users"].find_one({"email": email})
    assert guardian is not None
    for name, others in (("Ben", []), ("Mia", [ObjectId()])):
        child = to_new_document(name, new_login_name(), Role.MEMBER, None, utc_now())
        guardians = [guardian["_id"], *others]
        await database["users"].insert_one({**child, "guardians": guardians})
    await client.close()


def test_an_account_is_deleted_after_a_confirmation_and_then_unknown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, school: str
) -> None:
    email = f"ada@{school}"
    create_account(capsys, monkeypatch, email)
    monkeypatch.setattr("sys.stdin", StringIO(f"{email}\n"))  # no terminal
    (line,) = command_errors(capsys, "users", "delete", email)
    assert line == f"erasing {email} cannot be undone. Nothing was changed; --yes confirms it"
    asyncio.run(add_children(email))
    (line,) = command_errors(capsys, "users", "delete", email)
    left = f"erasing {email} cannot be undone, and leaves Ben without a guardian. "
    assert line == f"{left}Nothing was changed; --yes confirms it"
    line = run_command(capsys, "users", "delete", email, "--yes")
    assert line.startswith(f"erased the account {email};")
    unknown = command_errors(capsys, "users", "delete", email, "--yes")
    assert unknown == [f"no account has the address or user name {email}"]
    assert email not in run_command(capsys, "users", "list")
