"""Administration of accounts: create, edit and erase them, set roles, end sessions."""

import secrets
from collections.abc import Sequence
from functools import partial

from slotlock.auth.accounts import (
    BUSY_RETRY_AFTER_MS,
    EmailTaken,
    TooManyAttempts,
)
from slotlock.auth.container import Auth
from slotlock.auth.invitations import (
    INVITATION_TTL,
    TOKEN_BYTES,
    PasswordInvitation,
    invite_user,
)
from slotlock.auth.password_policy.rules import validate_password
from slotlock.auth.passwords import HasherBusyError
from slotlock.auth.tokens import hash_token
from slotlock.auth.user_admin import change_user, find_user
from slotlock.domain.booking.refusals import UserNotFound
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.validation import INVALID_EMAIL, FieldProblem, InvalidInput
from slotlock.domain.shared.values import value_object
from slotlock.domain.users.administration import (
    AdminRequired,
    CannotEraseSelf,
    LastAdmin,
    account_change_refusal,
    role_refusal,
)
from slotlock.domain.users.email_addresses import normalize_email
from slotlock.domain.users.groups import clean_groups, validate_groups
from slotlock.domain.users.user import Caller, Role, User, UserId, validate_user_name
from slotlock.infrastructure.mongo.users.administration import AddressTaken, InvitedUser
from slotlock.infrastructure.mongo.users.erasures import Erasure


@value_object
class UserCreated:
    """A new account, and the invitation with which its user sets a password."""

    user: User
    invitation: PasswordInvitation


@value_object
class UserInvited:
    """A user without a password, and the invitation that replaces earlier ones."""

    user: User
    invitation: PasswordInvitation


@value_object
class UserUpdated:
    """The account as it is now."""

    user: User


@value_object
class SessionsEnded:
    """All sessions of the user ended; this many were open."""

    user: User
    ended_sessions: int


async def create_invited_user(
    auth: Auth, caller: Caller, name: str, email: str, groups: Sequence[str], role: Role
) -> UserCreated | EmailTaken | AdminRequired | InvalidInput:
    """Create an account without a password, and invite its user to set one."""
    if refusal := role_refusal(caller, role):
        return refusal
    name, cleaned_groups = normalize_line(name), clean_groups(groups)
    normalized = normalize_email(email)
    problems = {
        "name": validate_user_name(name),
        "email": None if normalized else INVALID_EMAIL,
        "groups": validate_groups(cleaned_groups),
    }
    field_problems = tuple(FieldProblem(field, text) for field, text in problems.items() if text)
    if field_problems or normalized is None:
        return InvalidInput(field_problems)
    now, token = auth.now(), secrets.token_hex(TOKEN_BYTES)
    expires_at = now + INVITATION_TTL
    new = InvitedUser(name, normalized, role, cleaned_groups, hash_token(token), expires_at)
    user = await auth.administration.insert(new, caller.user_id, now)
    if user is None:
        return EmailTaken(normalized)
    return UserCreated(user, PasswordInvitation(normalized, name, token, expires_at))


async def update_user(
    auth: Auth, caller: Caller, user_id: UserId, name: str | None, email: str | None
) -> UserUpdated | UserNotFound | EmailTaken | AdminRequired | InvalidInput:
    """Change the name or the address of an account; None leaves a field unchanged."""
    new_name = None if name is None else normalize_line(name)
    new_email = None if email is None else normalize_email(email)
    problems = {
        "name": None if new_name is None else validate_user_name(new_name),
        "email": INVALID_EMAIL if email is not None and new_email is None else None,
    }
    if found := tuple(FieldProblem(field, text) for field, text in problems.items() if text):
        return InvalidInput(found)

    async def write(user: User) -> UserUpdated | EmailTaken | None:
        name_after, email_after = new_name or user.name, new_email or user.email
        updated = await auth.administration.update(
            user, name_after, email_after, caller.user_id, auth.now()
        )
        if isinstance(updated, AddressTaken):
            return EmailTaken(email_after)
        return UserUpdated(updated) if updated else None

    return await change_user(auth, user_id, partial(account_change_refusal, caller), write)


async def invite(
    auth: Auth, caller: Caller, user_id: UserId
) -> UserInvited | UserNotFound | AdminRequired | InvalidInput:
    """Invite one user who has no password to set one; an earlier invitation ends."""

    async def write(user: User) -> UserInvited | InvalidInput | None:
        if user.has_password or user.banned:
            problem = "The user is banned." if user.banned else "The user has a password already."
            return InvalidInput((FieldProblem("userId", problem),))
        invitation = await invite_user(auth, user, caller)
        return UserInvited(user, invitation) if invitation else None

    return await change_user(auth, user_id, partial(account_change_refusal, caller), write)


async def set_role(
    auth: Auth, caller: Caller | None, user_id: UserId, role: Role
) -> User | UserNotFound | LastAdmin:
    """Set the role of a user, also in their open sessions. For admins.

    `caller` is None for the command line.
    """
    by = None if caller is None else caller.user_id
    outcome = await auth.administration.set_role(user_id, role, by, auth.now())
    if isinstance(outcome, User):
        auth.session_streams.session_changed(user_id)
    return outcome or UserNotFound(user_id)


async def end_sessions(
    auth: Auth, caller: Caller, user_id: UserId
) -> SessionsEnded | UserNotFound | AdminRequired:
    """End all sessions of a user, with their streams and sockets."""
    user = await find_user(auth, user_id)
    if user is None:
        return UserNotFound(user_id)
    if refusal := account_change_refusal(caller, user):
        return refusal
    ended = await auth.administration.end_sessions(user_id, caller.user_id, auth.now())
    auth.session_streams.session_changed(user_id)
    return SessionsEnded(user, ended)


async def erase_account(
    auth: Auth, caller: Caller, user_id: UserId
) -> Erasure | UserNotFound | CannotEraseSelf | LastAdmin:
    """Replace an account by a placeholder and end its sessions. For admins.

    The caller then has to erase what other collections store about the user.
    """
    if user_id == caller.user_id:
        return CannotEraseSelf()
    outcome = await auth.erasures.erase_account(user_id, caller.user_id, auth.now())
    if isinstance(outcome, Erasure):
        auth.session_streams.session_changed(user_id)
    return outcome or UserNotFound(user_id)


async def replace_password(
    auth: Auth, user_id: UserId, password: str
) -> UserNotFound | InvalidInput | TooManyAttempts | None:
    """Set a user's password and end all their sessions; None if it is set. For operators."""
    user = await find_user(auth, user_id)
    if user is None:
        return UserNotFound(user_id)
    if problem := validate_password(password, user.name, user.email):
        return InvalidInput((FieldProblem("password", problem),))
    try:
        password_hash = await auth.password_hasher.hash(password)
    except HasherBusyError:
        return TooManyAttempts(BUSY_RETRY_AFTER_MS)
    if not await auth.administration.replace_password(user_id, password_hash, auth.now()):
        return UserNotFound(user_id)
    auth.session_streams.session_changed(user_id)
    return None
