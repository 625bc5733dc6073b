"""Accounts: registration, login, roles, and changes of the password."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from slotlock.auth.container import Auth
from slotlock.auth.password_policy.rules import MAX_PASSWORD_LENGTH, validate_password
from slotlock.auth.sessions import SignedInSession, open_session
from slotlock.auth.tokens import new_token_id
from slotlock.domain.booking.booking_refusals import UserNotFound
from slotlock.domain.notifications.mail_kinds import PASSWORD_CHANGED, MailKind, direct_mail
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.shared.declare import RETRY_AFTER_MS, outcome, refusal, shown
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.email_addresses import (
    INVALID_EMAIL,
    INVALID_LOGIN_NAME,
    EmailAddress,
    normalize_email,
    normalize_login_name,
)
from slotlock.domain.users.identity import DISTRUSTED_LINK_AGE
from slotlock.domain.users.user import (
    Caller,
    MailTopic,
    Registration,
    Role,
    User,
    normalize_locale,
    normalize_phone,
    validate_locale,
    validate_phone,
    validate_user_name,
)
from slotlock.infrastructure.fair_scheduler import SchedulerFullError
from slotlock.infrastructure.mongo.client import after_write
from slotlock.infrastructure.mongo.concurrency_limiter import MongoOverloadedError
from slotlock.infrastructure.request_deadline import untimed

if TYPE_CHECKING:
    from slotlock.auth.login_throttle import LoginAttempt  # imports Redis


@refusal(message="This email address already has an account.")
class EmailTaken:
    """The e-mail address already has an account."""

    email: EmailAddress = shown("The e-mail address in its stored form.")


@refusal(message="Registration is closed. Please ask an organizer.")
class RegistrationClosed:
    """Nobody can register on this server (`register`), or even set a first password with an
    invitation (`setPassword`).
    """


# The message of a login does not reveal which of the two values is wrong.
@refusal(message="{sentence}")
class InvalidCredentials:
    """No account has this e-mail address or user name, and this password."""

    # False for a password that no account can have.
    counts_as_guess: bool = True
    of_caller: bool = False

    @property
    def sentence(self) -> str:
        """What is wrong, for a user who is signed in or for one who signs in."""
        if self.of_caller:
            return "Your current password is wrong."
        return "The email address, the user name or the password is wrong."


@refusal(message="Your account is banned. Please contact an organizer.")
class Banned:
    """The credentials are right, but the account is banned."""


@refusal(message="Your account has no password here. Please sign in at your school.")
class PasswordSignInOff:
    """Members sign in at a provider only (`Site.signInProviders`)."""


# The login throttle or the mail throttle rejects the attempt.
@refusal(message="There were too many attempts. Please try again later.")
class TooManyAttempts:
    """Too many sign-in attempts, codes or links by mail: for this account, or from this address."""

    retry_after_ms: int = shown(RETRY_AFTER_MS)


@refusal(message="Very many users are signing in right now. Please try again in a moment.")
class ServerBusy:
    """More users sign in or set passwords than the server can serve in time. Nothing was set."""

    retry_after_ms: int = shown(RETRY_AFTER_MS)


ENDED_SIGN_INS = "How many linked sign-ins at providers ended."


@outcome
class PasswordChanged:
    """The new password replaced the old one."""

    ended_sessions: int = shown("How many other sessions of the caller were ended by the change.")
    ended_sign_ins: int = shown(ENDED_SIGN_INS, default=0)


RegisterOutcome = (
    SignedInSession | RegistrationClosed | EmailTaken | InvalidInput | TooManyAttempts | ServerBusy
)
LoginOutcome = (
    SignedInSession | InvalidCredentials | Banned | TooManyAttempts | PasswordSignInOff | ServerBusy
)
ChangePasswordOutcome = (
    PasswordChanged | InvalidCredentials | InvalidInput | TooManyAttempts | ServerBusy
)

Parameters = ParamSpec("Parameters")
Outcome = TypeVar("Outcome")


def busy_if_overloaded(
    action: Callable[Parameters, Awaitable[Outcome]],
) -> Callable[Parameters, Coroutine[None, None, Outcome | ServerBusy]]:
    """Return ServerBusy if there is no room for a sign-in, or in the queue to MongoDB."""

    @wraps(action)
    async def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Outcome | ServerBusy:
        try:
            return await action(*args, **kwargs)
        except (SchedulerFullError, MongoOverloadedError) as error:
            return ServerBusy(error.retry_after_ms)

    return run


@busy_if_overloaded
async def register(
    auth: Auth,
    name: str,
    email: str,
    password: str,
    user_agent: str | None = None,
    client_address: str | None = None,
) -> RegisterOutcome:
    """Create a member's account and open its first session."""
    if auth.registration is not Registration.OPEN or not auth.password_sign_in:
        return RegistrationClosed()
    account = _new_account(name, email, password, self_registered=True)
    if isinstance(account, InvalidInput):
        return account
    name, email = account
    async with auth.password_hasher.permit(client_address):
        created = await _insert_user(auth, name, email, password, Role.MEMBER, self_registered=True)
        if isinstance(created, EmailTaken):
            return created
        with after_write():
            return await open_session(auth, *created, user_agent)


