"""Administration of users by organizers: list them, set their groups, ban and unban them."""

from collections.abc import Sequence

from slotlock.auth.container import Auth
from slotlock.domain.booking.refusals import UserNotFound
from slotlock.domain.shared.pagination import Page
from slotlock.domain.shared.text import normalize_name
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.administration import AdminRequired, change_refusal
from slotlock.domain.users.bans import BanRefusal, ban_refusal, validate_ban_reason
from slotlock.domain.users.groups import clean_groups, validate_groups
from slotlock.domain.users.user import Caller, User, UserFilter, UserId


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
    # A retry means that a concurrent change of the role was written, so the loop ends.
    while True:
        user = await _find(auth, user_id)
        if user is None:
            return UserNotFound(user_id)
        if refusal := change_refusal(caller, user):
            return refusal
        changed = await auth.users.set_groups(
            user_id, cleaned, caller.user_id, auth.now(), user.role
        )
        if changed is not None:
            return changed


async def ban(
    auth: Auth, caller: Caller, user_id: UserId, reason: str | None
) -> User | UserNotFound | BanRefusal | InvalidInput:
    """Ban a user and end their sessions and streams. Their bookings do not change."""
    reason = normalize_name(reason or "")
    if problem := validate_ban_reason(reason):
        return InvalidInput((FieldProblem("reason", problem),))
    # A retry means that a concurrent ban or role change was written, so the loop ends.
    while True:
        user = await _load_for_ban(auth, caller, user_id)
        if not isinstance(user, User):
            return user
        banned = await auth.bans.ban(user, caller.user_id, reason or None, auth.now())
        if banned is not None:
            auth.session_streams.session_changed(user_id)
            return banned


async def unban(auth: Auth, caller: Caller, user_id: UserId) -> User | UserNotFound | BanRefusal:
    """End the ban of a user; a user who is not banned does not change."""
    # A retry means that a concurrent ban or role change was written, so the loop ends.
    while True:
        user = await _load_for_ban(auth, caller, user_id)
        if not isinstance(user, User):
            return user
        unbanned = await auth.bans.unban(user, caller.user_id, auth.now())
        if unbanned is not None:
            return unbanned


async def _load_for_ban(
    auth: Auth, caller: Caller, user_id: UserId
) -> User | UserNotFound | BanRefusal:
    user = await _find(auth, user_id)
    return UserNotFound(user_id) if user is None else ban_refusal(caller, user) or user


async def _find(auth: Auth, user_id: UserId) -> User | None:
    user = (await auth.users.find_many([user_id])).get(user_id)
    return None if user is None or user.erased else user
