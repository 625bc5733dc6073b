"""Imports that do not fit into one transaction are too large; conflicts are busy."""

import secrets
import traceback
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest
from pymongo.errors import BulkWriteError, OperationFailure, PyMongoError
from starlette.applications import Starlette
from starlette.routing import Route

from slotlock.api.endpoints import user_file_endpoints
from slotlock.auth import accounts
from slotlock.auth.admin import user_import
from slotlock.auth.admin.user_import import import_users
from slotlock.auth.container import Auth
from slotlock.cli.main import main
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.user_files.plan import (
    MAX_INDEX_CHANGES,
    ImportBusy,
    ImportResult,
    ImportTooLarge,
)
from slotlock.domain.user_files.user_file import MAX_IMPORTED_USERS
from slotlock.domain.users.user import Role
from slotlock.graphql.limits.operation_rates import OperationRateLimits
from slotlock.infrastructure.mongo.users import imports
from slotlock.infrastructure.mongo.users.imports import (
    ImportAttempt,
    UserImportWriter,
)
from tests.support.apps.processes import app_environment, database_url
from tests.support.apps.restartable_servers import restartable_server
from tests.support.clients.user_files import generated_user_csv, user_csv, users_by_local_part
from tests.support.stores.users import auth_for_database, sign_in_new_user

COMMIT = UserImportWriter.commit
FailImports = Callable[[PyMongoError], None]


@pytest.fixture
def fail_imports(monkeypatch: pytest.MonkeyPatch) -> FailImports:
    """Let imports end with an error of MongoDB after they wrote everything."""

    def fail_with(error: PyMongoError) -> None:
        write_all = UserImportWriter._write_all

        async def write_all_and_fail(*args: object) -> NoReturn:
            await write_all(*args)  # type: ignore[arg-type]
            raise error

        monkeypatch.setattr(UserImportWriter, "_write_all", write_all_and_fail)

    return fail_with


@pytest.fixture
def single_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let imports make one attempt only."""
    monkeypatch.setattr(user_import, "RETRY_FOR_S", 0.0)


@pytest.fixture
async def patient(auth: Auth, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Let an import take as long as the machine needs."""
    monkeypatch.setattr(imports, "OPERATION_TIMEOUT_MS", 120_000)
    admin, name = auth.repositories.users._database.client.admin, "transactionLifetimeLimitSeconds"
    before = await admin.command({"setParameter": 1, name: 120})
    yield
    await admin.command({"setParameter": 1, name: before["was"]})


def bulk_write_error(code: int) -> BulkWriteError:
    """Return the error of one write in a bulk, with the document that PyMongo includes."""
    write_error = {"index": 0, "code": code, "errmsg": "no", "op": {"name": "Ada Lovelace"}}
    return BulkWriteError({"writeErrors": [write_error], "writeConcernErrors": []})


def transient_error(code: int) -> OperationFailure:
    """Return the error of an aborted transaction."""
    return OperationFailure("no", code, {"errorLabels": ["TransientTransactionError"]})


def group_list(count: int) -> str:
    return ";".join(f"group {number}" for number in range(count))


@pytest.mark.usefixtures("patient")
async def test_a_file_with_the_maximum_of_changes_is_imported(auth: Auth, domain: str) -> None:
    size = MAX_INDEX_CHANGES // 24  # each user has 20 groups and at most 4 search words
    body = generated_user_csv(domain, size, group_list(20))
    assert await import_users(auth, body, dry_run=False) == ImportResult(size, 0, 0, dry_run=False)
    without_groups = generated_user_csv(domain, size, "")
    assert await import_users(auth, without_groups, dry_run=False) == ImportResult(
        0, size, 0, dry_run=False
    )


@pytest.mark.parametrize("dry_run", [True, False])
async def test_too_many_changes_import_nothing(auth: Auth, domain: str, dry_run: bool) -> None:
    outcome = await import_users(
        auth, generated_user_csv(domain, MAX_IMPORTED_USERS, group_list(20)), dry_run=dry_run
    )
    assert isinstance(outcome, InvalidFile)
    assert not await users_by_local_part(auth, domain)


