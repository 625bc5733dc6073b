"""Imports of users, and claims of accounts that a stranger registered first."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from pymongo import AsyncMongoClient
from pymongo.errors import PyMongoError

from slotlock.auth import accounts, calendar_tokens
from slotlock.auth.accounts import InvalidCredentials, RegistrationClosed, login, register
from slotlock.auth.admin import account_admin, groups_and_bans, user_import
from slotlock.auth.admin.user_import import import_users
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.invitations import create_password_reset, invite, set_password
from slotlock.auth.sessions import InvalidSession, SignedInSession, refresh_session
from slotlock.auth.tokens import BadTokenError
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.audit.audit_log import AuditFilter
from slotlock.domain.teams import membership
from slotlock.domain.teams.team import Member, TeamId
from slotlock.domain.teams.team_outcomes import TeamSaved
from slotlock.domain.user_files.choices import Choice, Choices
from slotlock.domain.user_files.plan import (
    ImportBusy,
    ImportPlan,
    ImportResult,
    NewUser,
    SelfRegisteredAccount,
)
from slotlock.domain.user_files.user_file import MAX_IMPORTED_USERS
from slotlock.domain.users.user import Caller, Registration, Role, User, UserFilter
from slotlock.infrastructure.mongo.client import Document, open_database
from slotlock.infrastructure.mongo.repositories import Repositories
from slotlock.infrastructure.mongo.users.imports import IMPORT_ID, ImportAttempt, UserSnapshot
from slotlock.services.container import utc_now
from tests.support.apps.processes import database_url
from tests.support.clients.user_files import (
    CLAIM_ALL,
    generated_user_csv,
    user_csv,
    users_by_local_part,
)
from tests.support.polling import eventually
from tests.support.stores.users import auth_for_database, insert_user

PASSWORD = "correct horse battery"
NEW_PASSWORD = "another horse battery"


async def test_users_are_created_as_members_without_a_password(auth: Auth, domain: str) -> None:
    outcome = await import_users(
        auth, user_csv(domain, {"Ada": "Ada L."}, "5a;choir"), dry_run=False
    )
    assert outcome == ImportResult(1, 0, 0, dry_run=False)
    ada = (await users_by_local_part(auth, domain))["ada"]
    assert (ada.name, ada.groups, ada.role) == ("Ada L.", ("5a", "choir"), Role.MEMBER)
    assert not ada.has_password


async def test_an_existing_account_preserves_password_and_role(auth: Auth, domain: str) -> None:
    email = f"ada@{domain}"
    created = await accounts.create_user(auth, "Ada", email, PASSWORD, Role.ORGANIZER)
    assert isinstance(created, User)
    await import_users(auth, user_csv(domain, {"ADA": "Ada L."}, "staff"), dry_run=False)
    session = await accounts.login(auth, email, PASSWORD)
    assert isinstance(session, SignedInSession)
    assert session.user == replace(created, name="Ada L.", groups=("staff",))


async def test_imported_users_are_found_by_their_latest_name(auth: Auth, domain: str) -> None:
    await import_users(auth, user_csv(domain, {"ada": "Lovelace"}, "5a"), dry_run=False)
    await import_users(auth, user_csv(domain, {"ada": "Byron"}, "5a"), dry_run=False)
    assert (await auth.repositories.users.page(UserFilter(f"byr {domain}"), 10, None)).items
    assert not (await auth.repositories.users.page(UserFilter(f"lovel {domain}"), 10, None)).items


@pytest.mark.parametrize("dry_run", [True, False])
async def test_an_import_names_the_members_of_its_groups_whom_it_leaves_out(
    auth: Auth, domain: str, dry_run: bool
) -> None:
    first, second = f"5a {domain}", f"5b {domain}"
    names = {name: name for name in ("ada", "ben", "cleo", "dan", "eve", "fay", "teacher")}
    await import_users(auth, user_csv(domain, names, first), dry_run=False)
    users = await users_by_local_part(auth, domain)
    await account_admin.set_role(auth, None, users["teacher"].id, Role.ORGANIZER)
    admin = Caller(users["teacher"].id, Role.ADMIN, "session", auth.now())
    await groups_and_bans.ban(auth, admin, users["fay"].id, "left before")
    await auth.repositories.erasures.erase_account(users["eve"].id, None, auth.now())
    # Cleo has gone up, and Dan is in a group that the file does not have.
    await import_users(auth, user_csv(domain, {"dan": "dan"}, f"choir {domain}"), dry_run=False)
    lines = [f"ada@{domain},{first}", f"cleo@{domain},{second}", f"new@{domain},{first}"]
    file = "\n".join(("email,groups", *lines)).encode()
    outcome = await import_users(auth, file, dry_run=dry_run)
    assert isinstance(outcome, ImportResult)
    assert [each.name for each in outcome.leavers] == ["ben"]


async def test_10_000_users_fit_into_one_transaction(auth: Auth, domain: str) -> None:
    # The test servers abort a transaction after 5 s, as the servers in production do.
    created = await import_users(
        auth, generated_user_csv(domain, MAX_IMPORTED_USERS), dry_run=False
    )
    assert created == ImportResult(MAX_IMPORTED_USERS, 0, 0, dry_run=False)
    updated = await import_users(auth, generated_user_csv(domain, 2_000, "6a"), dry_run=False)
    assert updated == ImportResult(0, 2_000, 0, dry_run=False)


async def test_an_import_blocked_by_an_open_transaction_is_busy(
    auth: Auth, mongo_url: str, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Like the transaction of a killed process until MongoDB aborts it.
    await import_users(auth, user_csv(domain, {"ada": "Ada"}, "5a"), dry_run=False)
    monkeypatch.setattr(user_import, "RETRY_FOR_S", 0.0)
    client: AsyncMongoClient[Document] = AsyncMongoClient(mongo_url)
    async with client, client.start_session() as session:
        await session.start_transaction()
        imports = client.get_default_database()["imports"]
        await imports.update_one({"_id": IMPORT_ID}, {"$inc": {"version": 1}}, session=session)
        outcome = await import_users(auth, user_csv(domain, {"ben": "Ben"}, "5a"), dry_run=False)
        await session.abort_transaction()
    assert isinstance(outcome, ImportBusy)
    assert list(await users_by_local_part(auth, domain)) == ["ada"]
    again = await import_users(auth, user_csv(domain, {"ben": "Ben"}, "5a"), dry_run=False)
    assert again == ImportResult(1, 0, 0, dry_run=False)


async def test_an_unexpected_error_during_the_import_is_raised_and_writes_nothing(
    auth: Auth, domain: str
) -> None:
    new_users = [NewUser(f"{number}@{domain}", "Ada", ()) for number in range(1_000)]
    new_users.append(
        NewUser(f"last@{domain}", "x" * 17_000_000, ())
    )  # larger than a document can be
    plan = ImportPlan(tuple(new_users), (), 0)

    async def commit() -> None:
        attempt = (
            ImportAttempt.CONFLICT
        )  # with the transaction of an earlier test that MongoDB is aborting
        while attempt is ImportAttempt.CONFLICT:
            snapshot = await auth.repositories.user_imports.load_snapshot([])
            attempt = await auth.repositories.user_imports.commit(plan, snapshot, utc_now())

    with pytest.raises(PyMongoError):
        await commit()
    assert not await users_by_local_part(auth, domain)


async def test_of_two_concurrent_first_imports_one_is_written(servers: EmbeddedServers) -> None:
    name = f"first_{secrets.token_hex(4)}"
    async with (
        auth_for_database(database_url(servers, name)) as auth,
        auth_for_database(database_url(servers, name)) as other,
    ):
        plan = ImportPlan((NewUser("ada@slotlock.test", "Ada", ()),), (), 0)
        snapshot = UserSnapshot(0, {})
        attempts = await asyncio.gather(
            auth.repositories.user_imports.commit(plan, snapshot, utc_now()),
            other.repositories.user_imports.commit(plan, snapshot, utc_now()),
        )
        assert attempts.count(ImportAttempt.WRITTEN) == 1
        assert (
            await auth.repositories.user_imports.load_snapshot(["ada@slotlock.test"])
        ).version == 1


async def test_users_without_search_words_get_them_at_the_next_start(
    auth: Auth, mongo_url: str, domain: str
) -> None:
    await import_users(auth, user_csv(domain, {"ada": "Ada"}, "5a"), dry_run=False)
    client: AsyncMongoClient[Document] = AsyncMongoClient(mongo_url)
    async with client:
        users = client.get_default_database()["users"]
        await users.update_one({"email": f"ada@{domain}"}, {"$unset": {"searchWords": ""}})
    assert not await users_by_local_part(auth, domain)

    async def is_found() -> bool:
        return list(await users_by_local_part(auth, domain)) == ["ada"]

    async with open_database(mongo_url) as database, Repositories(database).indexes.running():
        await eventually(is_found, "the user is found")


@pytest.fixture
async def repositories(mongo_url: str) -> AsyncIterator[Repositories]:
    async with open_database(mongo_url) as database:
        yield Repositories(database)


async def squat(auth: Auth, email: str) -> SignedInSession:
    """Register the address of somebody else."""
    session = await register(auth, "Eve", email, PASSWORD)
    assert isinstance(session, SignedInSession)
    return session


async def test_an_import_lists_accounts_that_registered_themselves_and_leaves_them_alone(
    auth: Auth, domain: str
) -> None:
    eve = (await squat(auth, f"ada@{domain}")).user
    body = user_csv(domain, {"ada": "Ada", "ben": "Ben"}, "5a")
    registered = (SelfRegisteredAccount(2, replace(eve, self_registered=True)),)
    for dry_run in (True, False):
        outcome = await import_users(auth, body, dry_run=dry_run)
        assert outcome == ImportResult(1, 0, 0, dry_run, 0, registered)
    users = await users_by_local_part(auth, domain)
    assert (users["ada"].name, users["ada"].groups) == ("Eve", ())
    assert users["ben"].groups == ("5a",)


async def test_a_claim_locks_out_the_user_who_registered_the_account(
    auth: Auth, repositories: Repositories, domain: str
) -> None:
    email = f"ada@{domain}"
    session = await squat(auth, email)
    user_id = session.user.id
    caller = Caller(user_id, Role.MEMBER, "session", auth.now())
    feed = await calendar_tokens.create(auth, caller)
    accomplice = await insert_user(auth)
    alone, shared = TeamId(user_id), TeamId(accomplice.id)
    for team_id, others in ((alone, ()), (shared, (Member(accomplice.id, auth.now(), 1),))):
        created = membership.create(team_id, "Friends", user_id, len(others), auth.now())
        assert isinstance(created, TeamSaved)
        team = created.team
        assert await repositories.teams.insert(replace(team, members=(*team.members, *others)))

    body = user_csv(domain, {"ada": "Ada"}, "5a")
    assert await import_users(auth, body, dry_run=False, choices=CLAIM_ALL) == ImportResult(
        0, 0, 0, dry_run=False, claimed=1
    )

    with pytest.raises(BadTokenError):
        await authenticate(auth, f"Bearer {session.access_token}")
    assert await refresh_session(auth, session.refresh_token) == InvalidSession()
    assert await login(auth, email, PASSWORD) == InvalidCredentials()
    late_feed = await calendar_tokens.create(auth, caller)  # of a request that began before
    for each in (feed, late_feed):
        assert await calendar_tokens.user_of(auth, each.token) is None
    assert await repositories.teams.find(alone) is None
    left = await repositories.teams.find(shared)
    assert left is not None
    assert [member.user_id for member in left.members] == [accomplice.id]
    assert not (await repositories.teams.find_teammates(accomplice.id, [user_id]))[0]

    (invitation,) = [
        each async for each in invite(auth, "5a", (Role.MEMBER,)) if each.user.email == email
    ]
    accepted = await set_password(auth, invitation.token, NEW_PASSWORD)
    assert isinstance(accepted, SignedInSession)
    assert (accepted.user.name, accepted.user.groups) == ("Ada", ("5a",))
    again = await import_users(auth, user_csv(domain, {"ada": "Ada B."}, "5a"), dry_run=False)
    assert again == ImportResult(0, 1, 0, dry_run=False)


async def test_a_vouch_gives_the_groups_of_the_line_and_locks_nobody_out(
    auth: Auth, domain: str
) -> None:
    session = await squat(auth, f"ada@{domain}")
    body = user_csv(domain, {"ada": "Ada"}, "5a")
    outcome = await import_users(
        auth, body, dry_run=False, choices=Choices({2: Choice.VOUCH}, Choice.CLAIM)
    )
    assert outcome == ImportResult(0, 0, 0, dry_run=False, vouched_for=1)
    assert await authenticate(auth, f"Bearer {session.access_token}")
    ada = (await users_by_local_part(auth, domain))["ada"]
    assert (ada.name, ada.groups, ada.has_password) == ("Ada", ("5a",), True)
    assert not ada.self_registered


async def test_one_stranger_among_honest_pupils_is_locked_out_alone(
    auth: Auth, domain: str
) -> None:
    names = {f"pupil{number}": "Ada" for number in range(3)}
    sessions = {name: await squat(auth, f"{name}@{domain}") for name in names}
    outcome = await import_users(
        auth,
        user_csv(domain, names),
        dry_run=False,
        choices=Choices({3: Choice.CLAIM}, Choice.VOUCH),
    )
    assert outcome == ImportResult(0, 0, 0, dry_run=False, claimed=1, vouched_for=2)
    users = await users_by_local_part(auth, domain)
    assert [user.has_password for user in users.values()] == [True, False, True]
    with pytest.raises(BadTokenError):
        await authenticate(auth, f"Bearer {sessions['pupil1'].access_token}")


async def test_a_claim_by_a_file_without_names_leaves_the_name_out_of_mails(
    auth: Auth, domain: str
) -> None:
    for name in ("ada", "ben"):
        await squat(auth, f"{name}@{domain}")
    bodies = (f"email\r\nada@{domain}\r\n".encode(), user_csv(domain, {"ben": "Ben B."}))
    for body in bodies:
        await import_users(auth, body, dry_run=False, choices=CLAIM_ALL)
    users = await users_by_local_part(auth, domain)
    assert {name: each.has_known_name for name, each in users.items()} == {
        "ada": False,
        "ben": True,
    }


async def test_the_log_has_a_claim(auth: Auth, repositories: Repositories, domain: str) -> None:
    eve = (await squat(auth, f"ada@{domain}")).user
    await import_users(
        auth, user_csv(domain, {"ada": "Eve"}, "5a"), dry_run=False, choices=CLAIM_ALL
    )
    page = await repositories.audit_log.page(AuditFilter(user_id=eve.id), 10, None, auth.now())
    (entry,) = page.items
    edits = {(edit.field, edit.before, edit.after) for edit in entry.edits}
    assert edits == {
        ("groups", None, "5a"),
        ("hasPassword", "true", "false"),
        ("selfRegistered", "true", "false"),
    }


async def test_an_account_whose_user_is_known_needs_no_claim(auth: Auth, domain: str) -> None:
    names = {"appointed": "Ada", "created": "Ada", "reset": "Ada"}
    emails = {name: f"{name}@{domain}" for name in names}
    appointed = (await squat(auth, emails["appointed"])).user
    await account_admin.set_role(auth, None, appointed.id, Role.ORGANIZER, vouches=True)
    await account_admin.set_role(auth, None, appointed.id, Role.MEMBER)
    await accounts.create_user(auth, "Eve", emails["created"], PASSWORD, Role.MEMBER)
    reset = await create_password_reset(auth, (await squat(auth, emails["reset"])).user)
    assert reset is not None
    await set_password(auth, reset.token, NEW_PASSWORD)
    outcome = await import_users(auth, user_csv(domain, names), dry_run=False)
    assert outcome == ImportResult(0, 3, 0, dry_run=False)


@pytest.mark.parametrize("registration", [Registration.INVITED, Registration.CLOSED])
async def test_nobody_registers_where_registration_is_not_open(
    auth: Auth, domain: str, registration: Registration
) -> None:
    closed = replace(auth, registration=registration)
    email = f"ada@{domain}"
    assert await register(closed, "Ada", email, PASSWORD) == RegistrationClosed()
    created = await accounts.create_user(closed, "Ada", email, PASSWORD, Role.MEMBER)
    assert isinstance(created, User)
    assert isinstance(await login(closed, email, PASSWORD), SignedInSession)
    reset = await create_password_reset(closed, created)
    assert reset is not None
    assert isinstance(await set_password(closed, reset.token, NEW_PASSWORD), SignedInSession)


async def test_an_invitation_sets_a_first_password_unless_registration_is_closed(
    auth: Auth, domain: str
) -> None:
    await import_users(auth, user_csv(domain, {"ada": "Ada"}, domain), dry_run=False)
    (invitation,) = [each async for each in invite(auth, domain, (Role.MEMBER,))]
    closed = replace(auth, registration=Registration.CLOSED)
    assert await set_password(closed, invitation.token, PASSWORD) == RegistrationClosed()
    invited = replace(auth, registration=Registration.INVITED)
    assert isinstance(await set_password(invited, invitation.token, PASSWORD), SignedInSession)
