"""Operators make the accounts those of a file of all users of the school."""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from bson import ObjectId
from pymongo import MongoClient
from pymongo.database import Database

from slotlock.auth.accounts import create_user, register
from slotlock.auth.admin.groups_and_bans import ban, unban
from slotlock.auth.container import Auth
from slotlock.cli.deployment import settings_with_mongodb
from slotlock.cli.users import open_auth
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.user_files.choices import Choices
from slotlock.domain.user_files.plan import ImportPlan
from slotlock.domain.user_files.sync_plan import GONE_REASON, plan_sync
from slotlock.domain.user_files.user_file import UserRow
from slotlock.domain.users.user import Caller, Role, User
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.users.imports import ImportAttempt
from slotlock.services.container import utc_now
from tests.support.apps.processes import app_environment
from tests.support.cli.command_line import command_errors, replace_environment, run_command
from tests.support.stores.empty_database import delete_documents

PASSWORD = "correct horse battery"
DRY_RUN = "this was a dry run; --apply makes these changes"
Result = TypeVar("Result")


@pytest.fixture
def database(
    monkeypatch: pytest.MonkeyPatch, servers: EmbeddedServers
) -> Iterator[Database[Document]]:
    """Yield a database without users: a sync is about all of them."""
    settings = app_environment(servers, "sync")
    replace_environment(monkeypatch, settings)
    with MongoClient[Document](settings["SLOTLOCK_MONGO_URL"]) as client:
        yield client.get_default_database()
        delete_documents(client.get_default_database())


@pytest.fixture
def sync(
    database: Database[Document], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., list[str]]:
    """Return a function that syncs with a file of these lines, and returns what is printed."""

    def run(
        lines: str, *options: str, refused: bool = False, header: str = "E-Mail;Name;Klasse\r\n"
    ) -> list[str]:
        file = tmp_path / "all.csv"
        file.write_bytes(f"{header}{lines}".encode("utf-8-sig"))
        arguments = ("users", "sync", str(file), *options)
        if refused:
            return command_errors(capsys, *arguments)
        return run_command(capsys, *arguments).splitlines()

    return run


def with_auth(use: Callable[[Auth], Awaitable[Result]]) -> Result:
    """Do something with the accounts, as an app would meanwhile."""

    async def run() -> Result:
        async with open_auth(settings_with_mongodb()) as auth:
            return await use(auth)

    return asyncio.run(run())


def find_user(email: str) -> User:
    """Return the user with an address."""
    found = with_auth(lambda auth: auth.repositories.users.find_with_password_hash(email))
    assert found is not None
    return found[0]


def organizer() -> Caller:
    """Create an organizer."""
    email = f"{secrets.token_hex(4)}@staff.test"
    user = with_auth(lambda auth: create_user(auth, "Otto", email, PASSWORD, Role.ORGANIZER))
    assert isinstance(user, User)
    return Caller(user.id, user.role, "session", utc_now())


def lines_of(count: int) -> str:
    """Return the lines of this many users."""
    return "".join(f"p{number:02}@x.test;P{number};5a\r\n" for number in range(count))


def test_a_dry_run_says_what_apply_does_and_the_second_time_there_is_nothing_to_do(
    sync: Callable[..., list[str]],
) -> None:
    lines = "ada@x.test;Ada;5a\r\nben@x.test;Bén;5b\r\n"
    planned = ["new\tada@x.test\tAda\t5a", "new\tben@x.test\tBén\t5b"]
    planned += ["2 new, 0 changed, 0 unchanged, 0 back, 0 gone"]
    assert sync(lines) == [*planned, DRY_RUN]
    assert sync(lines, "--apply") == planned
    unchanged = "0 new, 0 changed, 2 unchanged, 0 back, 0 gone"
    assert sync(lines, "--apply") == [unchanged]
    lines = "ada@x.test;Ada L.;6a\r\ncleo@x.test;Cleo;5b\r\n"
    planned = [
        "new\tcleo@x.test\tCleo\t5b",
        "changed\tada@x.test\tAda -> Ada L.\t5a -> 6a",
        "gone\tben@x.test\tBén\t5b\tno bookings",
        "1 new, 1 changed, 0 unchanged, 0 back, 1 gone and not changed (see --gone)",
    ]
    assert sync(lines) == [*planned, DRY_RUN]
    found = json.loads("".join(sync(lines, "--json")))
    assert (found["created"], found["updated"]) == (["cleo@x.test"], ["ada@x.test"])
    assert sync(lines, "--apply") == planned
    assert not find_user("ben@x.test").banned


