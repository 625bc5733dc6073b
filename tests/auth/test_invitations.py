"""Invitations: a token with which an imported user sets their first password once."""

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pymongo import AsyncMongoClient

from slotlock.auth import accounts, invitations
from slotlock.auth.accounts import Banned, InvalidCredentials, ServerBusy
from slotlock.auth.admin import account_admin, groups_and_bans
from slotlock.auth.admin.user_import import import_users
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.invitations import (
    INVITATION_TTL,
    InvalidInvitation,
    invite,
    set_password,
)
from slotlock.auth.sessions import SignedInSession, end_session
from slotlock.auth.tokens import hash_token
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.user_files.plan import ImportResult
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.services.container import utc_now
from tests.support.clients.user_files import generated_user_csv, user_csv, users_by_local_part
from tests.support.stores.users import fill_hash_queue, sign_in_new_user

PASSWORD = "correct horse battery"
ALL_ROLES = tuple(Role)
ADMIN = Caller(UserId("0" * 24), Role.ADMIN, "session", utc_now())


@pytest.fixture
async def domain(auth: Auth) -> str:
    """Import Ada and Ben with a new e-mail domain, which is also their group."""
    name = f"{secrets.token_hex(8)}.test"
    body = user_csv(name, {"ada": "Ada", "ben": "Ben"}, name)
    await import_users(auth, body, dry_run=False)
    return name


async def invite_domain(
    auth: Auth, domain: str, roles: Sequence[Role] = ALL_ROLES
) -> dict[str, str]:
    """Invite all users of a domain. Return their tokens by the local part of the address."""
    return {
        invitation.user.login_name.removesuffix(f"@{domain}"): invitation.token
        async for invitation in invite(auth, domain, roles)
    }


async def test_of_concurrent_requests_with_one_token_one_succeeds(
    auth: Auth, other_process: Auth, domain: str
) -> None:
    token = (await invite_domain(auth, domain))["ada"]
    passwords = [f"password number {number}" for number in range(10)]
    outcomes = await asyncio.gather(
        *(
            set_password(process, token, password)
            for process, password in zip([auth, other_process] * 5, passwords, strict=True)
        )
    )
    (winner,) = [
        index for index, outcome in enumerate(outcomes) if isinstance(outcome, SignedInSession)
    ]
    assert outcomes.count(InvalidInvitation()) == 9
    for index, password in enumerate(passwords):
        is_logged_in = isinstance(
            await accounts.login(auth, f"ada@{domain}", password), SignedInSession
        )
        assert is_logged_in is (index == winner)


async def test_a_new_token_replaces_the_old_one(auth: Auth, domain: str) -> None:
    old, new = (
        (await invite_domain(auth, domain))["ada"],
        (await invite_domain(auth, domain))["ada"],
    )
    assert await set_password(auth, old, PASSWORD) == InvalidInvitation()
    assert isinstance(await set_password(auth, new, PASSWORD), SignedInSession)


async def test_of_concurrent_invitations_of_a_user_exactly_one_is_valid(
    auth: Auth, other_process: Auth, domain: str
) -> None:
    lists = await asyncio.gather(
        *(invite_domain(process, domain) for process in (auth, other_process))
    )
    for local_part in ("ada", "ben"):
        found = [
            await auth.repositories.invitations.find(
                hash_token(invited_tokens[local_part]), utc_now()
            )
            for invited_tokens in lists
            if local_part in invited_tokens
        ]
        assert sum(user is not None for user in found) == 1


async def test_concurrent_requests_find_each_the_user_of_their_own_token(
    auth: Auth, domain: str
) -> None:
    invited, now = await invite_domain(auth, domain), utc_now()
    requests = [("ada", now), ("unknown", now), ("ben", now + INVITATION_TTL), ("ben", now)] * 20
    invitations = auth.repositories.invitations
    finding = (invitations.find(hash_token(invited.get(name, name)), at) for name, at in requests)
    found = await asyncio.gather(*finding)
    names = [user and user.login_name.partition("@")[0] for user in found]
    assert names == ["ada", None, None, "ben"] * 20


async def test_a_token_expires_after_two_weeks(auth: Auth, domain: str) -> None:
    token = (await invite_domain(auth, domain))["ada"]
    early = replace(auth, now=lambda: utc_now() + INVITATION_TTL - timedelta(minutes=1))
    late = replace(auth, now=lambda: utc_now() + INVITATION_TTL)
    assert await set_password(late, token, PASSWORD) == InvalidInvitation()
    assert isinstance(await set_password(early, token, PASSWORD), SignedInSession)


async def test_a_user_with_a_password_is_not_invited(auth: Auth, domain: str) -> None:
    invited_tokens = await invite_domain(auth, domain)
    await set_password(auth, invited_tokens["ada"], PASSWORD)
    assert set(await invite_domain(auth, domain)) == {"ben"}
    # Also if the user sets the password between the read and the write.
    ada = (await users_by_local_part(auth, domain))["ada"]
    expires_at = utc_now() + INVITATION_TTL
    assert not await auth.repositories.invitations.save({"hash": ada}, ALL_ROLES, expires_at)
    assert await auth.repositories.invitations.find("hash", utc_now()) is None


