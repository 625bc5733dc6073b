"""Administration of users by organizers: list, vouch, set groups, ban and unban."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from slotlock.auth.container import Auth
from slotlock.domain.booking.booking_refusals import UserNotFound
from slotlock.domain.shared.pagination import Page
from slotlock.domain.shared.text import normalize_line
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.account_admin_rules import (
    AdminRequired,
    BanRefusal,
    LastAdmin,
    SelfRegistered,
    account_change_refusal,
    ban_refusal,
    grant_refusal,
    validate_ban_reason,
)
from slotlock.domain.users.groups import clean_groups, validate_groups
from slotlock.domain.users.user import Caller, User, UserFilter, UserGroup, UserId
from slotlock.infrastructure.conflicts import attempts
from slotlock.infrastructure.mongo.client import ConflictError

Changed = TypeVar("Changed")
Refusal = TypeVar("Refusal")


SetGroupsOutcome = User | UserNotFound | AdminRequired | SelfRegistered | InvalidInput
VouchOutcome = User | UserNotFound | AdminRequired
BanOutcome = User | UserNotFound | BanRefusal | InvalidInput
UnbanOutcome = User | UserNotFound | BanRefusal


async def find_user(auth: Auth, user_id: UserId) -> User | None:
    """Return a user; None if there is none, or if the user was erased."""
    user = (await auth.repositories.users.find_many([user_id])).get(user_id)
    return None if user is None or user.erased else user


async def change_user(
    auth: Auth,
    user_id: UserId,
    refuse: Callable[[User], Refusal | None],
    write: Callable[[User], Awaitable[Changed | None]],
) -> Changed | Refusal | UserNotFound:
    """Change a user unless that is refused.

    `write` returns None, and writes nothing, if the user changed meanwhile: then it is repeated. So
    it does, in vain, if a later version stored a role that this one does not know.

    Raises:
        ConflictError: every attempt was in vain. Nothing was written.
    """
    for _ in attempts():
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
    return await auth.repositories.users.page(user_filter, first, after)


async def list_groups(auth: Auth, first: int, after: str | None) -> Page[UserGroup]:
    """Return the next groups that users have, by name; `after` is the last name seen."""
    return await auth.repositories.users.page_of_groups(first, after)


async def set_groups(
    auth: Auth, caller: Caller, user_id: UserId, groups: Sequence[str]
) -> SetGroupsOutcome:
    """Replace the groups of a user."""
    cleaned = clean_groups(groups)
    if problem := validate_groups(cleaned):
        return InvalidInput((FieldProblem("groups", problem),))
    return await change_user(
        auth,
        user_id,
        partial(grant_refusal, caller),
        lambda user: auth.repositories.users.set_groups(
            user_id, cleaned, caller.user_id, auth.now(), user.role
        ),
    )


async def vouch(auth: Auth, caller: Caller, user_id: UserId) -> VouchOutcome:
    """Confirm that a user who registered is who the account says; nothing of theirs changes."""
    return await change_user(
        auth,
        user_id,
        partial(account_change_refusal, caller),
        lambda user: auth.repositories.account_admin_writer.vouch(user, caller.user_id, auth.now()),
    )


async def ban(auth: Auth, caller: Caller, user_id: UserId, reason: str | None) -> BanOutcome:
    """Ban a user and end their sessions and streams, and their new links.

    Their bookings do not change.
    """
    reason = normalize_line(reason or "")
    if problem := validate_ban_reason(reason):
        return InvalidInput((FieldProblem("reason", problem),))
    banned: User | UserNotFound | BanRefusal = await change_user(
        auth,
        user_id,
        partial(ban_refusal, caller),
        lambda user: auth.repositories.bans.ban(user, caller.user_id, reason or None, auth.now()),
    )
    if isinstance(banned, User):
        auth.session_streams.session_changed(user_id)
    return banned


async def ban_by_operator(
    auth: Auth, user_id: UserId, reason: str | None
) -> User | UserNotFound | LastAdmin | InvalidInput:
    """Ban a user as `ban` does, but never the last admin."""
    reason = normalize_line(reason or "")
    if problem := validate_ban_reason(reason):
        return InvalidInput((FieldProblem("reason", problem),))
    bans = auth.repositories.bans
    return await change_user(
        auth,
        user_id,
        lambda _: None,
        lambda user: bans.ban_unless_last_admin(user, reason or None, auth.now()),
    )


async def unban(auth: Auth, caller: Caller | None, user_id: UserId) -> UnbanOutcome:
    """End the ban of a user; a user who is not banned does not change."""
    by = None if caller is None else caller.user_id
    return await change_user(
        auth,
        user_id,
        partial(ban_refusal, caller),
        lambda user: auth.repositories.bans.unban(user, by, auth.now()),
    )
