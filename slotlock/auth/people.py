"""What organisers do with people: search them, give them groups, ban and unban them."""

from collections.abc import Awaitable, Callable, Sequence

from slotlock.auth.auth import Auth
from slotlock.domain.banning import BanRefusal, ban_refusal, reason_problem
from slotlock.domain.groups import groups_problem, normalised
from slotlock.domain.listing import Page
from slotlock.domain.people import Caller, PeopleFilter, User, UserId
from slotlock.domain.refusals import FieldProblem, InvalidInput, PersonNotFound


async def list_people(
    auth: Auth, wanted: PeopleFilter, first: int, after: str | None
) -> Page[User]:
    """The next people that an organiser looks for, by address; `after` is the last one seen."""
    return await auth.users.page(wanted, first, after)


async def set_groups(
    auth: Auth, caller: Caller, user_id: UserId, groups: Sequence[str]
) -> User | PersonNotFound | InvalidInput:
    """Let a person carry these groups and no others."""
    kept = normalised(groups)
    if problem := groups_problem(kept):
        return InvalidInput((FieldProblem("groups", problem),))
    written = await auth.users.set_groups(user_id, kept, caller.user_id, auth.now())
    return written or PersonNotFound(user_id)


async def ban(
    auth: Auth, caller: Caller, user_id: UserId, reason: str | None
) -> User | PersonNotFound | BanRefusal | InvalidInput:
    """Keep a person out, and end their sessions and streams. Their bookings stay."""
    text = (reason or "").strip()
    if problem := reason_problem(text):
        return InvalidInput((FieldProblem("reason", problem),))

    async def write(seen: User) -> User | None:
        return await auth.users.bans.ban(seen, caller.user_id, text or None, auth.now())

    outcome = await _decided(auth, caller, user_id, write)
    if isinstance(outcome, User):
        auth.streams.changed(user_id)
    return outcome


async def unban(auth: Auth, caller: Caller, user_id: UserId) -> User | PersonNotFound | BanRefusal:
    """Let a person in again; one who is not banned stays as they are."""

    async def write(seen: User) -> User | None:
        return await auth.users.bans.unban(seen, caller.user_id, auth.now())

    return await _decided(auth, caller, user_id, write)


async def _decided(
    auth: Auth,
    caller: Caller,
    user_id: UserId,
    write: Callable[[User], Awaitable[User | None]],
) -> User | PersonNotFound | BanRefusal:
    """What came of it. Who changed since they were looked at is looked at again.

    That ends: each time round somebody else's ban or new role was written.
    """
    while True:
        seen = (await auth.users.by_ids([user_id])).get(user_id)
        if seen is None:
            return PersonNotFound(user_id)
        if refusal := ban_refusal(caller, seen):
            return refusal
        written = await write(seen)
        if written is not None:
            return written
