"""Who was imported sets their first password with a token that works once, for them alone."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from pymongo import AsyncMongoClient

from slotlock.auth import accounts, user_admin
from slotlock.auth.accounts import Banned, InvalidCredentials, TooManyAttempts
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.invitations import (
    BATCH_SIZE,
    INVITATION_TTL,
    InvalidInvitation,
    invite,
    set_password,
)
from slotlock.auth.sessions import SignedInSession, end_session
from slotlock.auth.tokens import hash_token
from slotlock.auth.user_import import import_users
from slotlock.devserver.embedded import EmbeddedServers
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.users.user import Caller, Role, UserId
from slotlock.infrastructure.mongo.client import Document
from slotlock.services.container import utc_now
from tests.support.apps.processes import database_url
from tests.support.clients.user_files import generated_user_csv, user_csv, users_by_local_part
from tests.support.stores.users import auth_for_database, sign_in_new_user

PASSWORD = "correct horse battery"
EVERYBODY = tuple(Role)
ADMIN = Caller(UserId("0" * 24), Role.ADMIN, "session", utc_now())


@pytest.fixture
async def auth(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "inviting")) as opened:
        await opened.users.create_indexes()
        yield opened


@pytest.fixture
async def other_process(servers: EmbeddedServers) -> AsyncIterator[Auth]:
    async with auth_for_database(database_url(servers, "inviting")) as opened:
        yield opened


@pytest.fixture
async def email_domain(auth: Auth) -> str:
    """A school of its own with Ada and Ben, who were imported."""
    name = f"{secrets.token_hex(8)}.test"
    body = user_csv(name, {"ada": "Ada", "ben": "Ben"}, name)
    await import_users(auth, body, dry_run=False)
    return name


async def tokens(
    auth: Auth, email_domain: str, roles: Sequence[Role] = EVERYBODY
) -> dict[str, str]:
    """New tokens for all of a school, by the part of the address before the @."""
    invited = [each async for each in invite(auth, email_domain, roles)]
    return {each.email.removesuffix(f"@{email_domain}"): each.token for each in invited}


async def test_who_is_invited_sets_a_password_and_is_signed_in(
    auth: Auth, email_domain: str
) -> None:
    token = (await tokens(auth, email_domain))["ada"]
    session = await set_password(auth, token, PASSWORD)
    assert isinstance(session, SignedInSession)
    assert session.user.has_password
    caller = await authenticate(auth, f"Bearer {session.access_token}")
    assert caller is not None
    assert caller.user_id == session.user.id
    assert isinstance(await accounts.login(auth, f"ada@{email_domain}", PASSWORD), SignedInSession)
    assert await accounts.login(auth, f"ben@{email_domain}", PASSWORD) == InvalidCredentials()


async def test_a_token_that_was_used_is_no_good(auth: Auth, email_domain: str) -> None:
    token = (await tokens(auth, email_domain))["ada"]
    await set_password(auth, token, PASSWORD)
    assert await set_password(auth, token, "another password") == InvalidInvitation()
    assert isinstance(await accounts.login(auth, f"ada@{email_domain}", PASSWORD), SignedInSession)


async def test_a_token_that_is_sent_many_times_at_once_works_once(
    auth: Auth, other_process: Auth, email_domain: str
) -> None:
    token = (await tokens(auth, email_domain))["ada"]
    passwords = [f"password number {number}" for number in range(10)]
    outcomes = await asyncio.gather(
        *(
            set_password(room, token, password)
            for room, password in zip([auth, other_process] * 5, passwords, strict=True)
        )
    )
    (won,) = [place for place, each in enumerate(outcomes) if isinstance(each, SignedInSession)]
    assert outcomes.count(InvalidInvitation()) == 9
    for place, password in enumerate(passwords):
        signed_in = isinstance(
            await accounts.login(auth, f"ada@{email_domain}", password), SignedInSession
        )
        assert signed_in is (place == won)


async def test_a_newer_token_takes_the_place_of_an_older(auth: Auth, email_domain: str) -> None:
    old, new = (await tokens(auth, email_domain))["ada"], (await tokens(auth, email_domain))["ada"]
    assert await set_password(auth, old, PASSWORD) == InvalidInvitation()
    assert isinstance(await set_password(auth, new, PASSWORD), SignedInSession)


async def test_of_invitations_that_are_made_at_once_each_list_has_only_good_ones(
    auth: Auth, other_process: Auth, email_domain: str
) -> None:
    lists = await asyncio.gather(*(tokens(room, email_domain) for room in (auth, other_process)))
    good = {
        who: [
            await auth.users.invitations.find(hash_token(made[who]), utc_now())
            for made in lists
            if who in made
        ]
        for who in ("ada", "ben")
    }
    for found in good.values():
        assert sum(person is not None for person in found) == 1


async def test_a_token_ends_after_two_weeks(auth: Auth, email_domain: str) -> None:
    token = (await tokens(auth, email_domain))["ada"]
    early = replace(auth, now=lambda: utc_now() + INVITATION_TTL - timedelta(minutes=1))
    late = replace(auth, now=lambda: utc_now() + INVITATION_TTL)
    assert await set_password(late, token, PASSWORD) == InvalidInvitation()
    assert isinstance(await set_password(early, token, PASSWORD), SignedInSession)


async def test_who_has_a_password_is_not_invited(auth: Auth, email_domain: str) -> None:
    made = await tokens(auth, email_domain)
    await set_password(auth, made["ada"], PASSWORD)
    assert set(await tokens(auth, email_domain)) == {"ben"}
    # Nor when the password comes between the look and the write.
    (ada,) = [
        user
        for who, user in (await users_by_local_part(auth, email_domain)).items()
        if who == "ada"
    ]
    until = utc_now() + INVITATION_TTL
    assert not await auth.users.invitations.save({ada.id: "hash"}, EVERYBODY, until)
    assert await auth.users.invitations.find("hash", utc_now()) is None


async def test_only_the_hash_of_a_token_is_kept(
    auth: Auth, servers: EmbeddedServers, email_domain: str
) -> None:
    token = (await tokens(auth, email_domain))["ada"]
    client: AsyncMongoClient[Document] = AsyncMongoClient(database_url(servers, "inviting"))
    async with client:
        users = client.get_default_database()["users"]
        document = await users.find_one({"email": f"ada@{email_domain}"})
    assert token not in str(document)
    assert len(bytes.fromhex(token)) == 32


@pytest.mark.parametrize("token", ["", "x", "0" * 64, "\0", "\ud800", "é" * 50_000])
async def test_a_token_that_never_was_is_refused(auth: Auth, token: str) -> None:
    assert await set_password(auth, token, PASSWORD) == InvalidInvitation()


async def test_a_password_that_cannot_be_taken_leaves_the_token_as_it_was(
    auth: Auth, email_domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = (await tokens(auth, email_domain))["ada"]
    for password in ("", "short", "x" * 129):
        assert isinstance(await set_password(auth, token, password), InvalidInput)
    with monkeypatch.context() as busy:
        busy.setattr("slotlock.auth.passwords.MAX_QUEUED_HASHES", 0)
        assert isinstance(await set_password(auth, token, PASSWORD), TooManyAttempts)
    assert isinstance(await set_password(auth, token, PASSWORD), SignedInSession)


async def test_who_has_no_password_yet_is_told_what_a_wrong_one_is_told(
    auth: Auth, email_domain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = f"ada@{email_domain}"
    checked = []
    matches = auth.passwords.matches

    async def counted(password: str, password_hash: str | None) -> bool:
        checked.append(password_hash)
        return await matches(password, password_hash)

    monkeypatch.setattr(auth.passwords, "matches", counted)
    for password in (PASSWORD, "", "None"):
        assert await accounts.login(auth, email, password) == InvalidCredentials()
    # The work of checking was done, against the hash that is nobody's.
    assert checked == [None] * 3
    assert await accounts.register(auth, "Ada", email, PASSWORD) == accounts.EmailTaken(email)


async def test_an_invitation_gives_no_role_that_its_maker_lacks(
    auth: Auth, email_domain: str
) -> None:
    await accounts.set_role(auth, f"ada@{email_domain}", Role.ADMIN)
    assert set(await tokens(auth, email_domain, (Role.MEMBER,))) == {"ben"}
    assert set(await tokens(auth, email_domain)) == {"ada", "ben"}


async def test_an_invitation_ends_when_its_person_gets_another_role(
    auth: Auth, email_domain: str
) -> None:
    token = (await tokens(auth, email_domain, (Role.MEMBER,)))["ada"]
    await accounts.set_role(auth, f"ada@{email_domain}", Role.ADMIN)
    assert await set_password(auth, token, PASSWORD) == InvalidInvitation()


async def test_who_is_banned_is_not_invited_and_sets_no_password(
    auth: Auth, email_domain: str
) -> None:
    made = await tokens(auth, email_domain)
    ada = (await users_by_local_part(auth, email_domain))["ada"]
    await user_admin.ban(auth, ADMIN, ada.id, None)
    assert set(await tokens(auth, email_domain)) == {"ben"}
    assert await set_password(auth, made["ada"], PASSWORD) == Banned()
    await user_admin.unban(auth, ADMIN, ada.id)
    assert isinstance(await set_password(auth, made["ada"], PASSWORD), SignedInSession)


async def test_more_people_than_are_read_at_once_are_all_invited(auth: Auth) -> None:
    email_domain = f"{secrets.token_hex(8)}.test"
    await import_users(auth, generated_user_csv(email_domain, 1_201, email_domain), dry_run=False)
    made = await tokens(auth, email_domain)
    assert len(made) == len(set(made.values())) == 1_201
    assert set(await tokens(auth, f"no {email_domain}")) == set()


@pytest.mark.parametrize("what", ["session", "role"])
async def test_no_more_are_invited_for_an_organiser_who_no_longer_is(auth: Auth, what: str) -> None:
    email_domain = f"{secrets.token_hex(8)}.test"
    await import_users(
        auth, generated_user_csv(email_domain, BATCH_SIZE + 1, email_domain), dry_run=False
    )
    organiser = await authenticate(auth, f"Bearer {await sign_in_new_user(auth, Role.ORGANIZER)}")
    assert organiser is not None
    made = invite(auth, email_domain, (Role.MEMBER,), organiser)
    first = await anext(made)
    if what == "session":
        await end_session(auth, organiser.user_id, organiser.session_id)
    else:
        await auth.users.set_role(await email_of(auth, organiser), Role.MEMBER, None, utc_now())
    assert len({first.token} | {each.token async for each in made}) == BATCH_SIZE


async def email_of(auth: Auth, caller: Caller) -> str:
    """The address of who asks."""
    return (await auth.users.find_many([caller.user_id]))[caller.user_id].email
