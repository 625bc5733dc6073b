"""Rules for the administration of accounts: who may change or ban whom, and the words of both."""

from typing import Self

from slotlock.domain.shared.declare import refusal, shown, to_reader
from slotlock.domain.shared.problems import Problem
from slotlock.domain.shared.text import validate_line
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, Role, User, UserId

HELD_BOOKINGS = "How many bookings and holds the account had of slots that have not started."
HELD_WAITLIST_ENTRIES = "In how many waiting lists the account was."
HELD_TICKETS = "How many requests of the account were still queued."
HELD_WISHES = "In how many draws that still collected wishes the account had some."
ERASED_NAME = "Erased user"


@refusal(message="Only an admin can do this.")
class AdminRequired:
    """Only admins can change accounts of organizers and admins, and how a user signs in."""


@refusal(
    message="Somebody registered this account, and nobody has checked that it belongs to its user. "
    "Please vouch for the user first, or let an admin claim the account."
)
class SelfRegistered:
    """Somebody registered the account, and nobody has vouched for the user or claimed it."""


@refusal(message="Nobody has to claim this account: its user is known.")
class NotSelfRegistered:
    """The account is not `selfRegistered`, or no longer: only such an account can be claimed."""


@value_object
class HeldPlaces:
    """How many bookings, entries of waiting lists and queued requests an account has.

    `wishes` counts the draws that still collect wishes, in which it has some.
    """

    bookings: int = 0
    waitlist_entries: int = 0
    tickets: int = 0
    wishes: int = 0

    @property
    def is_empty(self) -> bool:
        """Return whether the account holds nothing."""
        return self == HeldPlaces()


@refusal(
    message="The account has bookings or waits for places. Please choose what becomes of them."
)
class AccountHoldsPlaces:
    """The account to claim has bookings or waits for places: say whether they stay."""

    bookings: int = shown(HELD_BOOKINGS)
    waitlist_entries: int = shown(HELD_WAITLIST_ENTRIES)
    tickets: int = shown(HELD_TICKETS)
    wishes: int = shown(HELD_WISHES)

    @classmethod
    def of(cls, held: HeldPlaces) -> Self:
        """Return the refusal for an account that holds something."""
        return cls(held.bookings, held.waitlist_entries, held.tickets, held.wishes)


@refusal(
    message=to_reader(
        own="You are the last admin. Please make another user an admin first.",
        other="This is the last admin. Please make another user an admin first.",
        about="user_id",
    )
)
class LastAdmin:
    """The user is the last admin, who can neither lose the role nor be erased."""

    user_id: UserId


@refusal(message="You cannot erase your own account. Another admin can.")
class CannotEraseSelf:
    """Admins cannot erase their own account."""


def manageable_roles(caller: Caller | None) -> tuple[Role, ...]:
    """Return the roles of the accounts that a caller may create, change, invite, ban and sign out.

    None is the command line. An organizer must not gain the rights of an admin, for example by an
    invitation that gives its holder the account.
    """
    if caller is None or caller.role is Role.ADMIN:
        return tuple(Role)
    return (Role.MEMBER,) if caller.is_organizer else ()


def is_own_account(caller: Caller | None, user: User) -> bool:
    """Return whether the account is that of the caller."""
    return caller is not None and caller.user_id == user.id


def role_refusal(caller: Caller | None, role: Role) -> AdminRequired | None:
    """Return why the caller cannot administer an account of this role; None if they can."""
    return None if role in manageable_roles(caller) else AdminRequired()


def account_change_refusal(caller: Caller | None, user: User) -> AdminRequired | None:
    """Return why the caller cannot change the user's account; None if they can.

    All that organizers may do to an account asks this, also a file of many. Organizers can change
    their own account as well.
    """
    if caller is not None and caller.is_organizer and is_own_account(caller, user):
        return None
    return role_refusal(caller, user.role)


def grant_refusal(caller: Caller | None, user: User) -> AdminRequired | SelfRegistered | None:
    """Return why the caller cannot give an account a name, an address or groups; None if they can.

    All that gives an account what is meant for its user asks this, also a file of many. An address
    does not prove who registered it.
    """
    refusal = account_change_refusal(caller, user)
    return refusal or (SelfRegistered() if user.self_registered else None)


def may_change_sign_ins(caller: Caller | None) -> bool:
    """Return whether a caller may change how others sign in to an account, as a claim does.

    Only admins may: an organizer must not become a member.
    """
    return caller is None or caller.role is Role.ADMIN


def sign_in_change_refusal(caller: Caller | None, user: User) -> AdminRequired | None:
    """Return why the caller cannot change the login name or add a subject; None if they can.

    A mail to the login name, or a sign-in with the subject, leads into the account. Until somebody
    has signed in, organizers correct what they imported.
    """
    is_refused = user.has_signed_in and not may_change_sign_ins(caller)
    return AdminRequired() if is_refused else None


MAX_BAN_REASON_LENGTH = 200


@refusal(message="You cannot ban or unban your own account.")
class CannotBanSelf:
    """Callers cannot ban or unban their own account."""


BanRefusal = CannotBanSelf | AdminRequired


def ban_refusal(caller: Caller | None, user: User) -> BanRefusal | None:
    """Return why the caller cannot ban or unban the user; None if they can."""
    if is_own_account(caller, user):
        return CannotBanSelf()
    return account_change_refusal(caller, user)


def validate_ban_reason(reason: str) -> Problem | None:
    """Return the problem with the reason for a ban, or None."""
    return validate_line(reason, MAX_BAN_REASON_LENGTH)