async def test_an_import_that_exceeds_the_cache_is_too_large_and_not_busy(
    tmp_path: Path, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with restartable_server(tmp_path / "mongod", "mongod") as server:
        async with auth_for_database(server.url) as auth:
            admin = auth.repositories.users._database.client.admin
            await admin.command("setParameter", 1, wiredTigerEngineRuntimeConfig="cache_size=8MB")
            with monkeypatch.context() as no_retries:
                no_retries.setattr(user_import, "RETRY_FOR_S", 0.0)
                body = generated_user_csv(domain, MAX_IMPORTED_USERS, "5a;b")
                assert await import_users(auth, body, dry_run=False) == ImportTooLarge()
            assert not await users_by_local_part(auth, domain)
            smaller = await import_users(auth, generated_user_csv(domain, 100), dry_run=False)
            assert smaller == ImportResult(100, 0, 0, dry_run=False)


async def test_an_import_that_runs_out_of_time_is_busy_and_blocks_no_later_one(
    auth: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as short_timeouts:
        short_timeouts.setattr(imports, "OPERATION_TIMEOUT_MS", 100)
        short_timeouts.setattr(user_import, "RETRY_FOR_S", 0.0)
        outcome = await import_users(
            auth, generated_user_csv(domain, MAX_IMPORTED_USERS), dry_run=False
        )
    assert isinstance(outcome, ImportBusy)
    assert not await users_by_local_part(auth, domain)
    smaller = await import_users(auth, generated_user_csv(domain, 100), dry_run=False)
    assert smaller == ImportResult(100, 0, 0, dry_run=False)


@pytest.mark.parametrize(
    "error", [transient_error(388), OperationFailure("no", 388), bulk_write_error(388)]
)
async def test_an_import_that_can_never_fit_is_too_large_without_retries(
    auth: Auth, domain: str, fail_imports: FailImports, error: PyMongoError
) -> None:
    fail_imports(error)
    outcome = await import_users(auth, user_csv(domain, {"ada": "Ada"}), dry_run=False)
    assert outcome == ImportTooLarge()
    assert not await users_by_local_part(auth, domain)


@pytest.mark.usefixtures("single_attempt")
@pytest.mark.parametrize(
    ("error", "refusal"),
    [
        (transient_error(112), ImportTooLarge),
        (bulk_write_error(112), ImportTooLarge),
        (transient_error(251), ImportBusy),
        (OperationFailure("no", 50), ImportBusy),
    ],
)
async def test_a_conflict_without_another_writer_is_too_large_and_a_timeout_is_busy(
    auth: Auth,
    domain: str,
    fail_imports: FailImports,
    error: PyMongoError,
    refusal: type[ImportBusy | ImportTooLarge],
) -> None:
    fail_imports(error)
    outcome = await import_users(auth, user_csv(domain, {"ada": "Ada"}), dry_run=False)
    assert isinstance(outcome, refusal)
    assert not await users_by_local_part(auth, domain)


async def test_an_import_that_ran_out_of_time_is_retried(
    auth: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[ImportAttempt] = []

    async def commit_with_short_timeout(self: UserImportWriter, *arguments: Any) -> ImportAttempt:
        with monkeypatch.context() as short_timeouts:
            if not attempts:
                short_timeouts.setattr(imports, "OPERATION_TIMEOUT_MS", 10)
            attempts.append(await COMMIT(self, *arguments))
        return attempts[-1]

    monkeypatch.setattr(UserImportWriter, "commit", commit_with_short_timeout)
    outcome = await import_users(auth, generated_user_csv(domain, 3_000), dry_run=False)
    assert outcome == ImportResult(3_000, 0, 0, dry_run=False)
    first, *others, last = attempts
    assert (first, last) == (ImportAttempt.TIMED_OUT, ImportAttempt.WRITTEN)
    assert set(others) <= {ImportAttempt.CONFLICT}  # while MongoDB aborts the first transaction


@pytest.mark.usefixtures("single_attempt")
@pytest.mark.parametrize("error", [transient_error(112), transient_error(388)])
async def test_control_an_import_with_a_real_conflict_is_busy(
    auth: Auth,
    domain: str,
    fail_imports: FailImports,
    error: PyMongoError,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fail_imports(error)

    async def commit_before_conflict(self: UserImportWriter, *arguments: Any) -> ImportAttempt:
        attempt = await COMMIT(self, *arguments)
        await accounts.register(auth, "Eve", f"ada@{domain}", "correct horse battery")
        return attempt

    monkeypatch.setattr(UserImportWriter, "commit", commit_before_conflict)
    outcome = await import_users(auth, user_csv(domain, {"ada": "Ada"}), dry_run=False)
    assert isinstance(outcome, ImportBusy)


async def error_of_rejected_user(servers: EmbeddedServers, domain: str) -> str:
    """Return the error of an import in which MongoDB rejects a user by name."""
    name = f"Ada {domain}"
    async with auth_for_database(database_url(servers, f"refused_{secrets.token_hex(4)}")) as auth:
        database = auth.repositories.users._database
        await database.command("collMod", "users", validator={"name": {"$ne": name}})
        with pytest.raises(PyMongoError) as caught:
            await import_users(auth, user_csv(domain, {"ada": name}), dry_run=False)
        await database.client.drop_database(database)
    return "".join(traceback.format_exception(caught.value))


async def test_errors_contain_no_name_or_address(servers: EmbeddedServers, domain: str) -> None:
    error_text = await error_of_rejected_user(servers, domain)
    assert "121" in error_text  # DocumentValidationFailure
    assert domain not in error_text


async def test_control_unredacted_errors_contain_names_and_addresses(
    servers: EmbeddedServers, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "_redacted", lambda error: error)
    error_text = await error_of_rejected_user(servers, domain)
    assert f"'name': 'Ada {domain}', 'email': 'ada@{domain}'" in error_text


async def test_an_import_that_is_too_large_returns_413_with_advice(
    auth: Auth, domain: str, fail_imports: FailImports
) -> None:
    fail_imports(transient_error(388))
    headers = {
        "Authorization": f"Bearer {await sign_in_new_user(auth, Role.ORGANIZER)}",
        "Content-Type": "text/csv",
    }
    endpoint = user_file_endpoints.import_endpoint(auth, OperationRateLimits(None, 1, 1, 1))
    app = Starlette(routes=[Route("/users/import", endpoint)])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://slotlock.test") as http:
        body = user_csv(domain, {"ada": "Ada"})
        response = await http.post("/users/import", content=body, headers=headers)
    assert response.status_code == 413
    assert response.json() == {
        "code": "LIMIT_EXCEEDED",
        "error": "The import is too large; nothing was imported. Split the file.",
    }


def test_the_command_line_reports_an_import_that_is_too_large(
    servers: EmbeddedServers,
    domain: str,
    fail_imports: FailImports,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in app_environment(servers, "import_limits").items():
        monkeypatch.setenv(name, value)
    fail_imports(transient_error(388))
    file = tmp_path / "users.csv"
    file.write_bytes(user_csv(domain, {"ada": "Ada"}))
    assert main(["users", "import", str(file), "--apply"]) == 1
    error_output = capsys.readouterr().err
    assert (
        error_output == "slotlock: too much for one import; nothing was imported, split the file\n"
    )
