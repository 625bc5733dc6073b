"""New passwords are neither common nor derived, and operators replace them by tokens."""

import gzip
import secrets
import time
import unicodedata
from datetime import timedelta
from importlib import resources
from typing import Literal

import pytest

from slotlock.auth import accounts, calendar_tokens, invitations
from slotlock.auth.accounts import InvalidCredentials
from slotlock.auth.admin import account_admin, groups_and_bans
from slotlock.auth.authentication import authenticate
from slotlock.auth.container import Auth
from slotlock.auth.invitations import (
    InvalidInvitation,
    create_password_reset,
    invite_user,
    set_password,
)
from slotlock.auth.password_policy.rules import (
    CONTAINS_KNOWN_WORD,
    TOO_COMMON,
    WRONG_LENGTH,
    validate_password,
)
from slotlock.auth.sessions import SignedInSession, open_session
from slotlock.auth.tokens import BadTokenError
from slotlock.domain.shared.text import MAX_NORMALIZED_LENGTH
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.user import Caller, Role, User, UserId
from slotlock.services.container import utc_now
from tests.support.stores.users import caller_of, new_email

NAME, PASSWORD, NEW_PASSWORD = "Ada Lovelace", "correct horse battery", "another horse battery"
WEAK_PASSWORDS = ["password", "lovelace 1815"]
OLD, NEW = "correct horse battery", "another horse battery"


@pytest.fixture
async def ada(auth: Auth) -> User:
    created = await accounts.create_user(auth, NAME, new_email(), PASSWORD, Role.MEMBER)
    assert isinstance(created, User)
    return created


@pytest.mark.parametrize(
    "password",
    [
        *("password", "PassWord", "\uff50\uff41ssword", "p@ssw0rd", "password123", "password1!!"),
        *("12345678", "87654321", "abcdefgh", "qwertyuiop", "aaaaaaaa", "abababab", "12341234"),
        *("        ", "\u00a0\u3000 \t\n\u2003\u2009\u200a", "a       b"),
        *("password\u200b", "pass\u200bword", "p\u00e1ssword", "\u202epassword"),
        # Listed words of many languages, with digits and signs at their ends.
        *("Password2026", "Summer2026!", "Sommer2026", "passwort1", "Passwort!1", "letmein1234"),
        *(
            "hunter22",
            "contrase\u00f1a",
            "\u043f\u0430\u0440\u043e\u043b\u044c123",
            "2026-Fr\u00fchling",
        ),
        *("Pa55w0rd!", "$ommer2026", "1loveyou2026", "Johanna2012"),
        # Keys in a row, dates, and few letters among digits.
        *(
            "qwertz123",
            "\u0439\u0446\u0443\u043a\u0435\u043d\u0433\u0448",
            "2026ytrewq",
            "abcdefgh1",
        ),
        *("20261128", "28.11.2026", "4915112345678", "AB20091205", "aaaaaaa1"),
    ],
)
def test_common_passwords_and_patterns_are_refused(password: str) -> None:
    assert validate_password(password) == TOO_COMMON


def test_every_listed_password_is_refused() -> None:
    package = resources.files("slotlock.auth.password_policy")
    packed = package.joinpath("common_passwords.txt.gz").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    assert len(lines) > 18_000
    assert [line for line in lines if validate_password(f"{line}2026") != TOO_COMMON] == []


@pytest.mark.parametrize(
    "password",
    ["adabyron1815", "ADA.BYRON@school", "x-lovelace-x", "Zoe\u0308 1815 x", "my slotlock login"],
)
def test_a_password_does_not_contain_what_is_known_of_the_user(password: str) -> None:
    name = "Ada Lovelace Zo\u00eb1815"
    email = "adabyron@x.test" if "byron1" in password else "ada.byron@x.test"
    assert validate_password(password, name, email) == CONTAINS_KNOWN_WORD


@pytest.mark.parametrize("password", ["rosebudgarden9", "primrose and thorn", "Martina waits"])
def test_a_short_name_inside_another_word_is_no_name(password: str) -> None:
    assert validate_password(password, "Rose Mart", "tina@x.test") is None


