"""Whoever else writes at the same time, an import is whole, and of two one comes first."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime

import pytest
from pymongo import AsyncMongoClient

from slotlock.auth import accounts
from slotlock.auth.container import Auth
from slotlock.auth.sessions import SignedInSession
from slotlock.auth.user_import import import_users
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.import_plan import ImportPlan, ImportResult
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.users.imports import (
    ImportAttempt,
    UserImportWriter,
    UserSnapshot,
)
from tests.support.apps.processes import database_url
from tests.support.clients.user_files import generated_user_csv, user_csv, users_by_local_part
from tests.support.stores.users import auth_for_database

PASSWORD = "correct horse battery"
COMMIT = UserImportWriter.commit
By = UserId | None

Commit = Callable[
    [UserImportWriter, ImportPlan, UserSnapshot, datetime, By], Awaitable[ImportAttempt]
]
Meet = Callable[[Commit], None]


@pytest.fixture
async def auth(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "import_races")) as opened:
        await opened.users.create_indexes()
        yield opened


@pytest.fixture
async def other_process(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "import_races")) as opened:
        yield opened


@pytest.fixture
def email_domain() -> str:
    """The domain of addresses that no other test has."""
    return f"{secrets.token_hex(8)}.test"


GROUPS = ("a", "b")


async def prepare(auth: Auth, email_domain: str, size: int) -> list[bytes]:
    """Half of the people are in either group; two files, each of which wants all in one group.

    So each of the two imports writes the half that the other leaves alone.
    """
    for group in GROUPS:
        body = generated_user_csv(f"{group}.{email_domain}", size, group)
        await import_users(auth, body, dry_run=False)
    header = b"email,name,groups"
    halves = [
        [generated_user_csv(f"{half}.{email_domain}", size, group) for half in GROUPS]
        for group in GROUPS
    ]
    return [first + second.removeprefix(header) for first, second in halves]


async def race(
    one: Auth, other: Auth, email_domain: str, files: Sequence[bytes]
) -> set[tuple[str, ...]]:
    """The groups that people have after both files came in at once."""
    outcomes = await asyncio.gather(
        import_users(one, files[0], dry_run=False), import_users(other, files[1], dry_run=False)
    )
    assert all(isinstance(outcome, ImportResult) for outcome in outcomes)
    return {user.groups for user in (await users_by_local_part(one, email_domain)).values()}


@pytest.fixture
def meet(monkeypatch: pytest.MonkeyPatch) -> Meet:
    """Lets two imports both have looked before either writes in this way."""
    both_looked, waited = asyncio.Barrier(2), set[int]()

    def let(write: Commit) -> None:
        async def late(
            self: UserImportWriter, plan: ImportPlan, seen: UserSnapshot, now: datetime, by: By
        ) -> ImportAttempt:
            if id(self) not in waited:
                waited.add(id(self))
                await both_looked.wait()
            return await write(self, plan, seen, now, by)

        monkeypatch.setattr(UserImportWriter, "commit", late)

    return let


async def test_of_two_imports_at_once_everybody_is_as_one_of_them_says(
    auth: Auth, other_process: Auth, email_domain: str
) -> None:
    for number in range(4):
        here = f"{number}.{email_domain}"
        files = await prepare(auth, here, 200)
        assert len(await race(auth, other_process, here, files)) == 1


async def test_an_import_that_was_overtaken_looks_again(
    auth: Auth, other_process: Auth, email_domain: str, meet: Meet
) -> None:
    files = await prepare(auth, email_domain, 2)
    meet(COMMIT)
    assert len(await race(auth, other_process, email_domain, files)) == 1


async def test_control_without_the_version_two_imports_are_mixed(
    auth: Auth, other_process: Auth, email_domain: str, meet: Meet
) -> None:
    in_turn = asyncio.Lock()

    async def unguarded(
        self: UserImportWriter, plan: ImportPlan, seen: UserSnapshot, now: datetime, by: By
    ) -> ImportAttempt:
        async with in_turn:
            newest = (await self.load_snapshot([])).version
            return await COMMIT(self, plan, UserSnapshot(newest, seen.users_by_email), now, by)

    files = await prepare(auth, email_domain, 2)
    meet(unguarded)
    assert await race(auth, other_process, email_domain, files) == {("a",), ("b",)}


async def test_an_import_that_races_registering_is_whole_and_each_address_is_one_persons(
    auth: Auth, other_process: Auth, email_domain: str
) -> None:
    for number in range(4):
        here = f"{number}.{email_domain}"
        email = f"person399@{here}"
        outcome, registered = await asyncio.gather(
            import_users(auth, generated_user_csv(here, 400), dry_run=False),
            accounts.register(other_process, "Eve", email, PASSWORD),
        )
        people = await users_by_local_part(auth, here)
        assert len(people) == 400
        assert {user.groups for user in people.values()} == {("5a",)}
        first = isinstance(registered, SignedInSession)
        assert outcome == ImportResult(400 - first, first, 0, dry_run=False)
        assert first or isinstance(registered, accounts.EmailTaken)
        assert people["person399"].has_password is first


async def test_somebody_who_registers_between_look_and_write_is_looked_at_again(
    auth: Auth, other_process: Auth, email_domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[ImportAttempt] = []

    async def late(
        self: UserImportWriter, plan: ImportPlan, seen: UserSnapshot, now: datetime, by: By
    ) -> ImportAttempt:
        if not tries:
            await accounts.register(other_process, "Eve", f"eve@{email_domain}", PASSWORD)
        tries.append(await COMMIT(self, plan, seen, now, by))
        return tries[-1]

    monkeypatch.setattr(UserImportWriter, "commit", late)
    outcome = await import_users(
        auth, user_csv(email_domain, {"ada": "Ada", "eve": "Eve"}), dry_run=False
    )
    assert tries == [ImportAttempt.CONFLICT, ImportAttempt.WRITTEN]
    assert outcome == ImportResult(1, 1, 0, dry_run=False)


async def test_groups_that_were_given_between_look_and_write_are_looked_at_again(
    auth: Auth, other_process: Auth, email_domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await import_users(auth, user_csv(email_domain, {"ada": "Ada"}), dry_run=False)
    ada = (await users_by_local_part(auth, email_domain))["ada"]
    tries: list[ImportAttempt] = []

    async def late(
        self: UserImportWriter, plan: ImportPlan, seen: UserSnapshot, now: datetime, by: By
    ) -> ImportAttempt:
        if not tries:
            await other_process.users.set_groups(ada.id, ["choir"], None, now)
        tries.append(await COMMIT(self, plan, seen, now, by))
        return tries[-1]

    monkeypatch.setattr(UserImportWriter, "commit", late)
    outcome = await import_users(auth, user_csv(email_domain, {"ada": "Ada L."}), dry_run=False)
    assert tries == [ImportAttempt.CONFLICT, ImportAttempt.WRITTEN]
    assert outcome == ImportResult(0, 1, 0, dry_run=False)
    assert (await users_by_local_part(auth, email_domain))["ada"].groups == ("5a",)


async def test_an_import_whose_process_was_killed_leaves_nothing_and_keeps_nobody_out(
    auth: Auth, servers: EmbeddedServers, email_domain: str
) -> None:
    """MongoDB gives its transaction up after 5 s; the import that waits for it is told nothing."""
    await import_users(auth, user_csv(email_domain, {"ada": "Ada"}), dry_run=False)
    client: AsyncMongoClient[Document] = AsyncMongoClient(database_url(servers, "import_races"))
    async with client, client.start_session() as session:
        await session.start_transaction()
        database = client.get_default_database()
        imports, users = database["imports"], database["users"]
        await imports.update_one({"_id": "users"}, {"$inc": {"version": 1}}, session=session)
        dead = {"email": f"dead@{email_domain}", "name": "Dead", "searchWords": [email_domain]}
        await users.insert_one(dead, session=session)
        outcome = await import_users(auth, user_csv(email_domain, {"ben": "Ben"}), dry_run=False)
    assert outcome == ImportResult(1, 0, 0, dry_run=False)
    assert set(await users_by_local_part(auth, email_domain)) == {"ada", "ben"}
