"""Sessions: they rotate their tokens, end everywhere at once, and know the user's role."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from slotlock.auth import accounts, export_links
from slotlock.auth.accounts import InvalidCredentials, ServerBusy
from slotlock.auth.admin import account_admin, account_claims, groups_and_bans
from slotlock.auth.admin.user_import import import_users
from slotlock.auth.authentication import (
    authenticate,
    load_caller,
    recheck_caller,
    user_to_charge,
    verify_authorization,
)
from slotlock.auth.container import Auth
from slotlock.auth.sessions import (
    InvalidSession,
    SignedInSession,
    end_other_sessions,
    end_session,
    open_session,
    refresh_session,
)
from slotlock.auth.tokens import ACCESS_TOKEN_TTL, BadTokenError, TokenClaims
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.services.container import utc_now
from tests.support.clients.user_files import CLAIM_ALL, user_csv
from tests.support.stores.users import RecordedStreams, fill_hash_queue, insert_user

PASSWORD = "correct horse battery"


@pytest.fixture
async def user(auth: Auth) -> User:
    email = f"{secrets.token_hex(8)}@slotlock.test"
    created = await accounts.create_user(auth, "Ada", email, PASSWORD, Role.MEMBER)
    assert isinstance(created, User)
    return created


async def role_of(auth: Auth, session: SignedInSession) -> Role:
    caller = await authenticate(auth, f"Bearer {session.access_token}")
    assert caller is not None
    assert caller.user_id == session.user.id
    return caller.role


async def has_ended(auth: Auth, session: SignedInSession) -> bool:
    try:
        await role_of(auth, session)
    except BadTokenError:
        return True
    return False


async def test_new_roles_apply_to_sessions(auth: Auth, other_process: Auth, user: User) -> None:
    sessions = [await open_session(auth, user) for _ in range(2)]
    assert [await role_of(auth, session) for session in sessions] == [Role.MEMBER] * 2
    changed = await account_admin.set_role(other_process, None, user.id, Role.ORGANIZER)
    assert changed == replace(user, role=Role.ORGANIZER)
    for session in sessions:
        assert await role_of(auth, session) is Role.ORGANIZER
        refreshed = await refresh_session(auth, session.refresh_token)
        assert isinstance(refreshed, SignedInSession)
        assert await role_of(auth, refreshed) is Role.ORGANIZER


async def test_a_role_removed_during_a_login_is_not_granted(auth: Auth, user: User) -> None:
    organizer = await account_admin.set_role(auth, None, user.id, Role.ORGANIZER)
    assert isinstance(organizer, User)
    await account_admin.set_role(auth, None, user.id, Role.MEMBER)
    session = await open_session(auth, organizer)
    assert session.user.role is Role.MEMBER
    assert await role_of(auth, session) is Role.MEMBER


async def refresh(auth: Auth, refresh_token: str) -> SignedInSession:
    refreshed = await refresh_session(auth, refresh_token)
    assert isinstance(refreshed, SignedInSession)
    return refreshed


async def test_control_without_grace_concurrent_refreshes_end_the_session(
    auth: Auth, other_process: Auth, user: User
) -> None:
    session, other_session = await open_session(auth, user), await open_session(auth, user)
    processes = [replace(each, refresh_grace=timedelta()) for each in (auth, other_process)]
    outcomes = await asyncio.gather(
        *(refresh_session(process, session.refresh_token) for process in processes * 10)
    )
    refreshed = [outcome for outcome in outcomes if isinstance(outcome, SignedInSession)]
    assert len(refreshed) <= 1
    assert outcomes.count(InvalidSession()) == 20 - len(refreshed)
    for ended in (session, *refreshed):
        assert await has_ended(auth, ended)
        assert await refresh_session(auth, ended.refresh_token) == InvalidSession()
    assert not await has_ended(auth, other_session)


async def test_concurrent_refreshes_get_the_same_successor_from_every_process(
    auth: Auth, other_process: Auth, user: User
) -> None:
    session = await open_session(auth, user)
    refreshed = await asyncio.gather(
        *(refresh(process, session.refresh_token) for process in [auth, other_process] * 10)
    )
    assert len({each.refresh_token for each in refreshed}) == 1
    for each in refreshed:
        assert await role_of(auth, each) is Role.MEMBER


async def test_a_token_sent_after_its_successor_ends_the_session(auth: Auth, user: User) -> None:
    session = await open_session(auth, user)
    first = await refresh(auth, session.refresh_token)
    second = await refresh(auth, first.refresh_token)
    assert await refresh_session(auth, session.refresh_token) == InvalidSession()
    assert await has_ended(auth, second)


@pytest.mark.parametrize(("seconds", "signed_out"), [(29, False), (30, True)])
async def test_a_token_sent_again_gets_its_successor_for_30_seconds(
    auth: Auth, user: User, seconds: int, signed_out: bool
) -> None:
    session, now = await open_session(auth, user), utc_now()
    first = await refresh(replace(auth, now=lambda: now), session.refresh_token)
    later = replace(auth, now=lambda: now + timedelta(seconds=seconds))
    again = await refresh_session(later, session.refresh_token)
    if signed_out:
        assert again == InvalidSession()
    else:
        assert isinstance(again, SignedInSession)
        assert again.refresh_token == first.refresh_token
    assert await has_ended(auth, first) is signed_out


async def test_an_ended_session_is_over_in_every_process(
    auth: Auth, other_process: Auth, user: User
) -> None:
    session = await open_session(auth, user)
    for process in (auth, other_process):
        assert await role_of(process, session) is Role.MEMBER
    caller = await authenticate(auth, f"Bearer {session.access_token}")
    assert caller is not None
    await end_session(auth, user.id, caller.session_id)
    assert await has_ended(auth, session)
    assert await has_ended(other_process, session)


async def test_concurrent_logins_open_separate_sessions(auth: Auth, user: User) -> None:
    outcomes = await asyncio.gather(
        *(accounts.login(auth, user.login_name, PASSWORD) for _ in range(10)),
        *(accounts.login(auth, user.login_name, PASSWORD + "?") for _ in range(10)),
    )
    sessions = [outcome for outcome in outcomes[:10] if isinstance(outcome, SignedInSession)]
    assert len({session.refresh_token for session in sessions}) == 10
    assert list(outcomes[10:]) == [InvalidCredentials()] * 10


async def test_a_full_hash_queue_rejects_logins_until_later(
    auth: Auth, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_hash_queue(monkeypatch)
    outcomes = (
        await accounts.login(auth, user.login_name, PASSWORD),
        await accounts.login(auth, "nobody@slotlock.test", PASSWORD),
        await accounts.register(auth, "Eve", "eve@slotlock.test", PASSWORD),
    )
    assert all(isinstance(each, ServerBusy) and each.retry_after_ms > 0 for each in outcomes)


async def test_a_password_that_is_too_long_costs_no_hash(
    auth: Auth, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slotlock.auth.passwords._CONTEXT", None)
    for too_long in ("x" * 129, "\U0001f511" * 129, "x" * 60_000):
        assert await accounts.login(auth, user.login_name, too_long) == InvalidCredentials(
            counts_as_guess=False
        )
        outcome = await accounts.register(auth, "Eve", "eve@slotlock.test", too_long)
        assert isinstance(outcome, InvalidInput)


async def test_a_verified_token_is_rejected_once_it_expires(auth: Auth, user: User) -> None:
    authorization = f"Bearer {(await open_session(auth, user)).access_token}"
    assert await authenticate(auth, authorization) is not None
    later = replace(auth, now=lambda: utc_now() + ACCESS_TOKEN_TTL)
    assert later.verified_tokens is auth.verified_tokens
    with pytest.raises(BadTokenError, match="expired"):
        await authenticate(later, authorization)


async def test_a_token_of_an_ended_session_is_charged_to_no_user(auth: Auth, user: User) -> None:
    session = await open_session(auth, user)
    token = verify_authorization(auth, f"Bearer {session.access_token}")
    assert isinstance(token, TokenClaims)
    assert user_to_charge(auth, token) == user.id
    await end_session(auth, user.id, token.session_id)
    with pytest.raises(BadTokenError, match="ended"):
        await load_caller(auth, token)
    assert user_to_charge(auth, token) is None


NEW_PASSWORD = "another horse battery"
ADMIN = Caller(UserId("0" * 24), Role.ADMIN, "session", utc_now())


def claim_by_file(auth: Auth, user: User) -> Awaitable[object]:
    local_part, _, domain = user.login_name.partition("@")
    file = user_csv(domain, {local_part: "Ada"})
    return import_users(auth, file, dry_run=False, choices=CLAIM_ALL)


# What ends sessions of a user, or changes what their streams may show.
ENDS: dict[str, Callable[[Auth, User, Caller], Awaitable[object]]] = {
    "sign-out elsewhere": lambda auth, _, own: end_other_sessions(auth, own),
    "changed password": lambda auth, _, own: accounts.change_password(
        auth, own, PASSWORD, NEW_PASSWORD
    ),
    "replaced password": lambda auth, user, _: account_admin.replace_password(
        auth, user.id, NEW_PASSWORD
    ),
    "end by an admin": lambda auth, user, _: account_admin.end_sessions(auth, ADMIN, user.id),
    "role": lambda auth, user, _: account_admin.set_role(auth, None, user.id, Role.ORGANIZER),
    "ban": lambda auth, user, _: groups_and_bans.ban(auth, ADMIN, user.id, None),
    "erasure": lambda auth, user, _: account_admin.erase_account(auth, ADMIN, user.id),
    "claim": lambda auth, user, _: account_claims.lock(auth, user.id),
    "claim by a file": lambda auth, user, _: claim_by_file(auth, user),
}


@pytest.mark.parametrize("end", ENDS)
async def test_streams_of_sessions_that_end_are_checked_at_once(auth: Auth, end: str) -> None:
    hashed = await auth.password_hasher.hash(PASSWORD)
    user = await insert_user(auth, Role.MEMBER, hashed, self_registered="claim" in end)
    session, streams = await open_session(auth, user), RecordedStreams()
    caller = await authenticate(auth, f"Bearer {session.access_token}")
    assert caller is not None
    await ENDS[end](replace(auth, session_streams=streams), user, caller)
    assert streams.checked == [user.id]


async def test_a_download_goes_on_for_minutes_after_its_link_expired(
    auth: Auth, user: User
) -> None:
    session, now = await open_session(auth, user), utc_now()
    caller = await authenticate(auth, f"Bearer {session.access_token}")
    assert caller is not None
    link = export_links.create(auth, caller, "slots/slot.csv")
    claims = export_links.verify(auth, link.token)
    assert isinstance(claims, TokenClaims)
    downloader = await export_links.load_downloader(auth, claims)
    minutes = export_links.EXPORT_LINK_TTL + timedelta(minutes=9)
    assert await recheck_caller(replace(auth, now=lambda: now + minutes), downloader) == downloader
    later = replace(auth, now=lambda: now + minutes + timedelta(minutes=2))
    with pytest.raises(BadTokenError, match="expired"):
        await recheck_caller(later, downloader)
