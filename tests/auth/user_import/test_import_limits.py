"""What MongoDB has no room or no time for is told as that, and nobody else is blamed."""

import secrets
import traceback
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import NoReturn

import httpx
import pytest
from pymongo.errors import BulkWriteError, OperationFailure, PyMongoError
from starlette.applications import Starlette
from starlette.routing import Route

from slotlock.api.endpoints import users
from slotlock.auth import accounts, user_import
from slotlock.auth.container import Auth
from slotlock.auth.user_import import import_users
from slotlock.cli.main import main
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.import_file import MAX_IMPORTED_USERS, InvalidUserFile
from slotlock.domain.users.import_plan import (
    MAX_INDEX_CHANGES,
    ImportBusy,
    ImportPlan,
    ImportResult,
    ImportTooLarge,
)
from slotlock.domain.users.user import Role, UserId
from slotlock.graphql.limits.rates import OperationRateLimits
from slotlock.infrastructure.mongo.users import imports
from slotlock.infrastructure.mongo.users.imports import (
    ImportAttempt,
    UserImportWriter,
    UserSnapshot,
)
from tests.support.apps.processes import app_environment, database_url
from tests.support.apps.restartable_servers import restartable_server
from tests.support.clients.user_files import generated_user_csv, user_csv, users_by_local_part
from tests.support.stores.users import auth_for_database, sign_in_new_user

COMMIT = UserImportWriter.commit
Fail = Callable[[PyMongoError], None]


@pytest.fixture
async def auth(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "import_limits")) as opened:
        await opened.users.create_indexes()
        yield opened