def test_guardians_whom_a_file_created_are_gone_when_it_names_none_of_their_children(
    sync: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    header, lines = "Name;E-Mail\r\n", "Mia;pam@x.test\r\nBen;pam@x.test\r\n"
    hint = "If these are addresses of parents: --addresses-of guardians"
    assert sync(lines, header=header, refused=True)[-1] == hint
    unknown = sync("ada;Nobody\r\n", header="Kennung;Leitet\r\n", refused=True)
    assert unknown[0].startswith("line 2, Leitet: ")
    options = ("--apply", "--gone", "ban", "--gone-limit", "100", "--addresses-of", "guardians")
    planned = ["new\tpam@x.test\tpam\t", "new\t\tMia\t", "new\t\tBen\t"]
    planned += ["3 new, 0 changed, 0 unchanged, 0 back, 0 gone"]
    assert sync(lines, *options, header=header) == [
        *planned,
        "links to guardians: 2 new, 0 removed",
    ]
    assert sync(lines, *options, header=header) == ["0 new, 0 changed, 2 unchanged, 0 back, 0 gone"]
    assert sync("Mia;pam@x.test\r\n", *options, header=header) == [
        "gone\t\tBen\t\tno bookings",
        "0 new, 0 changed, 1 unchanged, 0 back, 1 gone and banned",
    ]
    assert "child " not in run_command(capsys, "users", "list")
    assert len(sync("Ida;tom@x.test\r\n", *options, header=header)) == 6
    assert find_user("pam@x.test").banned
    sync(lines, *options, header=header)
    assert not find_user("pam@x.test").banned
    assert find_user("tom@x.test").banned


def test_gone_members_are_banned_with_their_bookings_named_until_they_are_back(
    sync: Callable[..., list[str]], database: Database[Document]
) -> None:
    sync(lines_of(11), "--apply")
    gone = find_user("p10@x.test")
    start = utc_now() + timedelta(days=2)
    past, future = utc_now() - timedelta(days=2), [{"user": ObjectId(gone.id)}]
    database["slots"].insert_many(
        {"title": title, "start": at, "end": at, "status": "published", "bookings": future}
        for title, at in (("Robotics", start), ("Chess", past))
    )
    database["sessions"].insert_one({"_id": "s", "user": ObjectId(gone.id), "role": "member"})
    found = json.loads("".join(sync(lines_of(10), "--json", "--gone", "ban")))
    ((gone_user, (booking,)),) = [each.values() for each in found["gone"]]
    assert (gone_user, booking["title"]) == ("p10@x.test", "Robotics")
    flags = [found[name] for name in ("dryRun", "bansGone", "exceedsGoneLimit", "unchanged")]
    assert flags == [True, True, False, 10]
    printed = sync(lines_of(10), "--apply", "--gone", "ban")
    assert printed == [
        f"gone\tp10@x.test\tP10\t5a\tstill booked: {start:%Y-%m-%d} Robotics",
        "0 new, 0 changed, 10 unchanged, 0 back, 1 gone and banned",
    ]
    assert find_user("p10@x.test").ban_reason == GONE_REASON
    assert not database["sessions"].count_documents({})
    banned = database["audit_notes"].find_one({"action": "banned"})
    assert banned is not None
    assert (banned["by"], banned["users"]) == (None, [ObjectId(gone.id)])
    again = sync(lines_of(10), "--apply", "--gone", "ban")
    assert again == ["0 new, 0 changed, 10 unchanged, 0 back, 0 gone"]
    back = sync(lines_of(11), "--apply", "--gone", "ban")
    assert back[0] == "back\tp10@x.test\tP10\t5a"
    assert not find_user("p10@x.test").banned


def test_an_organizer_has_the_last_word_on_a_ban(sync: Callable[..., list[str]]) -> None:
    sync(lines_of(12), "--apply")
    caller = organizer()
    loud, gone = find_user("p10@x.test"), find_user("p11@x.test")
    with_auth(lambda auth: ban(auth, caller, loud.id, "Loud"))
    sync(lines_of(10), "--apply", "--gone", "ban")
    with_auth(lambda auth: unban(auth, caller, gone.id))
    sync(lines_of(10), "--apply", "--gone", "ban")
    assert not find_user("p11@x.test").banned
    sync(lines_of(12), "--apply", "--gone", "ban")
    assert find_user("p10@x.test").ban_reason == "Loud"
    sync(lines_of(11), "--apply", "--gone", "ban")
    with_auth(lambda auth: ban(auth, caller, gone.id, "Loud"))
    sync(lines_of(12), "--apply", "--gone", "ban")
    assert find_user("p11@x.test").ban_reason == "Loud"


def test_only_members_whom_an_earlier_file_named_can_be_gone(
    sync: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    with_auth(lambda auth: register(auth, "Eve", "eve@x.test", PASSWORD))
    with_auth(lambda auth: create_user(auth, "Guest", "guest@x.test", PASSWORD, Role.MEMBER))
    printed = sync("ada@x.test;Ada;\r\neve@x.test;Adam;5a\r\n", "--apply")
    assert printed[-1].startswith("line 3: eve@x.test registered as Eve on ")
    run_command(capsys, "users", "set-role", "ada@x.test", "organizer")
    options = ("--apply", "--gone", "ban", "--gone-limit", "100")
    assert sync("", *options) == ["0 new, 0 changed, 0 unchanged, 0 back, 0 gone"]
    assert not any(find_user(f"{name}@x.test").banned for name in ("ada", "eve", "guest"))


def test_a_file_that_was_cut_off_bans_nobody(sync: Callable[..., list[str]]) -> None:
    sync(lines_of(10), "--apply")
    reason = (
        "3 of 10 managed members are gone, more than 20 %; "
        "is the file complete? --gone-limit allows more"
    )
    dry_run = sync(lines_of(7), "--gone", "ban")
    assert dry_run[-1] == f"--apply would change nothing: {reason}"
    refused = sync(lines_of(7) + "new@x.test;N;\r\n", "--apply", "--gone", "ban", refused=True)
    assert refused == [f"nothing was changed: {reason}"]
    allowed = sync(lines_of(7), "--apply", "--gone", "ban", "--gone-limit", "30")
    assert allowed[-1] == "0 new, 0 changed, 7 unchanged, 0 back, 3 gone and banned"


def test_a_file_with_one_bad_line_changes_nothing(sync: Callable[..., list[str]]) -> None:
    problem = "line 4, E-Mail: This is not an email address."
    for options in ((), ("--apply",)):
        assert sync(lines_of(2) + "nobody;N;\r\n", *options, refused=True) == [problem]
    assert sync(lines_of(2))[-2] == "2 new, 0 changed, 0 unchanged, 0 back, 0 gone"


def test_a_sync_names_the_subjects_of_users_at_a_provider(
    sync: Callable[..., list[str]],
    database: Database[Document],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    header = "E-Mail;Name;subject\r\n"
    lines = "ada@x.test;Ada;school:17\r\nben@x.test;Ben;\r\n"
    (problem,) = sync(lines, refused=True, header=header)
    assert problem.startswith("line 2, subject: This is no subject of a provider")
    providers = tmp_path / "providers.toml"
    issuer = "https://login.example.org"
    providers.write_text(
        f'[[provider]]\nid = "school"\nname = "S"\nissuer = "{issuer}"\nclient_id = "c"\n'
    )
    monkeypatch.setenv("SLOTLOCK_PROVIDERS", str(providers))
    sync(lines, "--apply", header=header)
    user = database["users"].find_one({"email": "ada@x.test"})
    assert user is not None
    assert user["identities"] == [{"key": f"{issuer} 17"}]
    unchanged = "0 new, 0 changed, 2 unchanged, 0 back, 0 gone"
    assert sync(lines, "--apply", header=header) == [unchanged]
    changed = sync(lines.replace("Ben;", "Ben;18"), header=header)
    assert changed[0] == "changed\tben@x.test\tBen\t\tsubject 18"


OTHER_BAN = {"banned": True, "bannedBy": ObjectId("f" * 24), "banReason": "Loud"}


@pytest.mark.parametrize(
    ("file", "before", "meanwhile"),
    [
        ("without the user", {}, {"role": "organizer"}),
        ("without the user", {}, OTHER_BAN),
        ("with the user", {"banned": True, "bannedBy": "the sync"}, OTHER_BAN),
    ],
    ids=["promoted", "banned by an organizer", "banned again by an organizer"],
)
def test_a_sync_overwrites_no_role_and_no_ban_of_meanwhile(
    sync: Callable[..., list[str]],
    database: Database[Document],
    file: str,
    before: Document,
    meanwhile: Document,
) -> None:
    sync(lines_of(2), "--apply")
    of_user = {"_id": ObjectId(find_user("p01@x.test").id)}
    if before:
        database["users"].update_one(of_user, {"$set": {**before, "bannedBy": of_user["_id"]}})
    names = ["p00@x.test", "p01@x.test"][: 2 if file == "with the user" else 1]

    async def sync_slowly(auth: Auth) -> ImportAttempt:
        imports = auth.repositories.user_imports
        seen = await imports.load_snapshot(names, with_managed=True)
        rows = [UserRow(2, name, "Changed", None) for name in names[:1]]
        rows += [UserRow(3, name, None, None) for name in names[1:]]
        users, of_sync = seen.users_by_login_name, seen.banned_by_sync
        plan = plan_sync(rows, users, seen.managed, of_sync, choices=Choices(), bans_gone=True)
        assert isinstance(plan, ImportPlan)
        database["users"].update_one(of_user, {"$set": meanwhile})
        return await imports.commit(plan, seen, auth.now())

    assert with_auth(sync_slowly) is ImportAttempt.CONFLICT
    stored = database["users"].find_one(of_user) or {}
    assert {name: stored.get(name) for name in meanwhile} == meanwhile
    assert find_user("p00@x.test").name == "P0"
