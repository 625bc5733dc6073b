"""Who did not get a place in a campaign."""

from dataclasses import dataclass

from slotlock.domain.bookings import WaitlistEntry
from slotlock.domain.people import User


@dataclass(frozen=True, slots=True)
class UnplacedUser:
    """Somebody who has no place in any slot of a campaign, and the turns they wait for."""

    user: User
    waitlist_entries: tuple[WaitlistEntry, ...]


@dataclass(frozen=True, slots=True)
class UnplacedUserPage:
    """Some of them, by address; up to which address people were looked at, and if more follow.

    Where nearly everybody has a place, a page ends before it is full.
    """

    items: tuple[UnplacedUser, ...]
    searched_until: str | None
    has_more: bool