@pytest.fixture
def email_domain() -> str:
    """The domain of addresses that no other test has."""
    return f"{secrets.token_hex(8)}.test"


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """Lets an import end in an error of MongoDB after it wrote everything."""

    def let(error: PyMongoError) -> None:
        write_all = UserImportWriter._write_all

        async def failing(*args: object) -> NoReturn:
            await write_all(*args)  # type: ignore[arg-type]
            raise error

        monkeypatch.setattr(UserImportWriter, "_write_all", failing)

    return let


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import is tried once."""
    monkeypatch.setattr(user_import, "RETRY_FOR_S", 0.0)


def in_bulk(code: int) -> BulkWriteError:
    """As MongoDB says it of one of many documents, which PyMongo quotes."""
    failed = {"index": 0, "code": code, "errmsg": "no", "op": {"name": "Ada Lovelace"}}
    return BulkWriteError({"writeErrors": [failed], "writeConcernErrors": []})


def transient(code: int) -> OperationFailure:
    """As MongoDB says it of a transaction that is over."""
    return OperationFailure("no", code, {"errorLabels": ["TransientTransactionError"]})


def groups(count: int) -> str:
    return ";".join(f"group {number}" for number in range(count))


async def test_a_file_that_changes_as_much_as_it_may_is_imported(
    auth: Auth, email_domain: str
) -> None:
    size = (
        MAX_INDEX_CHANGES // 24
    )  # 20 groups; and each person's words, of which a school's are three
    body = generated_user_csv(email_domain, size, groups(20))
    assert await import_users(auth, body, dry_run=False) == ImportResult(size, 0, 0, dry_run=False)
    none = generated_user_csv(email_domain, size, "")
    assert await import_users(auth, none, dry_run=False) == ImportResult(0, size, 0, dry_run=False)


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_file_that_changes_more_than_it_may_is_refused_whole(
    auth: Auth, email_domain: str, dry_run: bool
) -> None:
    outcome = await import_users(
        auth, generated_user_csv(email_domain, MAX_IMPORTED_USERS, groups(20)), dry_run=dry_run
    )
    assert isinstance(outcome, InvalidUserFile)
    assert not await users_by_local_part(auth, email_domain)


async def test_what_does_not_fit_into_the_cache_is_too_much_and_nobody_is_blamed(
    tmp_path: Path, email_domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with restartable_server(tmp_path / "mongod", "mongod") as server:
        async with auth_for_database(server.url) as auth:
            await auth.users.create_indexes()
            admin = auth.users._database.client.admin
            await admin.command("setParameter", 1, wiredTigerEngineRuntimeConfig="cache_size=8MB")
            with monkeypatch.context() as impatient:
                impatient.setattr(user_import, "RETRY_FOR_S", 0.0)
                body = generated_user_csv(email_domain, MAX_IMPORTED_USERS, "5a;b")
                assert await import_users(auth, body, dry_run=False) == ImportTooLarge()
            assert not await users_by_local_part(auth, email_domain)
            part = await import_users(auth, generated_user_csv(email_domain, 100), dry_run=False)
            assert part == ImportResult(100, 0, 0, dry_run=False)


async def test_what_runs_out_of_time_is_too_much_and_keeps_nobody_out(
    auth: Auth, email_domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as short:
        short.setattr(imports, "OPERATION_TIMEOUT_MS", 100)
        short.setattr(user_import, "RETRY_FOR_S", 0.0)
        outcome = await import_users(
            auth, generated_user_csv(email_domain, MAX_IMPORTED_USERS), dry_run=False
        )
    assert outcome == ImportTooLarge()
    assert not await users_by_local_part(auth, email_domain)
    part = await import_users(auth, generated_user_csv(email_domain, 100), dry_run=False)
    assert part == ImportResult(100, 0, 0, dry_run=False)


@pytest.mark.parametrize("error", [transient(388), OperationFailure("no", 388), in_bulk(388)])
async def test_what_will_never_fit_is_too_much_at_once(
    auth: Auth, email_domain: str, fail: Fail, error: PyMongoError
) -> None:
    fail(error)
    outcome = await import_users(auth, user_csv(email_domain, {"ada": "Ada"}), dry_run=False)
    assert outcome == ImportTooLarge()
    assert not await users_by_local_part(auth, email_domain)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "error", [transient(112), in_bulk(112), transient(251), OperationFailure("no", 50)]
)
async def test_a_conflict_with_nobody_and_no_time_are_too_much_however_mongodb_says_it(
    auth: Auth, email_domain: str, fail: Fail, error: PyMongoError
) -> None:
    fail(error)
    outcome = await import_users(auth, user_csv(email_domain, {"ada": "Ada"}), dry_run=False)
    assert outcome == ImportTooLarge()
    assert not await users_by_local_part(auth, email_domain)


async def test_what_ran_out_of_time_while_others_were_busy_is_tried_again(
    auth: Auth, email_domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[ImportAttempt] = []

    async def late(
        self: UserImportWriter,
        plan: ImportPlan,
        seen: UserSnapshot,
        now: datetime,
        by: UserId | None = None,
    ) -> ImportAttempt:
        with monkeypatch.context() as short:
            if not tries:
                short.setattr(imports, "OPERATION_TIMEOUT_MS", 10)
            tries.append(await COMMIT(self, plan, seen, now, by))
        return tries[-1]

    monkeypatch.setattr(UserImportWriter, "commit", late)
    outcome = await import_users(auth, generated_user_csv(email_domain, 3_000), dry_run=False)
    assert outcome == ImportResult(3_000, 0, 0, dry_run=False)
    first, *others, last = tries
    assert (first, last) == (ImportAttempt.FAILED, ImportAttempt.WRITTEN)
    assert set(others) <= {ImportAttempt.CONFLICT}  # as long as the first is being given up


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("error", [transient(112), transient(388)])
async def test_control_an_import_that_somebody_did_overtake_is_busy(
    auth: Auth, email_domain: str, fail: Fail, error: PyMongoError, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(error)

    async def overtaken(
        self: UserImportWriter,
        plan: ImportPlan,
        seen: UserSnapshot,
        now: datetime,
        by: UserId | None = None,
    ) -> ImportAttempt:
        attempt = await COMMIT(self, plan, seen, now, by)
        await accounts.register(auth, "Eve", f"ada@{email_domain}", "correct horse battery")
        return attempt

    monkeypatch.setattr(UserImportWriter, "commit", overtaken)
    outcome = await import_users(auth, user_csv(email_domain, {"ada": "Ada"}), dry_run=False)
    assert isinstance(outcome, ImportBusy)


async def told_of_somebody_refused(servers: EmbeddedServers, email_domain: str) -> str:
    """What is logged when MongoDB refuses one of those who are imported, who is called as said."""
    name = f"Ada {email_domain}"
    async with auth_for_database(database_url(servers, f"refused_{secrets.token_hex(4)}")) as auth:
        await auth.users.create_indexes()
        database = auth.users._database
        await database.command("collMod", "users", validator={"name": {"$ne": name}})
        with pytest.raises(PyMongoError) as caught:
            await import_users(auth, user_csv(email_domain, {"ada": name}), dry_run=False)
        await database.client.drop_database(database)
    return "".join(traceback.format_exception(caught.value))


async def test_nobodys_name_or_address_is_in_an_error_of_an_import(
    servers: EmbeddedServers, email_domain: str
) -> None:
    told = await told_of_somebody_refused(servers, email_domain)
    assert "121" in told  # DocumentValidationFailure
    assert email_domain not in told


async def test_control_pymongo_tells_them(
    servers: EmbeddedServers, email_domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "_redacted", lambda error: error)
    told = await told_of_somebody_refused(servers, email_domain)
    assert f"'name': 'Ada {email_domain}', 'email': 'ada@{email_domain}'" in told


async def test_too_much_is_answered_with_413_and_what_to_do(
    auth: Auth, email_domain: str, fail: Fail
) -> None:
    fail(transient(388))
    headers = {
        "Authorization": f"Bearer {await sign_in_new_user(auth, Role.ORGANIZER)}",
        "Content-Type": "text/csv",
    }
    endpoint = users.import_endpoint(auth, OperationRateLimits(None, 1, 1, 1))
    app = Starlette(routes=[Route("/users/import", endpoint)])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://slotlock.test") as http:
        body = user_csv(email_domain, {"ada": "Ada"})
        response = await http.post("/users/import", content=body, headers=headers)
    assert response.status_code == 413
    assert response.json() == {
        "code": "LIMIT_EXCEEDED",
        "error": "The import is too large; nothing was imported. Split the file.",
    }


def test_operators_are_told_of_too_much_in_a_line(
    servers: EmbeddedServers,
    email_domain: str,
    fail: Fail,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in app_environment(servers, "import_limits").items():
        monkeypatch.setenv(name, value)
    fail(transient(388))
    file = tmp_path / "people.csv"
    file.write_bytes(user_csv(email_domain, {"ada": "Ada"}))
    assert main(["users", "import", str(file)]) == 1
    said = capsys.readouterr().err
    assert said == "slotlock: too much for one import; nothing was imported, split the file\n"