async def create_user(
    auth: Auth, name: str, login_name: str, password: str, role: Role
) -> User | EmailTaken | InvalidInput:
    """Create an account with any role, and an address or a user name. For operators."""
    account = _new_account(name, login_name, password)
    if isinstance(account, InvalidInput):
        return account
    created = await _insert_user(auth, *account, password, role)
    return created if isinstance(created, EmailTaken) else created[0]


def _new_account(
    name: str, login_name: str, password: str, *, self_registered: bool = False
) -> tuple[str, str] | InvalidInput:
    """Return the name and the login name of a new account in their stored form."""
    name = normalize_line(name)
    normalize = normalize_email if self_registered else normalize_login_name
    normalized = normalize(login_name)
    problems = {
        "name": validate_user_name(name),
        "email": None if normalized else (INVALID_EMAIL if self_registered else INVALID_LOGIN_NAME),
        "password": validate_password(password, name, normalized or ""),
    }
    field_problems = FieldProblem.all_of(problems)
    if field_problems or normalized is None:
        return InvalidInput(field_problems)
    return name, normalized


async def _insert_user(
    auth: Auth,
    name: str,
    login_name: str,
    password: str,
    role: Role,
    *,
    self_registered: bool = False,
) -> tuple[User, str] | EmailTaken:
    """Create an account. Return its user and the hash of the password."""
    password_hash = await auth.password_hasher.hash(password)
    user = await auth.repositories.users.insert(
        name, login_name, role, password_hash, auth.now(), self_registered=self_registered
    )
    return (user, password_hash) if user else EmailTaken(login_name)


@busy_if_overloaded
async def login(
    auth: Auth,
    login_name: str,
    password: str,
    user_agent: str | None = None,
    client_address: str | None = None,
    *,
    is_known: bool = False,
) -> LoginOutcome:
    """Open a session for an address or a user name, and a password.

    Unknown names and accounts without a password cost the same time and have the same outcome
    as a wrong password. Only the right password reveals a ban. Accounts that are known at the
    address go first.
    """
    if len(password) > MAX_PASSWORD_LENGTH:
        return InvalidCredentials(counts_as_guess=False)
    name = normalize_login_name(login_name) or ""
    async with auth.password_hasher.permit(client_address, name, is_known=is_known):
        account = await auth.repositories.users.find_with_password_hash(name)
        user, password_hash = account or (None, None)
        if not await auth.password_hasher.matches(password, password_hash) or user is None:
            return InvalidCredentials()
        if user.banned:
            return Banned()
        if not auth.accepts_password(user):
            return PasswordSignInOff()
        return await open_session(auth, user, password_hash, user_agent)


@busy_if_overloaded
async def change_password(
    auth: Auth,
    caller: Caller,
    current_password: str,
    new_password: str,
    client_address: str | None = None,
    *,
    end_calendar_feed: bool = False,
    retain_sign_ins: bool = False,
) -> ChangePasswordOutcome:
    """Change the caller's password and end their other sessions, including logins in progress."""
    user = (await auth.repositories.users.find_many([caller.user_id])).get(caller.user_id)
    if user is None:
        return InvalidCredentials(of_caller=True)
    if problem := validate_password(new_password, user.name, user.login_name):
        return InvalidInput((FieldProblem("newPassword", problem),))
    if len(current_password) > MAX_PASSWORD_LENGTH:
        return InvalidCredentials(of_caller=True)
    hasher, writer = auth.password_hasher, auth.repositories.password_writer
    async with hasher.permit(client_address, user.id, is_known=True):
        old_hash = await writer.find_hash(caller.user_id)
        if not await hasher.matches(current_password, old_hash) or old_hash is None:
            return InvalidCredentials(of_caller=True)
        new_hash = await hasher.hash(new_password)
        ended = await writer.update(
            caller.user_id,
            caller.session_id,
            old_hash,
            new_hash,
            end_calendar_feed=end_calendar_feed,
            end_links_since=distrusted_since(auth, retain_sign_ins=retain_sign_ins),
            mails=await limited_notices(auth, PASSWORD_CHANGED, user, client_address),
            now=auth.now(),
        )
    if ended is None:
        # Another session of the user changed the password first, or ended this session.
        return InvalidCredentials(of_caller=True)
    auth.session_streams.session_changed(caller.user_id)
    return PasswordChanged(ended.sessions, ended.sign_ins)


