"""Verified addresses: a code that was mailed to an address comes back from the account's user.

Only the user who is signed in can send it back. Programs that open the links of mails, and even
send their forms, therefore verify nothing; nor does somebody who registers a stranger's address.
"""

import logging
import secrets
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from slotlock.auth.accounts import (
    EmailTaken,
    InvalidCredentials,
    ServerBusy,
    TooManyAttempts,
    busy_if_overloaded,
    notice_mails,
)
from slotlock.auth.container import Auth
from slotlock.auth.invitations import NO_MAIL, TOKEN_BYTES
from slotlock.auth.password_policy.rules import MAX_PASSWORD_LENGTH
from slotlock.auth.sessions import VerificationMail
from slotlock.auth.tokens import hash_token
from slotlock.domain.notifications.mail_kinds import EMAIL_CHANGED, VERIFY_EMAIL, direct_mail
from slotlock.domain.notifications.outbox import OutboxEntry
from slotlock.domain.shared.declare import outcome, shown
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import strip_blanks
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.email_addresses import INVALID_EMAIL, EmailAddress, normalize_email
from slotlock.domain.users.user import Caller, User
from slotlock.infrastructure.mongo.client import is_unavailable
from slotlock.infrastructure.mongo.users.account_admin_writer import LoginNameTaken

log = logging.getLogger("slotlock.auth")

CODE_TTL = timedelta(hours=24)
INVALID_CODE = ProblemCode.CODE_EXPIRED.problem()
DUE_AT = (
    "When the mail leaves: at once, or up to 15 minutes later if many people request mails in the "
    "same network."
)
HAS_USERNAME = ProblemCode.HAS_USERNAME.problem()


@outcome
class EmailVerificationSent:
    """A mail with a code is on its way."""

    email: EmailAddress = shown("The address that the code verifies.")
    expires_at: datetime = shown("When the code expires.")
    due_at: datetime = shown(DUE_AT)


@outcome
class EmailVerified:
    """The address of the caller is verified."""

    user: User = shown("The caller, with the address.")


RequestVerificationOutcome = EmailVerificationSent | InvalidInput | TooManyAttempts
ChangeEmailOutcome = RequestVerificationOutcome | InvalidCredentials | ServerBusy
VerifyEmailOutcome = EmailVerified | EmailTaken | InvalidInput


async def request_email_verification(
    auth: Auth, caller: Caller, client_address: str | None = None
) -> RequestVerificationOutcome:
    """Mail a code to the address of the caller."""
    user = await _find_caller(auth, caller)
    if user.email_verified:
        return _invalid("email", ProblemCode.EMAIL_VERIFIED.problem())
    # A second code would end the first one, whose mail has its turn.
    waiting = await auth.repositories.email_verifications.find_waiting(user, auth.now())
    if waiting is not None:
        return EmailVerificationSent(user.login_name, *waiting)
    return await _mail_code(auth, user, user.login_name, client_address)


async def mail_first_code(
    auth: Auth, user: User, client_address: str | None = None
) -> VerificationMail:
    """Mail a code to the address of a user who has just registered.

    The account stays whatever happens to the mail, which its user can request again.
    """
    try:
        sent = await _mail_code(auth, user, user.login_name, client_address, is_first=True)
    except Exception as error:
        log.warning("could not queue a mail", exc_info=None if is_unavailable(error) else error)
        return VerificationMail(retry_after_ms=0)
    if isinstance(sent, EmailVerificationSent):
        return VerificationMail(due_at=sent.due_at)
    return VerificationMail(
        retry_after_ms=sent.retry_after_ms if isinstance(sent, TooManyAttempts) else None
    )


@busy_if_overloaded
async def change_email(
    auth: Auth,
    caller: Caller,
    new_email: str,
    current_password: str,
    client_address: str | None = None,
) -> ChangeEmailOutcome:
    """Mail a code to a new address, which replaces the old one as soon as it is verified.

    It needs the password: a stolen session must not lead to a reset by mail. Whether another
    account has the address is said only to those who read its mails.
    """
    user, email = await _find_caller(auth, caller), normalize_email(new_email)
    if email is None:
        return _invalid("newEmail", INVALID_EMAIL)
    if email == user.login_name:
        return _invalid("newEmail", ProblemCode.EMAIL_UNCHANGED.problem())
    if len(current_password) > MAX_PASSWORD_LENGTH:
        return InvalidCredentials(of_caller=True)
    async with auth.password_hasher.permit(client_address, user.id, is_known=True):
        old_hash = await auth.repositories.password_writer.find_hash(user.id)
        if not await auth.password_hasher.matches(current_password, old_hash):
            return InvalidCredentials(of_caller=True)
        return await _mail_code(auth, user, email, client_address)


async def _mail_code(
    auth: Auth, user: User, email: str, client_address: str | None, *, is_first: bool = False
) -> RequestVerificationOutcome:
    if not auth.sends_mail or user.email is None:
        return _invalid("email", HAS_USERNAME if auth.sends_mail else NO_MAIL)
    delay = timedelta()
    if auth.mail_throttle is not None:
        time = await auth.mail_throttle.admit_code(
            user.id, email, client_address, is_first=is_first
        )
        if time.delay is None:
            return TooManyAttempts(time.retry_after_ms)
        delay = time.delay
    now, code = auth.now(), secrets.token_hex(TOKEN_BYTES)
    code_hash, expires_at = hash_token(code), now + CODE_TTL
    mail = direct_mail(
        VERIFY_EMAIL,
        user.id,
        code_hash[:16],
        now,
        user_id=user.id,
        recipient=email,
        data={"code": code},
        expires_at=expires_at,
    )
    mail = replace(mail, due_at=now + delay)
    if not await auth.repositories.email_verifications.save(user, email, code_hash, mail, now):
        return _invalid("email", ProblemCode.EMAIL_CHANGED.problem())
    return EmailVerificationSent(email, expires_at, mail.due_at)


async def verify_email(
    auth: Auth, caller: Caller, code: str, client_address: str | None = None
) -> VerifyEmailOutcome:
    """Verify the address to which the code was mailed. A code works once."""
    code_hash, now = hash_token(strip_blanks(code)), auth.now()
    repository = auth.repositories.email_verifications
    if (found := await repository.find(caller.user_id, code_hash, now)) is None:
        return _invalid("code", INVALID_CODE)
    user, email = found
    mails = email_changed_mails(auth, user, email)
    verified = await repository.verify(user, email, code_hash, mails, now)
    if isinstance(verified, LoginNameTaken):
        return EmailTaken(email)
    if verified is None:
        return _invalid("code", INVALID_CODE)
    if auth.mail_throttle is not None:
        is_first = user.self_registered and not user.email_verified and email == user.login_name
        await auth.mail_throttle.refund_answered(client_address, is_first=is_first)
    return EmailVerified(verified)


def email_changed_mails(auth: Auth, before: User, login_name: str) -> Sequence[OutboxEntry]:
    """Return the mail to the old address of a user who gets another one."""
    if before.login_name == login_name:
        return ()
    return notice_mails(auth, EMAIL_CHANGED, before, recipient=before.email)


async def _find_caller(auth: Auth, caller: Caller) -> User:
    return (await auth.repositories.users.find_many([caller.user_id]))[caller.user_id]


def _invalid(field: str, problem: Problem) -> InvalidInput:
    return InvalidInput((FieldProblem(field, problem),))
