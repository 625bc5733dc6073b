"""Filters, order and selected parts of the list of slots."""

from dataclasses import replace
from datetime import datetime
from enum import Enum

from slotlock.domain.booking.slot import SeriesId, SlotKind, SlotStatus
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.shared.values import value_object
from slotlock.domain.slots.fields import SLOT_FIELDS
from slotlock.domain.users.user import Caller


class SlotOrder(Enum):
    """The order of slots by start; slots with the same start are in the order of their ids."""

    START_ASC = 1
    START_DESC = -1


@value_object
class SlotFilter:
    """Which slots to list; None means any. `starts_from` is inclusive, `starts_before` is not."""

    status: SlotStatus = SlotStatus.PUBLISHED
    starts_from: datetime | None = None
    starts_before: datetime | None = None
    text: str | None = None
    kind: SlotKind | None = None
    campaign_id: CampaignId | None = None
    series_id: SeriesId | None = None
    include_unpublished_campaigns: bool = False
    only_with_places_left: bool = False


# Attributes of a slot, and its version.
ALL_FACTS = frozenset({"version", *(field.name for field in SLOT_FIELDS)})
# The facts that decide who may see a slot.
VISIBILITY_FACTS = frozenset({"status", "terms"})
# The facts without which a part cannot be shown.
_FACTS_OF_PARTS = {
    "remaining": frozenset({"status", "terms", "group_limits"}),
    "my_booking": frozenset({"status", "cancellation"}),
    "booked_by": frozenset({"status", "capacity"}),
}


@value_object
class SlotSelection:
    """The facts about a slot, and the parts of its state, that a reader selects.

    Only with `remaining` are the free places those as of now: without expired holds and without
    places that are promised to the waiting list. Without it they are not to be shown.
    """

    remaining: bool = True
    my_booking: bool = True
    my_waitlist_entry: bool = True
    waitlist_length: bool = True
    booked_by: bool = True
    facts: frozenset[str] = ALL_FACTS

    @property
    def needed_facts(self) -> frozenset[str]:
        """The selected facts, and those that the selected parts need."""
        needed = (facts for part, facts in _FACTS_OF_PARTS.items() if getattr(self, part))
        return self.facts.union(*needed)

    @property
    def shows_bookings(self) -> bool:
        """Whether some bookings are selected."""
        return self.my_booking or self.booked_by

    def with_facts(self, facts: frozenset[str]) -> "SlotSelection":
        """Return the selection with more facts."""
        return self if facts <= self.facts else replace(self, facts=self.facts | facts)

    def visible_to(self, viewer: Caller | None) -> "SlotSelection":
        """Return the selection without the parts that this viewer never sees."""
        if viewer is None:
            return replace(self, my_booking=False, my_waitlist_entry=False, booked_by=False)
        if viewer.is_organizer or not self.booked_by:
            return self
        # A member sees nobody else as the booker of a slot with one place.
        return replace(self, my_booking=True, booked_by=False)
