"""What organisers do with people: search them, give them groups, ban and unban them."""

from collections.abc import Awaitable, Callable, Sequence

from slotlock.auth.container import Auth
from slotlock.domain.booking.refusals import UserNotFound
from slotlock.domain.shared.pagination import Page
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.bans import BanRefusal, ban_refusal, validate_ban_reason
from slotlock.domain.users.groups import clean_groups, validate_groups
from slotlock.domain.users.user import Caller, User, UserFilter, UserId


async def list_users(
    auth: Auth, user_filter: UserFilter, first: int, after: str | None
) -> Page[User]:
    """The next people that an organiser looks for, by address; `after` is the last one seen."""
    return await auth.users.page(user_filter, first, after)


async def set_groups(
    auth: Auth, caller: Caller, user_id: UserId, groups: Sequence[str]
) -> User | UserNotFound | InvalidInput:
    """Let a person carry these groups and no others."""
    kept = clean_groups(groups)
    if problem := validate_groups(kept):
        return InvalidInput((FieldProblem("groups", problem),))
    written = await auth.users.set_groups(user_id, kept, caller.user_id, auth.now())
    return written or UserNotFound(user_id)


async def ban(
    auth: Auth, caller: Caller, user_id: UserId, reason: str | None
) -> User | UserNotFound | BanRefusal | InvalidInput:
    """Keep a person out, and end their sessions and streams. Their bookings stay."""
    text = (reason or "").strip()
    if problem := validate_ban_reason(text):
        return InvalidInput((FieldProblem("reason", problem),))

    async def write(user: User) -> User | None:
        return await auth.users.bans.ban(user, caller.user_id, text or None, auth.now())

    outcome = await _update_banned(auth, caller, user_id, write)
    if isinstance(outcome, User):
        auth.session_streams.session_changed(user_id)
    return outcome


async def unban(auth: Auth, caller: Caller, user_id: UserId) -> User | UserNotFound | BanRefusal:
    """Let a person in again; one who is not banned stays as they are."""

    async def write(user: User) -> User | None:
        return await auth.users.bans.unban(user, caller.user_id, auth.now())

    return await _update_banned(auth, caller, user_id, write)


async def _update_banned(
    auth: Auth,
    caller: Caller,
    user_id: UserId,
    write: Callable[[User], Awaitable[User | None]],
) -> User | UserNotFound | BanRefusal:
    """What came of it. Who changed since they were looked at is looked at again.

    That ends: each time round somebody else's ban or new role was written.
    """
    while True:
        seen = (await auth.users.find_many([user_id])).get(user_id)
        if seen is None:
            return UserNotFound(user_id)
        if refusal := ban_refusal(caller, seen):
            return refusal
        written = await write(seen)
        if written is not None:
            return written
