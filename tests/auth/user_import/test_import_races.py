"""Imports concurrent with other writes: each import is complete, and two are serialized."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import AutoReconnect

from slotlock.auth import accounts
from slotlock.auth.admin import account_admin, account_claims, user_import
from slotlock.auth.admin.account_claims import UserClaimed
from slotlock.auth.admin.user_import import import_users
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.sessions import SignedInSession
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.shared.tables.file_problems import InvalidFile
from slotlock.domain.user_files.plan import ImportBusy, ImportPlan, ImportResult
from slotlock.domain.users.account_admin_rules import HeldPlaces
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.infrastructure.mongo.client import CommitUnknownError, Document
from slotlock.infrastructure.mongo.concurrency_limiter import MongoOverloadedError
from slotlock.infrastructure.mongo.users.imports import (
    IMPORT_ID,
    ImportAttempt,
    UserImportWriter,
    UserSnapshot,
)
from slotlock.infrastructure.mongo.users.sessions import NewSession, SessionRepository
from slotlock.services.container import utc_now
from tests.support.clients.user_files import (
    CLAIM_ALL,
    generated_user_csv,
    user_csv,
    users_by_local_part,
)

PASSWORD = "correct horse battery"
COMMIT = UserImportWriter.commit
Commit = Callable[..., Awaitable[ImportAttempt]]
LoadBothBeforeCommit = Callable[[Commit], None]


GROUPS = ("a", "b")


async def create_groups_and_files(auth: Auth, domain: str, size: int) -> list[bytes]:
    """Import users in two groups. Return two files, each of which puts all users in one group.

    Each of the two imports writes the half of the users that the other does not change.
    """
    for group in GROUPS:
        body = generated_user_csv(f"{group}.{domain}", size, group)
        await import_users(auth, body, dry_run=False)
    header = b"email,name,groups"
    halves = [
        [generated_user_csv(f"{half}.{domain}", size, group) for half in GROUPS] for group in GROUPS
    ]
    return [first + second.removeprefix(header) for first, second in halves]


async def import_concurrently(
    one: Auth, other: Auth, domain: str, files: Sequence[bytes]
) -> set[tuple[str, ...]]:
    """Import both files concurrently. Return the groups that the users have then."""
    outcomes = await asyncio.gather(
        import_users(one, files[0], dry_run=False), import_users(other, files[1], dry_run=False)
    )
    assert all(isinstance(outcome, ImportResult) for outcome in outcomes)
    return {user.groups for user in (await users_by_local_part(one, domain)).values()}


@pytest.fixture
def load_both_before_commit(monkeypatch: pytest.MonkeyPatch) -> LoadBothBeforeCommit:
    """Let two imports load their users before one of them commits, with the given function."""
    both_loaded, has_waited = asyncio.Barrier(2), set[int]()

    def patch_commit(write: Commit) -> None:
        async def commit(self: UserImportWriter, *arguments: Any) -> ImportAttempt:
            if id(self) not in has_waited:
                has_waited.add(id(self))
                await both_loaded.wait()
            return await write(self, *arguments)

        monkeypatch.setattr(UserImportWriter, "commit", commit)

    return patch_commit


async def test_after_two_concurrent_imports_all_users_match_one_file(
    auth: Auth, other_process: Auth, domain: str
) -> None:
    for number in range(4):
        subdomain = f"{number}.{domain}"
        files = await create_groups_and_files(auth, subdomain, 200)
        assert len(await import_concurrently(auth, other_process, subdomain, files)) == 1


async def test_an_import_with_a_conflict_loads_the_users_again(
    auth: Auth, other_process: Auth, domain: str, load_both_before_commit: LoadBothBeforeCommit
) -> None:
    files = await create_groups_and_files(auth, domain, 2)
    load_both_before_commit(COMMIT)
    assert len(await import_concurrently(auth, other_process, domain, files)) == 1


async def test_control_without_the_version_check_two_imports_are_mixed(
    auth: Auth, other_process: Auth, domain: str, load_both_before_commit: LoadBothBeforeCommit
) -> None:
    commit_lock = asyncio.Lock()

    async def commit_without_version_check(
        self: UserImportWriter, plan: ImportPlan, snapshot: UserSnapshot, *arguments: Any
    ) -> ImportAttempt:
        async with commit_lock:
            current_version = (await self.load_snapshot([])).version
            current = UserSnapshot(current_version, snapshot.users_by_login_name)
            return await COMMIT(self, plan, current, *arguments)

    files = await create_groups_and_files(auth, domain, 2)
    load_both_before_commit(commit_without_version_check)
    assert await import_concurrently(auth, other_process, domain, files) == {("a",), ("b",)}


async def test_an_import_concurrent_with_a_registration_is_complete_and_addresses_stay_unique(
    auth: Auth, other_process: Auth, domain: str
) -> None:
    for number in range(4):
        subdomain = f"{number}.{domain}"
        email = f"person399@{subdomain}"
        outcome, registered = await asyncio.gather(
            import_users(auth, generated_user_csv(subdomain, 400), dry_run=False),
            accounts.register(other_process, "Eve", email, PASSWORD),
        )
        users_by_name = await users_by_local_part(auth, subdomain)
        assert len(users_by_name) == 400
        registered_first = isinstance(registered, SignedInSession)
        assert isinstance(outcome, ImportResult)
        assert (outcome.created, len(outcome.self_registered)) == (
            400 - registered_first,
            registered_first,
        )
        without_groups = [user.name for user in users_by_name.values() if not user.groups]
        assert without_groups == ["Eve"] * registered_first
        assert registered_first or isinstance(registered, accounts.EmailTaken)
        assert users_by_name["person399"].has_password is registered_first


def run_before_first_write(
    monkeypatch: pytest.MonkeyPatch, act: Awaitable[object]
) -> list[ImportAttempt]:
    """Run an act between the read and the first write of an import; return its attempts."""
    attempts: list[ImportAttempt] = []

    async def commit(self: UserImportWriter, *arguments: Any) -> ImportAttempt:
        if not attempts:
            await act
        attempts.append(await COMMIT(self, *arguments))
        return attempts[-1]

    monkeypatch.setattr(UserImportWriter, "commit", commit)
    return attempts


async def test_a_registration_between_read_and_write_is_a_conflict(
    auth: Auth, other_process: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    registration = accounts.register(other_process, "Eve", f"eve@{domain}", PASSWORD)
    attempts = run_before_first_write(monkeypatch, registration)
    outcome = await import_users(
        auth, user_csv(domain, {"ada": "Ada", "eve": "Eve"}), dry_run=False
    )
    assert attempts == [ImportAttempt.CONFLICT, ImportAttempt.WRITTEN]
    assert isinstance(outcome, ImportResult)
    assert (outcome.created, len(outcome.self_registered)) == (1, 1)


async def claim_by_file(auth: Auth, domain: str, _user_id: UserId) -> None:
    """Claim an account by a line of a file."""
    claimed = await import_users(
        auth, user_csv(domain, {"ada": "Ada"}), dry_run=False, choices=CLAIM_ALL
    )
    assert claimed == ImportResult(0, 0, 0, dry_run=False, claimed=1)


async def claim_alone(auth: Auth, _domain: str, user_id: UserId) -> None:
    """Claim one account."""
    admin = Caller(user_id, Role.ADMIN, "session", auth.now())
    assert isinstance(await account_claims.lock(auth, user_id), User)
    claimed = await account_claims.invite(auth, admin, user_id, HeldPlaces())
    assert isinstance(claimed, UserClaimed)


Claim = Callable[[Auth, str, UserId], Awaitable[None]]


@pytest.mark.parametrize("claim", [claim_by_file, claim_alone])
@pytest.mark.parametrize("has_account", [False, True], ids=["register", "login"])
@pytest.mark.parametrize("is_guarded", [True, False])
async def test_no_session_opens_with_a_password_from_before_a_claim(
    auth: Auth,
    other_process: Auth,
    domain: str,
    monkeypatch: pytest.MonkeyPatch,
    claim: Claim,
    has_account: bool,
    is_guarded: bool,
) -> None:
    """Claim the account before its session opens. Without the hash, it stays: the control."""
    email, open_session = f"ada@{domain}", SessionRepository.open
    if has_account:
        await accounts.register(auth, "Eve", email, PASSWORD)

    async def claim_and_open(
        self: SessionRepository, new_session: NewSession
    ) -> tuple[str, User] | None:
        await claim(other_process, domain, new_session.user_id)
        guarded = new_session if is_guarded else replace(new_session, password_hash=None)
        return await open_session(self, guarded)

    monkeypatch.setattr(SessionRepository, "open", claim_and_open)
    session = await (
        accounts.login(auth, email, PASSWORD)
        if has_account
        else accounts.register(auth, "Eve", email, PASSWORD)
    )
    assert isinstance(session, SignedInSession)
    with pytest.raises(BadTokenError) if is_guarded else nullcontext():
        assert await authenticate(auth, f"Bearer {session.access_token}")


async def test_new_groups_between_read_and_write_are_a_conflict(
    auth: Auth, other_process: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await import_users(auth, user_csv(domain, {"ada": "Ada"}), dry_run=False)
    ada = (await users_by_local_part(auth, domain))["ada"]
    change = other_process.repositories.users.set_groups(ada.id, ["choir"], None, utc_now())
    attempts = run_before_first_write(monkeypatch, change)
    outcome = await import_users(auth, user_csv(domain, {"ada": "Ada L."}), dry_run=False)
    assert attempts == [ImportAttempt.CONFLICT, ImportAttempt.WRITTEN]
    assert outcome == ImportResult(0, 1, 0, dry_run=False)
    assert (await users_by_local_part(auth, domain))["ada"].groups == (f"5a {domain}",)


async def test_an_import_that_fails_while_its_users_change_is_planned_again(
    auth: Auth, other_process: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await import_users(auth, user_csv(domain, {"ada": "Ada"}), dry_run=False)
    ada = (await users_by_local_part(auth, domain))["ada"]

    async def fail(*_: object) -> ImportAttempt:
        monkeypatch.setattr(UserImportWriter, "commit", COMMIT)
        await other_process.repositories.users.set_groups(ada.id, ["choir"], None, utc_now())
        return ImportAttempt.TOO_LARGE

    monkeypatch.setattr(UserImportWriter, "commit", fail)
    outcome = await import_users(auth, user_csv(domain, {"ada": "Ada L."}), dry_run=False)
    assert outcome == ImportResult(0, 1, 0, dry_run=False)


async def test_an_organizer_changes_nobody_who_becomes_an_organizer_meanwhile(
    auth: Auth, other_process: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await import_users(auth, user_csv(domain, {"ada": "Ada"}), dry_run=False)
    ada = (await users_by_local_part(auth, domain))["ada"]
    promotion = account_admin.set_role(other_process, None, ada.id, Role.ORGANIZER)
    attempts = run_before_first_write(monkeypatch, promotion)
    organizer = Caller(UserId("0" * 24), Role.ORGANIZER, "session", utc_now())
    file = user_csv(domain, {"ada": "Ada L."})
    assert isinstance(await import_users(auth, file, dry_run=False, caller=organizer), InvalidFile)
    assert attempts == [ImportAttempt.CONFLICT]
    assert (await users_by_local_part(auth, domain))["ada"].name == "Ada"


async def test_the_import_of_a_killed_process_leaves_nothing_and_blocks_no_later_one(
    auth: Auth, mongo_url: str, domain: str
) -> None:
    await import_users(auth, user_csv(domain, {"ada": "Ada"}), dry_run=False)
    client: AsyncMongoClient[Document] = AsyncMongoClient(mongo_url)
    async with client, client.start_session() as session:
        await session.start_transaction()
        database = client.get_default_database()
        imports, users = database["imports"], database["users"]
        await imports.update_one({"_id": IMPORT_ID}, {"$inc": {"version": 1}}, session=session)
        # MongoDB aborts this transaction after 5 s; the other import waits without an error.
        user = {"email": f"dead@{domain}", "name": "Dead", "searchWords": [domain]}
        await users.insert_one(user, session=session)
        outcome = await import_users(auth, user_csv(domain, {"ben": "Ben"}), dry_run=False)
    assert outcome == ImportResult(1, 0, 0, dry_run=False)
    assert set(await users_by_local_part(auth, domain)) == {"ada", "ben"}


async def test_an_outage_after_an_import_does_not_say_that_nothing_was_imported(
    auth: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> list[User]:
        raise MongoOverloadedError

    monkeypatch.setattr(UserImportWriter, "find_leavers", fail)
    body = user_csv(domain, {"ada": "Ada"})
    with pytest.raises(MongoOverloadedError):
        await import_users(auth, body, dry_run=True)
    with pytest.raises(CommitUnknownError):
        await import_users(auth, body, dry_run=False)
    assert list(await users_by_local_part(auth, domain)) == ["ada"]


async def test_a_small_file_is_not_too_large_while_mongodb_is_lost(
    auth: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise AutoReconnect("lost", {"errorLabels": ["TransientTransactionError"]})

    monkeypatch.setattr(user_import, "RETRY_FOR_S", 0.0)
    monkeypatch.setattr(UserImportWriter, "_write_all", fail)
    outcome = await import_users(auth, user_csv(domain, {"ada": "Ada"}), dry_run=False)
    assert isinstance(outcome, ImportBusy)