async def test_a_user_whose_address_just_changed_is_not_invited(auth: Auth, domain: str) -> None:
    ada = (await users_by_local_part(auth, domain))["ada"]
    await account_admin.update_user(auth, ADMIN, ada.id, None, f"lovelace@{domain}")
    assert not await auth.repositories.invitations.save(
        {"hash": ada}, ALL_ROLES, utc_now() + INVITATION_TTL
    )
    assert await auth.repositories.invitations.find("hash", utc_now()) is None


async def test_only_the_hash_of_a_token_is_stored(auth: Auth, mongo_url: str, domain: str) -> None:
    token = (await invite_domain(auth, domain))["ada"]
    client: AsyncMongoClient[Document] = AsyncMongoClient(mongo_url)
    async with client:
        users = client.get_default_database()["users"]
        document = await users.find_one({"email": f"ada@{domain}"})
    assert token not in str(document)
    assert len(bytes.fromhex(token)) == 32


async def test_an_invalid_password_does_not_use_up_the_token(
    auth: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await invite_domain(auth, domain))["ada"]
    for password in ("", "short", "x" * 129):
        assert isinstance(await set_password(auth, token, password), InvalidInput)
    with monkeypatch.context() as full_queue:
        fill_hash_queue(full_queue)
        assert isinstance(await set_password(auth, token, PASSWORD), ServerBusy)
    assert isinstance(await set_password(auth, token, PASSWORD), SignedInSession)


async def test_an_account_without_a_password_behaves_like_a_wrong_password(
    auth: Auth, domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = f"ada@{domain}"
    checked_hashes = []
    matches = auth.password_hasher.matches

    async def recording_matches(
        password: str, password_hash: str | None, *rest: Any, **options: Any
    ) -> bool:
        checked_hashes.append(password_hash)
        return await matches(password, password_hash, *rest, **options)

    monkeypatch.setattr(auth.password_hasher, "matches", recording_matches)
    for password in (PASSWORD, "", "None"):
        assert await accounts.login(auth, email, password) == InvalidCredentials()
    # The password was checked each time, against the dummy hash.
    assert checked_hashes == [None] * 3
    assert await accounts.register(auth, "Ada", email, PASSWORD) == accounts.EmailTaken(email)


async def test_only_users_of_the_given_roles_are_invited(auth: Auth, domain: str) -> None:
    ada = (await users_by_local_part(auth, domain))["ada"]
    await account_admin.set_role(auth, None, ada.id, Role.ADMIN)
    assert set(await invite_domain(auth, domain, (Role.MEMBER,))) == {"ben"}
    assert set(await invite_domain(auth, domain)) == {"ada", "ben"}


async def test_an_invitation_ends_when_the_user_gets_another_role(auth: Auth, domain: str) -> None:
    token = (await invite_domain(auth, domain, (Role.MEMBER,)))["ada"]
    ada = (await users_by_local_part(auth, domain))["ada"]
    await account_admin.set_role(auth, None, ada.id, Role.ADMIN)
    assert await set_password(auth, token, PASSWORD) == InvalidInvitation()


async def test_a_banned_user_is_not_invited_and_sets_no_password(auth: Auth, domain: str) -> None:
    invited_tokens = await invite_domain(auth, domain)
    ada = (await users_by_local_part(auth, domain))["ada"]
    await groups_and_bans.ban(auth, ADMIN, ada.id, None)
    assert set(await invite_domain(auth, domain)) == {"ben"}
    assert await set_password(auth, invited_tokens["ada"], PASSWORD) == Banned()
    await groups_and_bans.unban(auth, ADMIN, ada.id)
    assert isinstance(await set_password(auth, invited_tokens["ada"], PASSWORD), SignedInSession)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> int:
    """Invite five users at once. The import of a thousand may be busy beside other tests."""
    monkeypatch.setattr(invitations, "BATCH_SIZE", 5)
    return invitations.BATCH_SIZE


async def test_invitations_span_several_batches(auth: Auth, small_batches: int) -> None:
    domain, count = f"{secrets.token_hex(8)}.test", 2 * small_batches + 1
    created = await import_users(auth, generated_user_csv(domain, count, domain), dry_run=False)
    assert created == ImportResult(count, 0, 0, dry_run=False)
    invited_tokens = await invite_domain(auth, domain)
    assert len(invited_tokens) == len(set(invited_tokens.values())) == count
    assert set(await invite_domain(auth, f"no {domain}")) == set()


@pytest.mark.parametrize("ending", ["session", "role"])
async def test_invitations_end_with_the_session_or_role(
    auth: Auth, ending: str, small_batches: int
) -> None:
    domain = f"{secrets.token_hex(8)}.test"
    await import_users(auth, generated_user_csv(domain, small_batches + 1, domain), dry_run=False)
    organizer = await authenticate(auth, f"Bearer {await sign_in_new_user(auth, Role.ORGANIZER)}")
    assert organizer is not None
    yielded = invite(auth, domain, (Role.MEMBER,), organizer)
    first = await anext(yielded)
    if ending == "session":
        await end_session(auth, organizer.user_id, organizer.session_id)
    else:
        await account_admin.set_role(auth, None, organizer.user_id, Role.MEMBER)
    others = {invitation.token async for invitation in yielded}
    assert len({first.token} | others) == small_batches
