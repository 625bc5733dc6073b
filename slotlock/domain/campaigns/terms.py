"""Terms: what a campaign asks of everyone who wants a place in one of its slots.

Each slot of a campaign carries a copy, so that the slot's own version guards it: whoever decided
on terms that have changed since cannot write.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NewType

CampaignId = NewType("CampaignId", str)


class CampaignState(StrEnum):
    """Where a campaign is in time: derived from the clock, never stored."""

    UPCOMING = "upcoming"
    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class GroupLimit:
    """At most so many people of one group in one slot.

    A name that ends in a star stands for each group that begins so: `class:*` with a limit of 5
    lets in 5 of every class.
    """

    group: str
    limit: int

    def applies_to(self, group: str) -> bool:
        """Whether this limit is about that group."""
        if self.group.endswith("*"):
            return group.startswith(self.group[:-1])
        return group == self.group


@dataclass(frozen=True, slots=True)
class CampaignTerms:
    """A campaign's rules as each of its slots knows them; a higher `version` is newer.

    `eligible` are sets of groups: a person needs one group of every set. `most` is how many
    bookings a person may have in the campaign.
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

    def state_at(self, now: datetime) -> CampaignState:
        """Upcoming before it opens, open from that instant until the one at which it closes."""
        if now < self.opens_at:
            return CampaignState.UPCOMING
        return CampaignState.OPEN if now < self.closes_at else CampaignState.CLOSED

    def accepts_bookings_at(self, now: datetime) -> bool:
        """Whether places are given at this instant."""
        return self.published and self.state_at(now) is CampaignState.OPEN

    def is_eligible(self, groups: Sequence[str]) -> bool:
        """Whether somebody of these groups may take part."""
        return all(any(group in wanted for group in groups) for wanted in self.eligible_groups)

    @property
    def depends_on_other_bookings(self) -> bool:
        """Whether a person's bookings in other slots count."""
        return self.max_bookings is not None or self.forbid_overlap


def group_limit_for(group: str, limits: Sequence[GroupLimit]) -> int | None:
    """The limit for one group: its own before one with a star, the longest name before others."""
    about = [limit for limit in limits if limit.applies_to(group)]
    if not about:
        return None
    return max(about, key=lambda limit: (limit.group == group, len(limit.group))).limit
