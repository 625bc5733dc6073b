"""A file of people is imported whole or not at all, and says beforehand what it will do."""

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
from slotlock.infrastructure.mongo.client import Document
from slotlock.infrastructure.mongo.users.imports import ImportAttempt, UserSnapshot
from slotlock.services.container import utc_now
from tests.support.apps.processes import database_url
from tests.support.clients.user_files import generated_user_csv, user_csv, users_by_local_part
from tests.support.stores.users import auth_for_database

PASSWORD = "correct horse battery"


@pytest.fixture
async def auth(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "importing")) as opened:
        await opened.users.create_indexes()
        yield opened


@pytest.fixture
def email_domain() -> str:
    """The domain of addresses that no other test has."""
    return f"{secrets.token_hex(8)}.test"


async def test_people_are_created_without_a_password_and_as_members(
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


async def test_a_dry_run_tells_what_will_happen_and_does_nothing(
    auth: Auth, email_domain: str
) -> None:
    await import_users(auth, user_csv(email_domain, {"ada": "Ada", "ben": "Ben"}), dry_run=False)
    body = user_csv(email_domain, {"ada": "Ada", "ben": "Benjamin", "cleo": "Cleo"})
    before = await users_by_local_part(auth, email_domain)
    foretold = await import_users(auth, body, dry_run=True)
    assert foretold == ImportResult(1, 1, 1, dry_run=True)
    assert await users_by_local_part(auth, email_domain) == before
    assert await import_users(auth, body, dry_run=False) == replace(foretold, dry_run=False)
    names = {user.name for user in (await users_by_local_part(auth, email_domain)).values()}
    assert names == {"Ada", "Benjamin", "Cleo"}


async def test_who_has_an_account_keeps_password_role_and_session(
    auth: Auth, email_domain: str
) -> None:
    email = f"ada@{email_domain}"
    created = await accounts.create_user(auth, "Ada", email, PASSWORD, Role.ORGANIZER)
    assert isinstance(created, User)
    await import_users(auth, user_csv(email_domain, {"ADA": "Ada L."}, "staff"), dry_run=False)
    session = await accounts.login(auth, email, PASSWORD)
    assert isinstance(session, SignedInSession)
    assert session.user == replace(created, name="Ada L.", groups=("staff",))


async def test_people_are_found_by_the_name_they_were_imported_with(
    auth: Auth, email_domain: str
) -> None:
    await import_users(auth, user_csv(email_domain, {"ada": "Lovelace"}), dry_run=False)
    await import_users(auth, user_csv(email_domain, {"ada": "Byron"}), dry_run=False)
    assert (await auth.users.page(UserFilter(f"byr {email_domain}"), 10, None)).items
    assert not (await auth.users.page(UserFilter(f"lovel {email_domain}"), 10, None)).items


async def test_of_a_file_with_one_bad_line_nothing_is_imported(
    auth: Auth, email_domain: str
) -> None:
    body = generated_user_csv(email_domain, 20) + b"\nnobody,Eve,5a"
    outcome = await import_users(auth, body, dry_run=False)
    assert isinstance(outcome, InvalidUserFile)
    assert not await users_by_local_part(auth, email_domain)


async def test_ten_thousand_people_fit_into_one_transaction(auth: Auth, email_domain: str) -> None:
    """On servers that end a transaction after 5 s, as the tests' and all others of slotlock do."""
    created = await import_users(
        auth, generated_user_csv(email_domain, MAX_IMPORTED_USERS), dry_run=False
    )
    assert created == ImportResult(MAX_IMPORTED_USERS, 0, 0, dry_run=False)
    updated = await import_users(auth, generated_user_csv(email_domain, 2_000, "6a"), dry_run=False)
    assert updated == ImportResult(0, 2_000, 0, dry_run=False)


async def test_a_transaction_that_never_ends_is_told_as_busy_and_nothing_is_imported(
    auth: Auth, servers: EmbeddedServers, email_domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of a process that was killed in it, until MongoDB gives it up."""
    await import_users(auth, user_csv(email_domain, {"ada": "Ada"}), dry_run=False)
    monkeypatch.setattr(user_import, "RETRY_FOR_S", 0.0)
    client: AsyncMongoClient[Document] = AsyncMongoClient(database_url(servers, "importing"))
    async with client, client.start_session() as session:
        await session.start_transaction()
        imports = client.get_default_database()["imports"]
        await imports.update_one({"_id": "users"}, {"$inc": {"version": 1}}, session=session)
        outcome = await import_users(auth, user_csv(email_domain, {"ben": "Ben"}), dry_run=False)
        await session.abort_transaction()
    assert isinstance(outcome, ImportBusy)
    assert list(await users_by_local_part(auth, email_domain)) == ["ada"]
    again = await import_users(auth, user_csv(email_domain, {"ben": "Ben"}), dry_run=False)
    assert again == ImportResult(1, 0, 0, dry_run=False)


async def test_an_error_in_the_middle_leaves_nothing(auth: Auth, email_domain: str) -> None:
    """One that is nobody's write: it is raised, and what was written before it is gone."""
    new = [NewUser(f"{number}@{email_domain}", "Ada", ()) for number in range(1_000)]
    new.append(NewUser(f"last@{email_domain}", "x" * 17_000_000, ()))  # no document is as large
    plan = ImportPlan(tuple(new), (), 0)

    async def commit() -> None:
        attempt = ImportAttempt.CONFLICT  # by one of before, while it is being given up
        while attempt is ImportAttempt.CONFLICT:
            seen = await auth.users.imports.load_snapshot([])
            attempt = await auth.users.imports.commit(plan, seen, utc_now())

    with pytest.raises(PyMongoError):
        await commit()
    assert not await users_by_local_part(auth, email_domain)


async def test_the_first_import_of_all_is_first_only_once(servers: EmbeddedServers) -> None:
    name = f"first_{secrets.token_hex(4)}"
    async with (
        auth_for_database(database_url(servers, name)) as auth,
        auth_for_database(database_url(servers, name)) as other,
    ):
        await auth.users.create_indexes()
        plan = ImportPlan((NewUser("ada@slotlock.test", "Ada", ()),), (), 0)
        first = UserSnapshot(0, {})
        written = await asyncio.gather(
            auth.users.imports.commit(plan, first, utc_now()),
            other.users.imports.commit(plan, first, utc_now()),
        )
        assert written.count(ImportAttempt.WRITTEN) == 1
        assert (await auth.users.imports.load_snapshot(["ada@slotlock.test"])).version == 1


async def test_people_from_before_there_was_a_search_are_found(
    auth: Auth, servers: EmbeddedServers, email_domain: str
) -> None:
    await import_users(auth, user_csv(email_domain, {"ada": "Ada"}), dry_run=False)
    client: AsyncMongoClient[Document] = AsyncMongoClient(database_url(servers, "importing"))
    async with client:
        users = client.get_default_database()["users"]
        await users.update_one({"email": f"ada@{email_domain}"}, {"$unset": {"searchWords": ""}})
    assert not await users_by_local_part(auth, email_domain)
    await auth.users.create_indexes()
    assert list(await users_by_local_part(auth, email_domain)) == ["ada"]