async def check_own_password(
    auth: Auth, user: User, password: str, client_address: str | None
) -> InvalidCredentials | None:
    """Return why a password is not that of a user who is signed in; None if it is.

    Raises:
        SchedulerFullError: too many passwords wait.
    """
    if len(password) > MAX_PASSWORD_LENGTH:
        return InvalidCredentials(of_caller=True)
    async with auth.password_hasher.permit(client_address, user.id, is_known=True):
        password_hash = await auth.repositories.password_writer.find_hash(user.id)
        is_right = await auth.password_hasher.matches(password, password_hash)
    return None if is_right else InvalidCredentials(of_caller=True)


def distrusted_since(auth: Auth, *, retain_sign_ins: bool = False) -> datetime | None:
    """Return since when linked sign-ins at providers end with a change; None if they stay."""
    return None if retain_sign_ins else auth.now() - DISTRUSTED_LINK_AGE


def notice_mails(
    auth: Auth,
    kind: MailKind,
    user: User,
    *,
    recipient: str | None = None,
    data: dict[str, str] | None = None,
) -> Sequence[OutboxEntry]:
    """Return the mail about a change of an account, which somebody else may have made."""
    if not auth.sends_mail or user.email is None:
        return ()
    now, version = auth.now(), new_token_id()
    return (
        direct_mail(kind, user.id, version, now, user_id=user.id, recipient=recipient, data=data),
    )


async def limited_notices(
    auth: Auth,
    kind: MailKind,
    user: User,
    client_address: str | None = None,
    *,
    data: dict[str, str] | None = None,
) -> Sequence[OutboxEntry]:
    """Return such a mail, unless too many went to an address that may be that of a stranger."""
    mails = notice_mails(auth, kind, user, data=data)
    if not mails or auth.mail_throttle is None or not user.self_registered:
        return mails
    time = await auth.mail_throttle.admit_notice(user.id, client_address)
    delay = time.delay
    return () if delay is None else [replace(mail, due_at=mail.due_at + delay) for mail in mails]


async def throttle_login(
    auth: Auth,
    login_name: str | None,
    client_address: str | None,
    action: "Callable[[LoginAttempt], Awaitable[Outcome]]",
) -> Outcome | TooManyAttempts:
    """Run the action unless the login throttle rejects it, and count how it ended.

    `login_name` is as the client sent it, None if the action names no account. The action gets
    the attempt.
    """
    throttle = auth.login_throttle
    if throttle is None:
        from slotlock.auth.login_throttle import LoginAttempt

        return await action(LoginAttempt(retry_after_ms=0))
    with untimed():  # Redis has limits of its own; nothing has happened yet
        attempt = await throttle.start_attempt(
            normalize_login_name(login_name or ""), client_address
        )
    if attempt.retry_after_ms:
        return TooManyAttempts(attempt.retry_after_ms)
    try:
        outcome = await action(attempt)
    except BaseException:
        await throttle.refund(attempt)
        raise
    if was_rejected_before_hashing(outcome):
        await throttle.refund(attempt)
    elif isinstance(outcome, InvalidCredentials | EmailTaken):
        await throttle.record_failure(attempt)
    else:
        throttle.record_success(attempt)
    return outcome


def was_rejected_before_hashing(outcome: object) -> bool:
    """Return whether the server rejected an attempt without checking its password."""
    match outcome:
        case TooManyAttempts() | ServerBusy() | InvalidInput() | RegistrationClosed():
            return True
        case InvalidCredentials(counts_as_guess=False):
            return True
    return False


UpdateMeOutcome = User | InvalidInput | UserNotFound


async def set_preferences(
    auth: Auth,
    caller: Caller,
    tag: str | Unchanged | None,
    wants: Mapping[MailTopic, bool],
    number: str | Unchanged | None = UNCHANGED,
) -> UpdateMeOutcome:
    """Set or remove the language and the telephone of the caller, and which mails they want."""
    locale = normalize_locale(tag) if isinstance(tag, str) else tag
    phone = normalize_phone(number) if isinstance(number, str) else number
    problems = {
        "locale": validate_locale(locale) if isinstance(locale, str) else None,
        "phone": validate_phone(phone) if isinstance(phone, str) else None,
    }
    if found := FieldProblem.all_of(problems):
        return InvalidInput(found)
    user = await auth.repositories.users.set_preferences(caller.user_id, locale, wants, phone)
    return user or UserNotFound(caller.user_id)  # erased meanwhile
