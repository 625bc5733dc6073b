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

from slotlock.api import people
from slotlock.api.cli import main
from slotlock.api.embedded import Servers
from slotlock.auth import accounts, importing
from slotlock.auth.auth import Auth
from slotlock.auth.importing import import_people
from slotlock.domain.people import Role, UserId
from slotlock.domain.people_import import MAX_PEOPLE, BadFile
from slotlock.domain.people_plan import (
    MAX_MARKS,
    ImportBusy,
    Imported,
    ImportPlan,
    TooMuchAtOnce,
)
from slotlock.graphql.rates import Rates
from slotlock.stores import people_imports
from slotlock.stores.people_imports import Attempt, PeopleImports, SeenPeople
from tests.support.files import class_of, csv, people_of
from tests.support.people import auth_on, sign_in
from tests.support.processes import database_url, environment
from tests.support.servers import own_server

COMMIT = PeopleImports.commit
Fail = Callable[[PyMongoError], None]


@pytest.fixture
async def auth(servers: Servers) -> AsyncIterator[Auth]:
    async with auth_on(database_url(servers, "import_limits")) as opened:
        await opened.users.prepare()
        yield opened


@pytest.fixture
def school() -> str:
    """The domain of addresses that no other test has."""
    return f"{secrets.token_hex(8)}.test"


