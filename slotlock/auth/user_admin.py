"""Administration of users by organizers: list them, set their groups, ban and unban them."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from slotlock.auth.container import Auth
from slotlock.domain.booking.refusals import UserNotFound
from slotlock.domain.shared.pagination import Page
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.administration import AdminRequired, account_change_refusal
from slotlock.domain.users.bans import BanRefusal, ban_refusal, validate_ban_reason
from slotlock.domain.users.groups import clean_groups, validate_groups
from slotlock.domain.users.user import Caller, User, UserFilter, UserId
from slotlock.infrastructure.mongo.client import ConflictError

# An attempt fails only if another change of the user succeeded, or if a later version stored a role
# that this one does not know.
MAX_ATTEMPTS = 20

Changed = TypeVar("Changed")
Refusal = TypeVar("Refusal")


async def find_user(auth: Auth, user_id: UserId) -> User | None:
    """Return a user; None if there is none, or if the user was erased."""
    user = (await auth.users.find_many([user_id])).get(user_id)
    return None if user is None or user.erased else user


async def change_user(
    auth: Auth,
    user_id: UserId,
    refuse: Callable[[User], Refusal | None],
    write: Callable[[User], Awaitable[Changed | None]],
) -> Changed | Refusal | UserNotFound:
    """Change a user unless that is refused.

    `write` returns None, and writes nothing, if the user changed meanwhile: then it is repeated.

    Raises:
        ConflictError: every attempt was in vain. Nothing was written.
    """
    for _ in range(MAX_ATTEMPTS):
        user = await find_user(auth, user_id)
        if user is None:
            return UserNotFound(user_id)
        if refusal := refuse(user):
            return refusal
        if (changed := await write(user)) is not None:
            return changed
    raise ConflictError("the user is not as found")


async def list_users(
    auth: Auth, user_filter: UserFilter, first: int, after: str | None
) -> Page[User]:
    """Return the next matching users by e-mail address; `after` is the last address seen."""
    return await auth.users.page(user_filter, first, after)


async def set_groups(
    auth: Auth, caller: Caller, user_id: UserId, groups: Sequence[str]
) -> User | UserNotFound | AdminRequired | InvalidInput:
    """Replace the groups of a user."""
    cleaned = clean_groups(groups)
    if problem := validate_groups(cleaned):
        return InvalidInput((FieldProblem("groups", problem),))
    return await change_user(
        auth,
        user_id,
        partial(account_change_refusal, caller),
        lambda user: auth.users.set_groups(user_id, cleaned, caller.user_id, auth.now(), user.role),
    )


async def ban(
    auth: Auth, caller: Caller, user_id: UserId, reason: str | None
) -> User | UserNotFound | BanRefusal | InvalidInput:
    """Ban a user and end their sessions and streams. Their bookings do not change."""
    reason = normalize_line(reason or "")
    if problem := validate_ban_reason(reason):
        return InvalidInput((FieldProblem("reason", problem),))
    banned: User | UserNotFound | BanRefusal = await change_user(
        auth,
        user_id,
        partial(ban_refusal, caller),
        lambda user: auth.bans.ban(user, caller.user_id, reason or None, auth.now()),
    )
    if isinstance(banned, User):
        auth.session_streams.session_changed(user_id)
    return banned


async def unban(auth: Auth, caller: Caller, user_id: UserId) -> User | UserNotFound | BanRefusal:
    """End the ban of a user; a user who is not banned does not change."""
    return await change_user(
        auth,
        user_id,
        partial(ban_refusal, caller),
        lambda user: auth.bans.unban(user, caller.user_id, auth.now()),
    )
