"""Accounts: registration, login, roles, and changes of the password."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from slotlock.auth.container import Auth
from slotlock.auth.password_policy.rules import MAX_PASSWORD_LENGTH, validate_password
from slotlock.auth.passwords import HasherBusyError
from slotlock.auth.sessions import SignedInSession, open_session
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.validation import INVALID_EMAIL, FieldProblem, InvalidInput
from slotlock.domain.users.email_addresses import normalize_email
from slotlock.domain.users.user import Caller, Registration, Role, User, validate_user_name
from slotlock.infrastructure.mongo.client import after_write

# The time that a full queue of password hashes takes to shrink.
BUSY_RETRY_AFTER_MS = 5_000


@dataclass(frozen=True, slots=True)
class EmailTaken:
    """An account with this address exists already."""

    email: str


@dataclass(frozen=True, slots=True)
class RegistrationClosed:
    """Nobody can register on this server, or even set a first password with an invitation."""


@dataclass(frozen=True, slots=True)
class InvalidCredentials:
    """The address or the password is wrong; the outcome does not reveal which.

    `counts_as_guess` is false for a password that no account can have.
    """

    counts_as_guess: bool = True


@dataclass(frozen=True, slots=True)
class Banned:
    """The password is right, but the user is banned."""


@dataclass(frozen=True, slots=True)
class TooManyAttempts:
    """The login throttle rejects the attempt, or the queue of password hashes is full."""

    retry_after_ms: int


async def register(
    auth: Auth,
    name: str,
    email: str,
    password: str,
    user_agent: str | None = None,
    client_address: str | None = None,
) -> SignedInSession | RegistrationClosed | EmailTaken | InvalidInput | TooManyAttempts:
    """Create a member's account and open its first session."""
    if auth.registration is not Registration.OPEN:
        return RegistrationClosed()
    created = await _create_user(
        auth, name, email, password, Role.MEMBER, client_address, self_registered=True
    )
    if not isinstance(created, tuple):
        return created
    user, password_hash = created
    with after_write():
        return await open_session(auth, user, password_hash, user_agent)


async def create_user(
    auth: Auth, name: str, email: str, password: str, role: Role
) -> User | EmailTaken | InvalidInput | TooManyAttempts:
    """Create an account with any role. For operators."""
    created = await _create_user(auth, name, email, password, role)
    return created[0] if isinstance(created, tuple) else created


async def _create_user(
    auth: Auth,
    name: str,
    email: str,
    password: str,
    role: Role,
    client_address: str | None = None,
    *,
    self_registered: bool = False,
) -> tuple[User, str] | EmailTaken | InvalidInput | TooManyAttempts:
    """Create an account. Return its user and the hash of the password."""
    name = normalize_line(name)
    normalized_email = normalize_email(email)
    problems = {
        "name": validate_user_name(name),
        "email": None if normalized_email else INVALID_EMAIL,
        "password": validate_password(password, name, normalized_email or ""),
    }
    field_problems = tuple(FieldProblem(field, text) for field, text in problems.items() if text)
    if field_problems or normalized_email is None:
        return InvalidInput(field_problems)
    try:
        password_hash = await auth.password_hasher.hash(password, client_address)
    except HasherBusyError:
        return TooManyAttempts(BUSY_RETRY_AFTER_MS)
    user = await auth.users.insert(
        name, normalized_email, role, password_hash, auth.now(), self_registered=self_registered
    )
    return (user, password_hash) if user else EmailTaken(normalized_email)


async def login(
    auth: Auth,
    email: str,
    password: str,
    user_agent: str | None = None,
    client_address: str | None = None,
) -> SignedInSession | InvalidCredentials | Banned | TooManyAttempts:
    """Open a session for an address and a password.

    Unknown addresses and accounts without a password cost the same time and have the same outcome
    as a wrong password. Only the right password reveals a ban.
    """
    if len(password) > MAX_PASSWORD_LENGTH:
        return InvalidCredentials(counts_as_guess=False)
    account = await auth.users.find_with_password_hash(normalize_email(email) or "")
    user, password_hash = account or (None, None)
    try:
        matches = await auth.password_hasher.matches(password, password_hash, client_address)
    except HasherBusyError:
        return TooManyAttempts(BUSY_RETRY_AFTER_MS)
    if not matches or user is None:
        return InvalidCredentials()
    return Banned() if user.banned else await open_session(auth, user, password_hash, user_agent)


@dataclass(frozen=True, slots=True)
class PasswordChanged:
    """The new password is valid, and this number of other sessions ended."""

    ended_sessions: int


async def change_password(
    auth: Auth,
    caller: Caller,
    current_password: str,
    new_password: str,
    client_address: str | None = None,
    *,
    end_calendar_feed: bool = False,
) -> PasswordChanged | InvalidCredentials | InvalidInput | TooManyAttempts:
    """Change the caller's password and end their other sessions, including logins in progress."""
    user = (await auth.users.find_many([caller.user_id])).get(caller.user_id)
    if user is None:
        return InvalidCredentials()
    if problem := validate_password(new_password, user.name, user.email):
        return InvalidInput((FieldProblem("newPassword", problem),))
    old_hash = await auth.password_writer.find_hash(caller.user_id)
    hasher = auth.password_hasher
    try:
        is_short = len(current_password) <= MAX_PASSWORD_LENGTH
        matches = is_short and await hasher.matches(current_password, old_hash, client_address)
        if not matches or old_hash is None:
            return InvalidCredentials()
        new_hash = await hasher.hash(new_password, client_address, is_urgent=True)
    except HasherBusyError:
        return TooManyAttempts(BUSY_RETRY_AFTER_MS)
    ended_sessions = await auth.password_writer.update(
        caller.user_id,
        caller.session_id,
        old_hash,
        new_hash,
        end_calendar_feed=end_calendar_feed,
    )
    if ended_sessions is None:
        # Another session of the user changed the password first, or ended this session.
        return InvalidCredentials()
    auth.session_streams.session_changed(caller.user_id)
    return PasswordChanged(ended_sessions)


Outcome = TypeVar("Outcome")


async def throttle_login(
    auth: Auth,
    email: str | None,
    client_address: str | None,
    action: Callable[[], Awaitable[Outcome]],
) -> Outcome | TooManyAttempts:
    """Run the action unless the login throttle rejects it, and count how it ended.

    `email` is the address as the client sent it, None if the action names no account.
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
    """Return whether the server rejected an attempt without checking its password."""
    match outcome:
        case TooManyAttempts() | InvalidInput() | RegistrationClosed():
            return True
        case InvalidCredentials(counts_as_guess=False):
            return True
    return False
