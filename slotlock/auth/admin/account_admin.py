"""Administration of accounts: create, edit and erase them, set roles, end sessions."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from slotlock.auth.accounts import (
    ENDED_SIGN_INS,
    EmailTaken,
    distrusted_since,
    notice_mails,
)
from slotlock.auth.admin.groups_and_bans import change_user, find_user
from slotlock.auth.container import Auth
from slotlock.auth.email_verification import email_changed_mails
from slotlock.auth.invitations import (
    INVITATION_TTL,
    create_password_reset,
    invitation_mail,
    invite_user,
    retry_failed_mail,
    was_recently_mailed,
)
from slotlock.auth.password_policy.rules import validate_password
from slotlock.auth.tokens import new_code
from slotlock.domain.booking.booking_refusals import UserNotFound
from slotlock.domain.notifications.mail_kinds import PASSWORD_CHANGED
from slotlock.domain.shared.declare import outcome, shown
from slotlock.domain.shared.problems import Problem, ProblemCode
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.unchanged import UNCHANGED, Unchanged, new_or_current
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.user_files.user_file import split_list_name
from slotlock.domain.users.account_admin_rules import (
    AdminRequired,
    CannotEraseSelf,
    LastAdmin,
    SelfRegistered,
    account_change_refusal,
    grant_refusal,
    is_own_account,
    role_refusal,
    sign_in_change_refusal,
)
from slotlock.domain.users.dependents import GuardianRefusal, validate_guardians
from slotlock.domain.users.email_addresses import (
    INVALID_EMAIL,
    INVALID_USERNAME,
    normalize_email,
    normalize_username,
)
from slotlock.domain.users.groups import clean_groups, validate_groups
from slotlock.domain.users.user import (
    Caller,
    Role,
    User,
    UserId,
    normalize_phone,
    validate_phone,
    validate_user_name,
)
from slotlock.infrastructure.mongo.users.account_admin_writer import InvitedUser, LoginNameTaken
from slotlock.infrastructure.mongo.users.privacy import Erasure
from slotlock.infrastructure.mongo.users.user_documents import new_login_name

WHEN_IT_EXPIRES = "When the token expires."


@outcome
class UserCreated:
    """A new account whose user has no password yet."""

    user: User = shown("The new user.")
    invitation_token: str | None = shown(
        "The token with which the user sets their first password (`setPassword`). Only this "
        "response contains it. Null for a user without a login name."
    )
    invitation_expires_at: datetime = shown(WHEN_IT_EXPIRES)


@outcome
class UserInvited:
    """A user without a password was invited to set one."""

    user: User = shown("The invited user.")
    invitation_token: str = shown(
        "The token with which the user sets their first password (`setPassword`). Only this "
        "response contains it, and earlier tokens no longer work."
    )
    invitation_expires_at: datetime = shown(WHEN_IT_EXPIRES)


@outcome
class PasswordResetCreated:
    """A user can replace a password that they forgot."""

    user: User = shown("The user, whose old password works until then.")
    reset_token: str = shown(
        "The token with which the user sets the new password (`setPassword`), once; all sessions "
        "of the user end then. Only this response contains it, and earlier tokens no longer work."
    )
    reset_expires_at: datetime = shown(WHEN_IT_EXPIRES)


@outcome
class UserUpdated:
    """The user was changed."""

    user: User = shown("The changed user.")


@outcome
class UserSessionsEnded:
    """All sessions of the user ended, with their streams and sockets."""

    user: User = shown("The user, who can sign in again.")
    ended_sessions: int = shown("How many sessions were open.")
    ended_sign_ins: int = shown(ENDED_SIGN_INS, default=0)


CreateUserOutcome = (
    UserCreated | EmailTaken | AdminRequired | UserNotFound | SelfRegistered | InvalidInput
)
InviteUserOutcome = UserInvited | UserNotFound | AdminRequired | InvalidInput
ResetPasswordOutcome = PasswordResetCreated | UserNotFound | InvalidInput
UpdateUserOutcome = (
    UserUpdated | UserNotFound | EmailTaken | AdminRequired | SelfRegistered | InvalidInput
)
SetRoleOutcome = User | UserNotFound | LastAdmin | SelfRegistered | InvalidInput
EndSessionsOutcome = UserSessionsEnded | UserNotFound | AdminRequired


async def create_invited_user(
    auth: Auth,
    caller: Caller,
    name: str,
    email: str | None,
    groups: Sequence[str],
    role: Role,
    username: str | None = None,
    *,
    by_mail: bool = False,
    guardians: Sequence[UserId] = (),
) -> CreateUserOutcome:
    """Create an account without a password, and invite its user to set one, also in a mail.

    A user with guardians may have no login name, and no invitation then.
    """
    if refusal := role_refusal(caller, role):
        return refusal
    name, family_name = split_list_name(normalize_line(name))
    cleaned_groups = clean_groups(groups)
    login_name, login_problems = _parse_login_name(email, username)
    is_nameless = email is None and username is None
    if is_nameless and not guardians:
        login_problems = {"email": ProblemCode.LOGIN_NAME_MISSING.problem()}
    problems = {
        "name": validate_user_name(name),
        **login_problems,
        "groups": validate_groups(cleaned_groups),
        "guardianIds": validate_guardians(role, guardians),
    }
    if found := FieldProblem.all_of(problems):
        return InvalidInput(found)
    now, (token, hash_) = auth.now(), new_code(auth.tokens)
    expires_at = now + INVITATION_TTL
    new = InvitedUser(
        name,
        login_name or new_login_name(),
        role,
        cleaned_groups,
        None if is_nameless else hash_,
        expires_at,
        tuple(guardians),
        family_name,
    )
    created = await auth.repositories.account_admin_writer.insert(
        new,
        caller.user_id,
        now,
        partial(invitation_mail, token=token, expires_at=expires_at, now=now, caller=caller)
        if by_mail and auth.sends_mail and email is not None
        else None,
    )
    if created is None:
        return _taken(new.login_name)
    if not isinstance(created, User):
        return created
    return UserCreated(created, None if is_nameless else token, expires_at)


async def update_user(
    auth: Auth,
    caller: Caller,
    user_id: UserId,
    name: str | None,
    email: str | None,
    username: str | None = None,
    number: str | Unchanged | None = UNCHANGED,
    guardians: tuple[UserId, ...] | Unchanged = UNCHANGED,
) -> UpdateUserOutcome:
    """Change the name, the login name, the telephone or the guardians; None leaves a name.

    Only admins change the login name of an account whose user has signed in. Their own needs the
    password (`change_email`), if a mail to the new one would lead in: a stolen session must not.
    """
    new_name, family_name = (None, None) if name is None else split_list_name(normalize_line(name))
    phone = normalize_phone(number) if isinstance(number, str) else number
    new_login_name, login_problems = _parse_login_name(email, username)
    problems = {
        "name": None if new_name is None else validate_user_name(new_name),
        **login_problems,
        "phone": validate_phone(phone) if isinstance(phone, str) else None,
    }
    if found := FieldProblem.all_of(problems):
        return InvalidInput(found)

    def refuse(user: User) -> AdminRequired | SelfRegistered | InvalidInput | None:
        refusal: AdminRequired | SelfRegistered | InvalidInput | None
        refusal = grant_refusal(caller, user)
        if not (refusal or isinstance(guardians, Unchanged)):
            problem = validate_guardians(user.role, guardians)
            refusal = InvalidInput((FieldProblem("guardianIds", problem),)) if problem else None
        if refusal or new_login_name in (None, user.login_name):
            return refusal
        if refusal := sign_in_change_refusal(caller, user):
            return refusal
        if not (auth.sends_mail and is_own_account(caller, user)):
            return None
        field = "username" if email is None else "email"
        return InvalidInput((FieldProblem(field, ProblemCode.OWN_LOGIN_NAME.problem()),))

    async def write(
        user: User,
    ) -> UserUpdated | EmailTaken | UserNotFound | GuardianRefusal | None:
        name_after, login_name_after = new_name or user.name, new_login_name or user.login_name
        updated = await auth.repositories.account_admin_writer.update(
            user,
            name_after,
            login_name_after,
            new_or_current(phone, user.phone),
            new_or_current(guardians, user.guardians),
            caller.user_id,
            auth.now(),
            email_changed_mails(auth, user, login_name_after),
            family_name,
        )
        if isinstance(updated, LoginNameTaken):
            return _taken(login_name_after)
        return UserUpdated(updated) if isinstance(updated, User) else updated

    return await change_user(auth, user_id, refuse, write)


def _parse_login_name(
    email: str | None, username: str | None
) -> tuple[str | None, dict[str, Problem | None]]:
    """Return the login name as it is stored, None if there is none, and the problem by field."""
    if username is None:
        login_name = None if email is None else normalize_email(email)
        return login_name, {"email": None if login_name or email is None else INVALID_EMAIL}
    if email is not None:
        return None, {"username": ProblemCode.TWO_LOGIN_NAMES.problem()}
    login_name = normalize_username(username)
    return login_name, {"username": None if login_name else INVALID_USERNAME}


def _taken(login_name: str) -> EmailTaken | InvalidInput:
    if "@" in login_name:
        return EmailTaken(login_name)
    return InvalidInput((FieldProblem("username", ProblemCode.USERNAME_TAKEN.problem()),))


def _without_login_name() -> InvalidInput:
    """Refuse what leads to a password: nobody can sign in with a login name that was made."""
    return InvalidInput((FieldProblem("userId", ProblemCode.LOGIN_NAME_MISSING.problem()),))


async def invite(
    auth: Auth, caller: Caller, user_id: UserId, *, by_mail: bool = False
) -> InviteUserOutcome:
    """Invite one user who has no password to set one, also in a mail once a day.

    An earlier invitation ends. Another mail follows at once if the last one failed.
    """

    async def write(user: User) -> UserInvited | InvalidInput | None:
        if user.has_password or user.banned:
            code = ProblemCode.USER_IS_BANNED if user.banned else ProblemCode.HAS_PASSWORD
            return InvalidInput((FieldProblem("userId", code.problem()),))
        if user.has_made_login_name:
            return _without_login_name()
        if by_mail:
            await retry_failed_mail(auth, user)
        if by_mail and await was_recently_mailed(auth, user):
            return InvalidInput((FieldProblem("sendMail", ProblemCode.RECENTLY_MAILED.problem()),))
        invitation = await invite_user(auth, user, caller, by_mail=by_mail)
        if invitation is None:
            # Also an identity that an import named: its user signs in without an invitation.
            if not await auth.repositories.identities.find_all(user.id):
                return None
            code = ProblemCode.SIGNS_IN_AT_PROVIDER
            return InvalidInput((FieldProblem("userId", code.problem()),))
        return UserInvited(user, invitation.token, invitation.expires_at)

    return await change_user(auth, user_id, partial(account_change_refusal, caller), write)


async def reset_password(auth: Auth, caller: Caller, user_id: UserId) -> ResetPasswordOutcome:
    """Create a token with which another user replaces a password that they forgot. For admins.

    An admin's own password needs the old one: a stolen session must not replace it.
    """
    if user_id == caller.user_id:
        return InvalidInput((FieldProblem("userId", ProblemCode.OWN_PASSWORD.problem()),))
    user = await find_user(auth, user_id)
    if user is None:
        return UserNotFound(user_id)
    if user.has_made_login_name:
        return _without_login_name()
    reset = await create_password_reset(auth, user, caller.user_id)
    if reset is None:
        return InvalidInput((FieldProblem("userId", ProblemCode.USER_IS_BANNED.problem()),))
    return PasswordResetCreated(user, reset.token, reset.expires_at)


async def set_role(
    auth: Auth, caller: Caller | None, user_id: UserId, role: Role, *, vouches: bool = False
) -> SetRoleOutcome:
    """Set the role of a user, also in their open sessions. For admins.

    `caller` is None for the command line, which can vouch for a user who registered.
    """
    by = None if caller is None else caller.user_id

    def refuse(user: User) -> SelfRegistered | InvalidInput | None:
        if user.self_registered and not vouches:
            return SelfRegistered()
        problem = validate_guardians(role, user.guardians)
        return InvalidInput((FieldProblem("role", problem),)) if problem else None

    outcome: SetRoleOutcome = await change_user(
        auth,
        user_id,
        refuse,
        lambda _: auth.repositories.account_admin_writer.set_role(user_id, role, by, auth.now()),
    )
    if isinstance(outcome, User):
        auth.session_streams.session_changed(user_id)
    return outcome


async def end_sessions(
    auth: Auth,
    caller: Caller,
    user_id: UserId,
    *,
    end_calendar_feed: bool = False,
    retain_sign_ins: bool = False,
) -> EndSessionsOutcome:
    """End all sessions of a user, with their streams and sockets, and their new links."""
    user = await find_user(auth, user_id)
    if user is None:
        return UserNotFound(user_id)
    if refusal := account_change_refusal(caller, user):
        return refusal
    ended = await auth.repositories.account_admin_writer.end_sessions(
        user_id,
        caller.user_id,
        auth.now(),
        distrusted_since(auth, retain_sign_ins=retain_sign_ins),
        end_calendar_feed=end_calendar_feed,
    )
    auth.session_streams.session_changed(user_id)
    return UserSessionsEnded(user, ended.sessions, ended.sign_ins)


async def erase_account(
    auth: Auth, caller: Caller, user_id: UserId
) -> Erasure | UserNotFound | CannotEraseSelf | LastAdmin:
    """Replace an account by a placeholder and end its sessions. For admins.

    The caller then has to erase what other collections store about the user.
    """
    if user_id == caller.user_id:
        return CannotEraseSelf()
    outcome = await auth.repositories.erasures.erase_account(user_id, caller.user_id, auth.now())
    if isinstance(outcome, Erasure):
        auth.session_streams.session_changed(user_id)
    return outcome or UserNotFound(user_id)


async def replace_password(
    auth: Auth, user_id: UserId, password: str
) -> UserNotFound | InvalidInput | None:
    """Set a user's password and end all their sessions; None if it is set. For operators."""
    user = await find_user(auth, user_id)
    if user is None:
        return UserNotFound(user_id)
    if problem := validate_password(password, user.name, user.login_name):
        return InvalidInput((FieldProblem("password", problem),))
    password_hash = await auth.password_hasher.hash(password)
    if not await auth.repositories.account_admin_writer.replace_password(
        user_id,
        password_hash,
        auth.now(),
        notice_mails(auth, PASSWORD_CHANGED, user),
        distrusted_since(auth),
    ):
        return UserNotFound(user_id)
    auth.session_streams.session_changed(user_id)
    return None
