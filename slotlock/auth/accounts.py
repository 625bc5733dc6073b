"""Accounts: register, sign in, and the roles that operators give."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from email_validator import SPECIAL_USE_DOMAIN_NAMES, EmailNotValidError, validate_email

from slotlock.auth.container import Auth
from slotlock.auth.passwords import MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH, HasherBusyError
from slotlock.auth.sessions import SignedInSession, open_session
from slotlock.domain.shared.text import MAX_NORMALIZED_LENGTH, normalize_nfc
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.user import Caller, Role, User, validate_user_name

# Names that the internet does not serve (.local, .test) are what a school's own network uses, and
# emptying this list is the library's documented way to accept them.
SPECIAL_USE_DOMAIN_NAMES.clear()

# What is shown as nothing, of what the library lets through: two addresses would look the same
# (Default_Ignorable_Code_Point in Unicode, and the blank pattern of Braille).
_INVISIBLE_CHARACTERS = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)

# What the line of passwords in front of a newcomer takes to get shorter.
BUSY_RETRY_AFTER_MS = 5_000


@dataclass(frozen=True, slots=True)
class EmailTaken:
    """Somebody registered with this address before."""

    email: str


@dataclass(frozen=True, slots=True)
class InvalidCredentials:
    """No account has this address and this password; which of the two is wrong is not told.

    `guessed` is false for a password that can be nobody's.
    """

    counts_as_guess: bool = True


@dataclass(frozen=True, slots=True)
class Banned:
    """The person is who they say, and may not come in."""


@dataclass(frozen=True, slots=True)
class TooManyAttempts:
    """Attempts to sign in are throttled, or more are in line than can be served soon."""

    retry_after_ms: int


async def register(
    auth: Auth, name: str, email: str, password: str, user_agent: str | None = None
) -> SignedInSession | EmailTaken | InvalidInput | TooManyAttempts:
    """Create a member's account and sign in. Nobody registers as more than a member."""
    user = await create_user(auth, name, email, password, Role.MEMBER)
    return await open_session(auth, user, user_agent=user_agent) if isinstance(user, User) else user


async def create_user(
    auth: Auth, name: str, email: str, password: str, role: Role
) -> User | EmailTaken | InvalidInput | TooManyAttempts:
    """Create an account with any role: for operators only."""
    name = name.strip()
    address = normalize_email(email)
    problems = {
        "name": validate_user_name(name),
        "email": None if address else "This is not an e-mail address.",
        "password": validate_password(password),
    }
    found = tuple(FieldProblem(field, text) for field, text in problems.items() if text)
    if found or address is None:
        return InvalidInput(found)
    try:
        password_hash = await auth.passwords.hash(password)
    except HasherBusyError:
        return TooManyAttempts(BUSY_RETRY_AFTER_MS)
    user = await auth.users.insert(name, address, role, password_hash, auth.now())
    return user or EmailTaken(address)


async def login(
    auth: Auth, email: str, password: str, user_agent: str | None = None
) -> SignedInSession | InvalidCredentials | Banned | TooManyAttempts:
    """Sign in. An unknown address costs and answers what a wrong password does.

    So does the address of somebody who never set a password. A ban is told only to its person.
    """
    if len(password) > MAX_PASSWORD_LENGTH:  # not worth hashing, whoever asks
        return InvalidCredentials(counts_as_guess=False)
    address = normalize_email(email)
    account = await auth.users.find_with_password_hash(address or "")
    user, password_hash = account or (None, None)
    try:
        matched = await auth.passwords.matches(password, password_hash)
    except HasherBusyError:
        return TooManyAttempts(BUSY_RETRY_AFTER_MS)
    if not matched or user is None:
        return InvalidCredentials()
    return Banned() if user.banned else await open_session(auth, user, password_hash, user_agent)


async def set_role(auth: Auth, email: str, role: Role) -> User | None:
    """Give a person another role, in their open sessions too; None when nobody has the address."""
    return await auth.users.set_role(normalize_email(email) or "", role, None, auth.now())


def normalize_email(email: str) -> str | None:
    """The address as it is kept, lower-case and in Unicode NFC; None when it is none."""
    if len(email) > MAX_NORMALIZED_LENGTH:
        return None
    try:
        valid = validate_email(
            email.strip(" "), check_deliverability=False, globally_deliverable=False
        )
    except EmailNotValidError:
        return None
    # Lower case can be written in two ways again where upper case was not: J\u030c, \u01f0.
    kept = normalize_nfc(valid.normalized.lower())
    return None if _INVISIBLE_CHARACTERS.search(kept) else kept


def validate_password(password: str) -> str | None:
    """What is wrong with a password that somebody chose, or None."""
    if MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        return None
    return f"A password has {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters."


@dataclass(frozen=True, slots=True)
class PasswordChanged:
    """The new password is the one that is good, and so many other sessions ended."""

    ended_sessions: int


async def change_password(
    auth: Auth, caller: Caller, current_password: str, new_password: str
) -> PasswordChanged | InvalidCredentials | InvalidInput | TooManyAttempts:
    """Change the password of who knows it. No sign-in or refresh under way outlives this."""
    if problem := validate_password(new_password):
        return InvalidInput((FieldProblem("newPassword", problem),))
    changes = auth.users.password_writer
    old_hash = await changes.find_hash(caller.user_id)
    try:
        matched = len(current_password) <= MAX_PASSWORD_LENGTH and await auth.passwords.matches(
            current_password, old_hash
        )
        if not matched or old_hash is None:
            return InvalidCredentials()
        new_hash = await auth.passwords.hash(new_password)
    except HasherBusyError:
        return TooManyAttempts(BUSY_RETRY_AFTER_MS)
    ended = await changes.update(caller.user_id, caller.session_id, old_hash, new_hash)
    if ended is None:  # another session of theirs was faster: it changed it, or ended this one
        return InvalidCredentials()
    auth.session_streams.session_changed(caller.user_id)
    return PasswordChanged(ended)


Outcome = TypeVar("Outcome")


async def throttle_login(
    auth: Auth,
    email: str | None,
    client_address: str | None,
    action: Callable[[], Awaitable[Outcome]],
) -> Outcome | TooManyAttempts:
    """What comes of the act, unless there were too many before it.

    `email`: of whose account, as it was sent, if it names one. `address`: where it comes from.
    """
    attempt = await auth.login_throttle.start_attempt(normalize_email(email or ""), client_address)
    if attempt.retry_after_ms:
        return TooManyAttempts(attempt.retry_after_ms)
    try:
        outcome = await action()
    except BaseException:
        await auth.login_throttle.refund(attempt)
        raise
    if was_rejected_before_hashing(outcome):
        await auth.login_throttle.refund(attempt)
    elif isinstance(outcome, InvalidCredentials | EmailTaken):
        await auth.login_throttle.record_failure(attempt)
    else:
        auth.login_throttle.record_success(attempt)
    return outcome


def was_rejected_before_hashing(outcome: object) -> bool:
    """Whether it was refused before a password was hashed."""
    match outcome:
        case TooManyAttempts() | InvalidInput() | InvalidCredentials(counts_as_guess=False):
            return True
    return False
