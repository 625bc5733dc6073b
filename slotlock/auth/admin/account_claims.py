"""Claims of accounts that somebody registered, perhaps with the address of another user.

`lock` and then `invite` claim an account. In between, its bookings can be cancelled.
"""

from datetime import datetime
from functools import partial

from slotlock.auth.admin.groups_and_bans import change_user, find_user
from slotlock.auth.container import Auth
from slotlock.auth.invitations import INVITATION_TTL, invitation_mail
from slotlock.auth.tokens import new_code
from slotlock.domain.booking.booking_refusals import UserNotFound
from slotlock.domain.shared.declare import outcome, shown
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.shared.validation import FieldProblem, InvalidInput
from slotlock.domain.users.account_admin_rules import (
    HELD_BOOKINGS,
    HELD_TICKETS,
    HELD_WAITLIST_ENTRIES,
    HELD_WISHES,
    AccountHoldsPlaces,
    HeldPlaces,
    NotSelfRegistered,
)
from slotlock.domain.users.user import Caller, User, UserId


@outcome
class UserClaimed:
    """The account belongs to the user of its address; nobody else can sign in to it."""

    user: User = shown("The user, who has no password and no sessions now.")
    invitation_token: str | None = shown(
        "The token with which the user sets a password (`setPassword`). Null if a mail to the "
        "address has it, and nobody else."
    )
    invitation_expires_at: datetime = shown("When the token expires.")
    bookings: int = shown(HELD_BOOKINGS)
    waitlist_entries: int = shown(HELD_WAITLIST_ENTRIES)
    tickets: int = shown(HELD_TICKETS)
    wishes: int = shown(HELD_WISHES)


ClaimRefusal = UserNotFound | NotSelfRegistered | InvalidInput
ClaimUserOutcome = UserClaimed | AccountHoldsPlaces | ClaimRefusal


async def find_claimable(auth: Auth, user_id: UserId) -> User | ClaimRefusal:
    """Return the user of an account that can be claimed."""
    user = await find_user(auth, user_id)
    return UserNotFound(user_id) if user is None else _claim_refusal(user) or user


async def lock(auth: Auth, user_id: UserId) -> User | ClaimRefusal:
    """End the password, the sessions and every other way into an account."""
    locked: User | ClaimRefusal = await change_user(
        auth, user_id, _claim_refusal, auth.repositories.account_claims.lock
    )
    auth.session_streams.session_changed(user_id)
    return locked


async def invite(
    auth: Auth, caller: Caller, user_id: UserId, held: HeldPlaces
) -> UserClaimed | ClaimRefusal:
    """Invite the user of a locked account, by mail alone if the site sends mail."""
    now, (token, hash_) = auth.now(), new_code(auth.tokens)
    expires_at = now + INVITATION_TTL
    to_mail = partial(invitation_mail, token=token, expires_at=expires_at, now=now, caller=caller)

    async def write(user: User) -> UserClaimed | None:
        is_mailed = auth.sends_mail and user.email is not None
        claimed = await auth.repositories.account_claims.invite(
            user, hash_, expires_at, caller.user_id, now, to_mail if is_mailed else None
        )
        if claimed is None:
            return None
        shown_token = None if is_mailed else token
        places = (held.bookings, held.waitlist_entries, held.tickets, held.wishes)
        return UserClaimed(claimed, shown_token, expires_at, *places)

    return await change_user(auth, user_id, _claim_refusal, write)


def _claim_refusal(user: User) -> NotSelfRegistered | InvalidInput | None:
    if not user.self_registered:
        return NotSelfRegistered()
    if user.banned:
        return InvalidInput((FieldProblem("userId", ProblemCode.USER_IS_BANNED.problem()),))
    return None
