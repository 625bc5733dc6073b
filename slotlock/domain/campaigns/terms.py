"""Campaign terms: the rules for booking a place in any slot of a campaign.

Every slot of a campaign has a copy of the terms. The slot's version therefore protects them too: a
decision on outdated terms cannot be written.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from datetime import datetime
from typing import NewType

from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.value_object import Stored, value_object

CampaignId = NewType("CampaignId", str)

# Two weeks.
MAX_REMINDER_MINUTES = 14 * 24 * 60


class CampaignState(DescribedEnum):
    """Whether a campaign takes bookings at the moment."""

    # It follows from the time, and is never stored.
    UPCOMING = "upcoming", "The campaign has not opened yet."
    OPEN = "open", "The campaign takes bookings if it is published."
    CLOSED = "closed", "The campaign takes no bookings any more."


class SlotAdmission(DescribedEnum):
    """How members get places.

    Organizers can always book.
    """

    ANY = "any", "Members book with `bookSlot` or through the booking queue, with `requestBooking`."
    QUEUE_ONLY = (
        "queue_only",
        "Members get places through the booking queue only, and from the waiting list.",
    )
    DRAW = (
        "draw",
        "Members enter wishes, and places are drawn by lot. Until then only organizers book.",
    )


@value_object
class GroupLimit:
    """The maximum number of users of one group in one slot.

    A name that ends in a star applies to each group with this prefix: `class:*` with a limit of 5
    allows 5 users of every class.
    """

    group: str
    limit: int

    def applies_to(self, group: str) -> bool:
        """Return whether the limit applies to this group."""
        return is_group_of(self.group, group)


def is_group_of(pattern: str, group: str) -> bool:
    """Return whether a group has this name, or the beginning that a pattern such as `5*` names."""
    return group.startswith(pattern[:-1]) if pattern.endswith("*") else group == pattern


def has_group_of(patterns: Iterable[str], groups: Collection[str]) -> bool:
    """Return whether one of these patterns names one of the groups."""
    return any(is_group_of(pattern, group) for pattern in patterns for group in groups)


@value_object
class NoShowLimit:
    """A user with `count` no-shows or more books nothing until `days` after the latest of them."""

    count: int
    days: int


@value_object
class CampaignTerms:
    """The rules of a campaign, copied to each of its slots; a higher `version` is newer.

    A user is eligible if they have at least one group of every set in `eligible_groups`.
    `max_bookings` limits the bookings of one user in the whole campaign. With
    `require_verified_email`, users first verify their address, if they have one.
    `reminder_minutes` before the start of a slot, a mail reminds of it; `opening_mail_hours` before
    the opening, a mail goes to all who may book. None or 0 means no mail. The leaders of slots may
    find and book the users of `leader_groups`, which are names or beginnings of names.
    """

    campaign_id: CampaignId
    version: int
    published: bool
    opens_at: datetime
    closes_at: datetime
    eligible_groups: tuple[tuple[str, ...], ...] = ()
    max_bookings: int | None = None
    forbid_overlap: bool = False
    group_limits: tuple[GroupLimit, ...] = ()
    cancel_until: datetime | None = None
    admission: SlotAdmission = SlotAdmission.ANY
    no_show_limit: NoShowLimit | None = None
    require_verified_email: bool = False
    reminder_minutes: int | None = None
    opening_mail_hours: int | None = None
    leader_groups: tuple[str, ...] = ()
    stored: Stored = field(default=None, compare=False, repr=False)

    def state_at(self, now: datetime) -> CampaignState:
        """Return the state: open from `opens_at`, inclusive, until `closes_at`, exclusive."""
        if now < self.opens_at:
            return CampaignState.UPCOMING
        return CampaignState.OPEN if now < self.closes_at else CampaignState.CLOSED

    def accepts_bookings_at(self, now: datetime) -> bool:
        """Return whether the campaign is published and open."""
        return self.published and self.state_at(now) is CampaignState.OPEN

    def is_eligible(self, groups: Sequence[str]) -> bool:
        """Return whether a user with these groups may book."""
        return all(
            any(group in group_set for group in groups) for group_set in self.eligible_groups
        )

    def names_group(self, group: str) -> bool:
        """Return whether a group decides who may book, or has a limit."""
        is_eligible = any(group in group_set for group_set in self.eligible_groups)
        return is_eligible or group_limit_for(group, self.group_limits) is not None

    @property
    def depends_on_other_bookings(self) -> bool:
        """Return whether a decision needs the user's bookings in other slots."""
        return self.forbid_overlap or self.counts_bookings

    @property
    def counts_bookings(self) -> bool:
        """Return whether a decision counts the user's bookings in the campaign."""
        return self.max_bookings is not None or self.no_show_limit is not None


def group_limit_for(group: str, limits: Sequence[GroupLimit]) -> int | None:
    """Return the limit of a group: an exact name wins over a prefix, then the longest prefix."""
    applicable = [limit for limit in limits if limit.applies_to(group)]
    if not applicable:
        return None
    return max(applicable, key=lambda limit: (limit.group == group, len(limit.group))).limit