@pytest.fixture
def fail(monkeypatch: pytest.MonkeyPatch) -> Fail:
    """Lets an import end in an error of MongoDB after it wrote everything."""

    def let(error: PyMongoError) -> None:
        write_all = PeopleImports._write_all

        async def failing(*args: object) -> NoReturn:
            await write_all(*args)  # type: ignore[arg-type]
            raise error

        monkeypatch.setattr(PeopleImports, "_write_all", failing)

    return let


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import is tried once."""
    monkeypatch.setattr(importing, "KEEP_TRYING_S", 0.0)


def in_bulk(code: int) -> BulkWriteError:
    """As MongoDB says it of one of many documents, which PyMongo quotes."""
    failed = {"index": 0, "code": code, "errmsg": "no", "op": {"name": "Ada Lovelace"}}
    return BulkWriteError({"writeErrors": [failed], "writeConcernErrors": []})


def transient(code: int) -> OperationFailure:
    """As MongoDB says it of a transaction that is over."""
    return OperationFailure("no", code, {"errorLabels": ["TransientTransactionError"]})


def groups(count: int) -> str:
    return ";".join(f"group {number}" for number in range(count))


async def test_a_file_that_changes_as_much_as_it_may_is_imported(auth: Auth, school: str) -> None:
    size = MAX_MARKS // 24  # 20 groups; and each person's words, of which a school's are three
    body = class_of(school, size, groups(20))
    assert await import_people(auth, body, dry_run=False) == Imported(size, 0, 0, dry_run=False)
    none = class_of(school, size, "")
    assert await import_people(auth, none, dry_run=False) == Imported(0, size, 0, dry_run=False)


@pytest.mark.parametrize("dry_run", [True, False])
async def test_a_file_that_changes_more_than_it_may_is_refused_whole(
    auth: Auth, school: str, dry_run: bool
) -> None:
    outcome = await import_people(auth, class_of(school, MAX_PEOPLE, groups(20)), dry_run=dry_run)
    assert isinstance(outcome, BadFile)
    assert not await people_of(auth, school)


async def test_what_does_not_fit_into_the_cache_is_too_much_and_nobody_is_blamed(
    tmp_path: Path, school: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with own_server(tmp_path / "mongod", "mongod") as server:
        async with auth_on(server.url) as auth:
            await auth.users.prepare()
            admin = auth.users._database.client.admin
            await admin.command("setParameter", 1, wiredTigerEngineRuntimeConfig="cache_size=8MB")
            with monkeypatch.context() as impatient:
                impatient.setattr(importing, "KEEP_TRYING_S", 0.0)
                body = class_of(school, MAX_PEOPLE, "5a;b")
                assert await import_people(auth, body, dry_run=False) == TooMuchAtOnce()
            assert not await people_of(auth, school)
            part = await import_people(auth, class_of(school, 100), dry_run=False)
            assert part == Imported(100, 0, 0, dry_run=False)


async def test_what_runs_out_of_time_is_too_much_and_keeps_nobody_out(
    auth: Auth, school: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as short:
        short.setattr(people_imports, "OPERATION_TIMEOUT_MS", 100)
        short.setattr(importing, "KEEP_TRYING_S", 0.0)
        outcome = await import_people(auth, class_of(school, MAX_PEOPLE), dry_run=False)
    assert outcome == TooMuchAtOnce()
    assert not await people_of(auth, school)
    part = await import_people(auth, class_of(school, 100), dry_run=False)
    assert part == Imported(100, 0, 0, dry_run=False)


@pytest.mark.parametrize("error", [transient(388), OperationFailure("no", 388), in_bulk(388)])
async def test_what_will_never_fit_is_too_much_at_once(
    auth: Auth, school: str, fail: Fail, error: PyMongoError
) -> None:
    fail(error)
    outcome = await import_people(auth, csv(school, {"ada": "Ada"}), dry_run=False)
    assert outcome == TooMuchAtOnce()
    assert not await people_of(auth, school)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    "error", [transient(112), in_bulk(112), transient(251), OperationFailure("no", 50)]
)
async def test_a_conflict_with_nobody_and_no_time_are_too_much_however_mongodb_says_it(
    auth: Auth, school: str, fail: Fail, error: PyMongoError
) -> None:
    fail(error)
    outcome = await import_people(auth, csv(school, {"ada": "Ada"}), dry_run=False)
    assert outcome == TooMuchAtOnce()
    assert not await people_of(auth, school)


async def test_what_ran_out_of_time_while_others_were_busy_is_tried_again(
    auth: Auth, school: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Attempt] = []

    async def late(
        self: PeopleImports,
        plan: ImportPlan,
        seen: SeenPeople,
        now: datetime,
        by: UserId | None = None,
    ) -> Attempt:
        with monkeypatch.context() as short:
            if not tries:
                short.setattr(people_imports, "OPERATION_TIMEOUT_MS", 10)
            tries.append(await COMMIT(self, plan, seen, now, by))
        return tries[-1]

    monkeypatch.setattr(PeopleImports, "commit", late)
    outcome = await import_people(auth, class_of(school, 3_000), dry_run=False)
    assert outcome == Imported(3_000, 0, 0, dry_run=False)
    first, *others, last = tries
    assert (first, last) == (Attempt.FAILED, Attempt.WRITTEN)
    assert set(others) <= {Attempt.OVERTAKEN}  # as long as the first is being given up


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("error", [transient(112), transient(388)])
async def test_control_an_import_that_somebody_did_overtake_is_busy(
    auth: Auth, school: str, fail: Fail, error: PyMongoError, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(error)

    async def overtaken(
        self: PeopleImports,
        plan: ImportPlan,
        seen: SeenPeople,
        now: datetime,
        by: UserId | None = None,
    ) -> Attempt:
        attempt = await COMMIT(self, plan, seen, now, by)
        await accounts.register(auth, "Eve", f"ada@{school}", "correct horse battery")
        return attempt

    monkeypatch.setattr(PeopleImports, "commit", overtaken)
    outcome = await import_people(auth, csv(school, {"ada": "Ada"}), dry_run=False)
    assert isinstance(outcome, ImportBusy)


async def told_of_somebody_refused(servers: Servers, school: str) -> str:
    """What is logged when MongoDB refuses one of those who are imported, who is called as said."""
    name = f"Ada {school}"
    async with auth_on(database_url(servers, f"refused_{secrets.token_hex(4)}")) as auth:
        await auth.users.prepare()
        database = auth.users._database
        await database.command("collMod", "users", validator={"name": {"$ne": name}})
        with pytest.raises(PyMongoError) as caught:
            await import_people(auth, csv(school, {"ada": name}), dry_run=False)
        await database.client.drop_database(database)
    return "".join(traceback.format_exception(caught.value))


async def test_nobodys_name_or_address_is_in_an_error_of_an_import(
    servers: Servers, school: str
) -> None:
    told = await told_of_somebody_refused(servers, school)
    assert "121" in told  # DocumentValidationFailure
    assert school not in told


async def test_control_pymongo_tells_them(
    servers: Servers, school: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people_imports, "_unnamed", lambda error: error)
    told = await told_of_somebody_refused(servers, school)
    assert f"'name': 'Ada {school}', 'email': 'ada@{school}'" in told


async def test_too_much_is_answered_with_413_and_what_to_do(
    auth: Auth, school: str, fail: Fail
) -> None:
    fail(transient(388))
    headers = {
        "Authorization": f"Bearer {await sign_in(auth, Role.ORGANIZER)}",
        "Content-Type": "text/csv",
    }
    endpoint = people.import_endpoint(auth, Rates(None, 1, 1, 1))
    app = Starlette(routes=[Route("/people/import", endpoint)])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://slotlock.test") as http:
        body = csv(school, {"ada": "Ada"})
        response = await http.post("/people/import", content=body, headers=headers)
    assert response.status_code == 413
    assert response.json() == {
        "code": "LIMIT_EXCEEDED",
        "error": "This is too much for one import; nothing was imported. Send it in parts.",
    }


def test_operators_are_told_of_too_much_in_a_line(
    servers: Servers,
    school: str,
    fail: Fail,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment(servers, "import_limits").items():
        monkeypatch.setenv(name, value)
    fail(transient(388))
    file = tmp_path / "people.csv"
    file.write_bytes(csv(school, {"ada": "Ada"}))
    assert main(["people", "import", str(file)]) == 1
    said = capsys.readouterr().err
    assert said == "slotlock: too much for one import; nothing was imported, split the file\n"
