"""Importing a file of users: all or nothing, with a dry run, and repeatable."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from slotlock.auth import accounts, user_import
from slotlock.auth.container import Auth
from slotlock.auth.sessions import SignedInSession
from slotlock.auth.user_import import import_users
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.users.import_file import MAX_IMPORTED_USERS, InvalidUserFile
from slotlock.domain.users.import_plan import ImportBusy, ImportPlan, ImportResult, NewUser
from slotlock.domain.users.user import Role, User, UserFilter
from slotlock.infrastructure.mongo.client import Document, connect
from slotlock.infrastructure.mongo.repositories import repositories_on
from slotlock.infrastructure.mongo.users.imports import IMPORT_ID, ImportAttempt, UserSnapshot
from slotlock.services.container import utc_now
from tests.support.apps.processes import database_url
from tests.support.clients.user_files import generated_user_csv, user_csv, users_by_local_part
from tests.support.polling import eventually
from tests.support.stores.users import auth_for_database

PASSWORD = "correct horse battery"


@pytest.fixture
async def auth(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "importing")) as opened:
        yield opened


async def test_users_are_created_as_members_without_a_password(
    auth: Auth, email_domain: str
) -> None:
    outcome = await import_users(
        auth, user_csv(email_domain, {"Ada": "Ada L."}, "5a;choir"), dry_run=False
    )
    assert outcome == ImportResult(1, 0, 0, dry_run=False)
    ada = (await users_by_local_part(auth, email_domain))["ada"]
    assert (ada.name, ada.groups, ada.role) == ("Ada L.", ("5a", "choir"), Role.MEMBER)
    assert not ada.has_password


async def test_the_same_file_again_changes_nothing(auth: Auth, email_domain: str) -> None:
    body = generated_user_csv(email_domain, 20)
    await import_users(auth, body, dry_run=False)
    before = await users_by_local_part(auth, email_domain)
    assert await import_users(auth, body, dry_run=False) == ImportResult(0, 0, 20, dry_run=False)
    assert await users_by_local_part(auth, email_domain) == before


async def test_a_dry_run_returns_the_result_and_writes_nothing(
    auth: Auth, email_domain: str
) -> None:
    await import_users(auth, user_csv(email_domain, {"ada": "Ada", "ben": "Ben"}), dry_run=False)
    body = user_csv(email_domain, {"ada": "Ada", "ben": "Benjamin", "cleo": "Cleo"})
    before = await users_by_local_part(auth, email_domain)
    expected = await import_users(auth, body, dry_run=True)
    assert expected == ImportResult(1, 1, 1, dry_run=True)
    assert await users_by_local_part(auth, email_domain) == before
    assert await import_users(auth, body, dry_run=False) == replace(expected, dry_run=False)
    names = {user.name for user in (await users_by_local_part(auth, email_domain)).values()}
    assert names == {"Ada", "Benjamin", "Cleo"}


async def test_an_existing_account_preserves_password_and_role(
    auth: Auth, email_domain: str
) -> None:
    email = f"ada@{email_domain}"
    created = await accounts.create_user(auth, "Ada", email, PASSWORD, Role.ORGANIZER)
    assert isinstance(created, User)
    await import_users(auth, user_csv(email_domain, {"ADA": "Ada L."}, "staff"), dry_run=False)
    session = await accounts.login(auth, email, PASSWORD)
    assert isinstance(session, SignedInSession)
    assert session.user == replace(created, name="Ada L.", groups=("staff",))


async def test_imported_users_are_found_by_their_latest_name(auth: Auth, email_domain: str) -> None:
    await import_users(auth, user_csv(email_domain, {"ada": "Lovelace"}), dry_run=False)
    await import_users(auth, user_csv(email_domain, {"ada": "Byron"}), dry_run=False)
    assert (await auth.users.page(UserFilter(f"byr {email_domain}"), 10, None)).items
    assert not (await auth.users.page(UserFilter(f"lovel {email_domain}"), 10, None)).items


async def test_a_file_with_an_invalid_line_imports_nothing(auth: Auth, email_domain: str) -> None:
    body = generated_user_csv(email_domain, 20) + b"\nnobody,Eve,5a"
    outcome = await import_users(auth, body, dry_run=False)
    assert isinstance(outcome, InvalidUserFile)
    assert not await users_by_local_part(auth, email_domain)


async def test_10_000_users_fit_into_one_transaction(auth: Auth, email_domain: str) -> None:
    # The test servers abort a transaction after 5 s, as the servers in production do.
    created = await import_users(
        auth, generated_user_csv(email_domain, MAX_IMPORTED_USERS), dry_run=False
    )
    assert created == ImportResult(MAX_IMPORTED_USERS, 0, 0, dry_run=False)
    updated = await import_users(auth, generated_user_csv(email_domain, 2_000, "6a"), dry_run=False)
    assert updated == ImportResult(0, 2_000, 0, dry_run=False)


async def test_an_import_blocked_by_an_open_transaction_is_busy(
    auth: Auth, servers: EmbeddedServers, email_domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Like the transaction of a killed process until MongoDB aborts it.
    await import_users(auth, user_csv(email_domain, {"ada": "Ada"}), dry_run=False)
    monkeypatch.setattr(user_import, "RETRY_FOR_S", 0.0)
    client: AsyncMongoClient[Document] = AsyncMongoClient(database_url(servers, "importing"))
    async with client, client.start_session() as session:
        await session.start_transaction()
        imports = client.get_default_database()["imports"]
        await imports.update_one({"_id": IMPORT_ID}, {"$inc": {"version": 1}}, session=session)
        outcome = await import_users(auth, user_csv(email_domain, {"ben": "Ben"}), dry_run=False)
        await session.abort_transaction()
    assert isinstance(outcome, ImportBusy)
    assert list(await users_by_local_part(auth, email_domain)) == ["ada"]
    again = await import_users(auth, user_csv(email_domain, {"ben": "Ben"}), dry_run=False)
    assert again == ImportResult(1, 0, 0, dry_run=False)


async def test_an_unexpected_error_during_the_import_is_raised_and_writes_nothing(
    auth: Auth, email_domain: str
) -> None:
    new_users = [NewUser(f"{number}@{email_domain}", "Ada", ()) for number in range(1_000)]
    new_users.append(
        NewUser(f"last@{email_domain}", "x" * 17_000_000, ())
    )  # larger than a document can be
    plan = ImportPlan(tuple(new_users), (), 0)

    async def commit() -> None:
        attempt = (
            ImportAttempt.CONFLICT
        )  # with the transaction of an earlier test that MongoDB is aborting
        while attempt is ImportAttempt.CONFLICT:
            snapshot = await auth.user_imports.load_snapshot([])
            attempt = await auth.user_imports.commit(plan, snapshot, utc_now())

    with pytest.raises(PyMongoError):
        await commit()
    assert not await users_by_local_part(auth, email_domain)


async def test_of_two_concurrent_first_imports_one_is_written(servers: EmbeddedServers) -> None:
    name = f"first_{secrets.token_hex(4)}"
    async with (
        auth_for_database(database_url(servers, name)) as auth,
        auth_for_database(database_url(servers, name)) as other,
    ):
        plan = ImportPlan((NewUser("ada@slotlock.test", "Ada", ()),), (), 0)
        snapshot = UserSnapshot(0, {})
        attempts = await asyncio.gather(
            auth.user_imports.commit(plan, snapshot, utc_now()),
            other.user_imports.commit(plan, snapshot, utc_now()),
        )
        assert attempts.count(ImportAttempt.WRITTEN) == 1
        assert (await auth.user_imports.load_snapshot(["ada@slotlock.test"])).version == 1


async def test_users_without_search_words_get_them_at_the_next_start(
    auth: Auth, servers: EmbeddedServers, email_domain: str
) -> None:
    await import_users(auth, user_csv(email_domain, {"ada": "Ada"}), dry_run=False)
    client: AsyncMongoClient[Document] = AsyncMongoClient(database_url(servers, "importing"))
    async with client:
        users = client.get_default_database()["users"]
        await users.update_one({"email": f"ada@{email_domain}"}, {"$unset": {"searchWords": ""}})
    assert not await users_by_local_part(auth, email_domain)

    async def is_found() -> bool:
        return list(await users_by_local_part(auth, email_domain)) == ["ada"]

    restarted, database = connect(database_url(servers, "importing"))
    async with restarted, repositories_on(database).indexes.running():
        await eventually(is_found, "the user is found")