@pytest.mark.parametrize("password", ["Rose-2026-!", "a rose in 2026", "x rosemart-42 x"])
def test_a_name_is_refused_as_a_word_and_a_long_one_anywhere(password: str) -> None:
    assert validate_password(password, "Rose Mart", "rosema@x.test") == CONTAINS_KNOWN_WORD


@pytest.mark.parametrize("character", ["x", "\ufdfa", "4", "@", "\u01d6", "\U0001f389"])
def test_the_longest_password_takes_no_long_time(character: str) -> None:
    started_at = time.thread_time()
    validate_password(character * 127 + "y", "Rose Mart", "rose@x.test")
    assert time.thread_time() - started_at < 0.5


def test_a_password_is_not_an_address_with_a_short_local_part() -> None:
    assert validate_password("Ada@School.example", "Al", "ada@school.example") == (
        CONTAINS_KNOWN_WORD
    )


async def test_a_password_does_not_contain_an_address_that_was_pasted(auth: Auth) -> None:
    local_part = new_email().partition("@")[0]
    outcome = await accounts.register(auth, NAME, f"\u200b{local_part}@x.test", f"{local_part}!")
    assert outcome == InvalidInput((FieldProblem("password", CONTAINS_KNOWN_WORD),))


@pytest.mark.parametrize("text", ["a\u0300" * 30_000, "a " * 30_000])
async def test_the_check_of_a_password_takes_no_long_name_or_address(
    auth: Auth, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    normalize, lengths = unicodedata.normalize, list[int]()

    def record(form: Literal["NFC", "NFKC"], unnormalized: str) -> str:
        lengths.append(len(unnormalized))
        return normalize(form, unnormalized[:MAX_NORMALIZED_LENGTH])

    monkeypatch.setattr(unicodedata, "normalize", record)
    outcome = await accounts.register(auth, text, f"{text}@x.test", PASSWORD)
    assert isinstance(outcome, InvalidInput)
    assert [problem.field for problem in outcome.problems] == ["name", "email"]
    validate_password(PASSWORD, text, f"{text}@x.test")
    assert sum(lengths) < 20 * MAX_NORMALIZED_LENGTH


@pytest.mark.parametrize(
    "password", [PASSWORD, "correct horse", "Tr0ub4dor&3", "\u00fc" * 3 + "kl-9x"]
)
def test_long_passwords_of_any_characters_are_accepted(password: str) -> None:
    # Words of fewer than four letters occur in too many of them.
    assert validate_password(password, "Tr ub", "hor@x.test") is None


@pytest.mark.parametrize("password", ["x7-Kqz!", "x7-Kqz!1" * 16 + "x"])
def test_a_password_has_8_to_128_characters(password: str) -> None:
    assert validate_password(password) == WRONG_LENGTH


@pytest.mark.parametrize("weak", WEAK_PASSWORDS)
async def test_no_door_accepts_a_weak_password(auth: Auth, ada: User, weak: str) -> None:
    session = await open_session(auth, ada)
    caller = await caller_of(auth, session)
    admin = Caller(ada.id, Role.ADMIN, "session", auth.now())
    created = await account_admin.create_invited_user(
        auth, admin, NAME, new_email(), [], Role.MEMBER
    )
    assert isinstance(created, account_admin.UserCreated)
    invitation = await invite_user(auth, created.user, admin)
    reset = await create_password_reset(auth, ada)
    assert invitation is not None
    assert reset is not None
    outcomes = [
        await accounts.register(auth, NAME, new_email(), weak),
        await accounts.create_user(auth, NAME, new_email(), weak, Role.ADMIN),
        await accounts.change_password(auth, caller, PASSWORD, weak),
        await set_password(auth, invitation.token, weak),
        await set_password(auth, reset.token, weak),
        await account_admin.replace_password(auth, ada.id, weak),
    ]
    expected = validate_password(weak, NAME)
    assert expected is not None
    for outcome, field in zip(
        outcomes, ["password", "password", "newPassword", *["password"] * 3], strict=True
    ):
        assert outcome == InvalidInput((FieldProblem(field, expected),))
    # The tokens are unused.
    for token in (invitation.token, reset.token):
        assert isinstance(await set_password(auth, token, NEW_PASSWORD), SignedInSession)


async def test_a_user_with_a_weak_password_from_before_still_signs_in(auth: Auth) -> None:
    email, password_hash = new_email(), await auth.password_hasher.hash("password")
    await auth.repositories.users.insert("Ada", email, Role.MEMBER, password_hash, auth.now())
    assert isinstance(await accounts.login(auth, email, "password"), SignedInSession)


@pytest.mark.parametrize("end_feed", [False, True])
async def test_a_new_password_or_the_end_of_all_sessions_ends_the_calendar_feed_on_request(
    auth: Auth, ada: User, end_feed: bool
) -> None:
    session = await open_session(auth, ada)
    caller = await caller_of(auth, session)
    feed = await calendar_tokens.create(auth, caller)
    await accounts.change_password(auth, caller, PASSWORD, NEW_PASSWORD, end_calendar_feed=end_feed)
    assert (await calendar_tokens.user_of(auth, feed.token) is None) is end_feed
    feed = await calendar_tokens.create(auth, caller)
    reset = await create_password_reset(auth, ada)
    assert reset is not None
    await set_password(auth, reset.token, PASSWORD, end_calendar_feed=end_feed)
    assert (await calendar_tokens.user_of(auth, feed.token) is None) is end_feed
    feed = await calendar_tokens.create(auth, caller)
    admin = Caller(UserId("a" * 24), Role.ADMIN, "session", auth.now())
    await account_admin.end_sessions(auth, admin, ada.id, end_calendar_feed=end_feed)
    assert (await calendar_tokens.user_of(auth, feed.token) is None) is end_feed


async def register(auth: Auth) -> SignedInSession:
    """Return the first session of a new user."""
    session = await accounts.register(auth, "Ada", f"{secrets.token_hex(8)}@slotlock.test", OLD)
    assert isinstance(session, SignedInSession)
    return session


async def has_session(auth: Auth, session: SignedInSession) -> bool:
    """Return whether the session is open."""
    try:
        return await authenticate(auth, f"Bearer {session.access_token}") is not None
    except BadTokenError:
        return False


async def test_a_reset_token_replaces_the_password_once_and_ends_all_sessions(auth: Auth) -> None:
    session = await register(auth)
    reset = await create_password_reset(auth, session.user)
    assert reset is not None
    assert timedelta(0) < reset.expires_at - auth.now() <= invitations.RESET_TTL
    assert isinstance(await accounts.login(auth, reset.user.login_name, OLD), SignedInSession)
    assert await has_session(auth, session)
    new = await invitations.set_password(auth, reset.token, NEW)
    assert isinstance(new, SignedInSession)
    assert (await has_session(auth, session), await has_session(auth, new)) == (False, True)
    assert await invitations.set_password(auth, reset.token, OLD) == InvalidInvitation()
    assert await accounts.login(auth, reset.user.login_name, OLD) == InvalidCredentials()


async def test_a_banned_user_gets_no_reset_token(auth: Auth) -> None:
    user = (await register(auth)).user
    admin = Caller(UserId("a" * 24), Role.ADMIN, "session", utc_now())
    await groups_and_bans.ban(auth, admin, user.id, None)
    assert await create_password_reset(auth, user) is None


async def test_a_password_set_by_an_operator_ends_all_sessions(auth: Auth) -> None:
    session = await register(auth)
    assert await account_admin.replace_password(auth, session.user.id, NEW) is None
    assert not await has_session(auth, session)
    assert isinstance(await accounts.login(auth, session.user.login_name, NEW), SignedInSession)
    assert await accounts.login(auth, session.user.login_name, OLD) == InvalidCredentials()
