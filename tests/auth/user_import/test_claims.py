"""Accounts that a stranger registered first: an import gives them nothing until a claim."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from slotlock.auth import accounts, calendar_tokens
from slotlock.auth.accounts import InvalidCredentials, RegistrationClosed, login, register
from slotlock.auth.administration import account_admin
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.invitations import create_password_reset, invite, set_password
from slotlock.auth.sessions import InvalidSession, SignedInSession, refresh_session
from slotlock.auth.tokens import BadTokenError
from slotlock.auth.user_import import import_users
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.audit.log import AuditFilter
from slotlock.domain.teams import membership
from slotlock.domain.teams.outcomes import TeamSaved
from slotlock.domain.teams.team import Member, TeamId
from slotlock.domain.users.import_plan import ImportResult, UnclaimedAccount
from slotlock.domain.users.user import Caller, Registration, Role, User
from slotlock.infrastructure.mongo.client import connect
from slotlock.infrastructure.mongo.repositories import Repositories, repositories_on
from tests.support.apps.processes import database_url
from tests.support.clients.user_files import user_csv, users_by_local_part
from tests.support.stores.users import auth_for_database, insert_user

PASSWORD = "correct horse battery"
NEW_PASSWORD = "another horse battery"


@pytest.fixture
async def auth(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "claiming")) as opened:
        yield opened


@pytest.fixture
async def repositories(servers: EmbeddedServers) -> AsyncIterator[Repositories]:
    client, database = connect(database_url(servers, "claiming"))
    yield repositories_on(database)
    await client.close()


async def squat(auth: Auth, email: str) -> SignedInSession:
    """Register the address of somebody else."""
    session = await register(auth, "Eve", email, PASSWORD)
    assert isinstance(session, SignedInSession)
    return session


async def test_an_import_lists_accounts_that_registered_themselves_and_leaves_them_alone(
    auth: Auth, email_domain: str
) -> None:
    eve = (await squat(auth, f"ada@{email_domain}")).user
    body = user_csv(email_domain, {"ada": "Ada", "ben": "Ben"})
    unclaimed = (UnclaimedAccount(2, replace(eve, self_registered=True)),)
    for dry_run in (True, False):
        outcome = await import_users(auth, body, dry_run=dry_run)
        assert outcome == ImportResult(1, 0, 0, dry_run, 0, unclaimed)
    users = await users_by_local_part(auth, email_domain)
    assert (users["ada"].name, users["ada"].groups) == ("Eve", ())
    assert users["ben"].groups == ("5a",)


async def test_a_claim_locks_out_the_user_who_registered_the_account(
    auth: Auth, repositories: Repositories, email_domain: str
) -> None:
    email = f"ada@{email_domain}"
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

    body = user_csv(email_domain, {"ada": "Ada"})
    assert await import_users(auth, body, dry_run=False, claim=True) == ImportResult(
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
        each async for each in invite(auth, "5a", (Role.MEMBER,)) if each.email == email
    ]
    accepted = await set_password(auth, invitation.token, NEW_PASSWORD)
    assert isinstance(accepted, SignedInSession)
    assert (accepted.user.name, accepted.user.groups) == ("Ada", ("5a",))
    again = await import_users(auth, user_csv(email_domain, {"ada": "Ada B."}), dry_run=False)
    assert again == ImportResult(0, 1, 0, dry_run=False)


async def test_a_claim_is_in_the_audit_log(
    auth: Auth, repositories: Repositories, email_domain: str
) -> None:
    eve = (await squat(auth, f"ada@{email_domain}")).user
    await import_users(auth, user_csv(email_domain, {"ada": "Eve"}), dry_run=False, claim=True)
    page = await repositories.audit_log.page(AuditFilter(user_id=eve.id), 10, None, auth.now())
    (entry,) = page.items
    edits = {(edit.field, edit.before, edit.after) for edit in entry.edits}
    assert edits == {("groups", None, "5a"), ("hasPassword", "true", "false")}


async def test_an_account_whose_user_is_known_needs_no_claim(auth: Auth, email_domain: str) -> None:
    names = {"appointed": "Ada", "created": "Ada", "reset": "Ada"}
    emails = {name: f"{name}@{email_domain}" for name in names}
    appointed = (await squat(auth, emails["appointed"])).user
    await account_admin.set_role(auth, None, appointed.id, Role.ORGANIZER)
    await account_admin.set_role(auth, None, appointed.id, Role.MEMBER)
    await accounts.create_user(auth, "Eve", emails["created"], PASSWORD, Role.MEMBER)
    reset = await create_password_reset(auth, (await squat(auth, emails["reset"])).user)
    assert reset is not None
    await set_password(auth, reset.token, NEW_PASSWORD)
    outcome = await import_users(auth, user_csv(email_domain, names), dry_run=False)
    assert outcome == ImportResult(0, 3, 0, dry_run=False)


@pytest.mark.parametrize("registration", [Registration.INVITED, Registration.CLOSED])
async def test_nobody_registers_where_registration_is_not_open(
    auth: Auth, email_domain: str, registration: Registration
) -> None:
    closed = replace(auth, registration=registration)
    email = f"ada@{email_domain}"
    assert await register(closed, "Ada", email, PASSWORD) == RegistrationClosed()
    created = await accounts.create_user(closed, "Ada", email, PASSWORD, Role.MEMBER)
    assert isinstance(created, User)
    assert isinstance(await login(closed, email, PASSWORD), SignedInSession)
    reset = await create_password_reset(closed, created)
    assert reset is not None
    assert isinstance(await set_password(closed, reset.token, NEW_PASSWORD), SignedInSession)


async def test_an_invitation_sets_a_first_password_unless_registration_is_closed(
    auth: Auth, email_domain: str
) -> None:
    await import_users(auth, user_csv(email_domain, {"ada": "Ada"}, email_domain), dry_run=False)
    (invitation,) = [each async for each in invite(auth, email_domain, (Role.MEMBER,))]
    closed = replace(auth, registration=Registration.CLOSED)
    assert await set_password(closed, invitation.token, PASSWORD) == RegistrationClosed()
    invited = replace(auth, registration=Registration.INVITED)
    assert isinstance(await set_password(invited, invitation.token, PASSWORD), SignedInSession)
