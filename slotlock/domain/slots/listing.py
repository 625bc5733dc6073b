"""Filters, order and selected parts of the list of slots."""

from dataclasses import replace
from datetime import datetime
from enum import Enum
from functools import lru_cache

from slotlock.domain.booking.slot import SLOT_FIELDS, SeriesId, Slot, SlotKind, SlotStatus
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.resources.resource import LEADS_AFTER_END
from slotlock.domain.shared.pagination import Position, TitlePosition
from slotlock.domain.shared.sorting import sort_key
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, UserId


class SlotOrder(Enum):
    """The order of slots; slots with the same start or title are in the order of their ids."""

    START_ASC = "start", 1
    START_DESC = "start", -1
    TITLE_ASC = "title", 1
    TITLE_DESC = "title", -1

    def __init__(self, fact: str, direction: int) -> None:
        self.direction = direction  # 1 for ascending, -1 for descending
        # Whether titles decide, rather than starts.
        self.is_by_title = fact == "title"
        # The facts that decide the position of a slot.
        self.facts = frozenset({fact})

    def position_of(self, slot: Slot) -> "SlotPosition":
        """Return the position of a slot in this order."""
        if self.is_by_title:
            return TitlePosition(sort_key(slot.title), slot.id)
        return Position(slot.start, slot.id)


SlotPosition = Position | TitlePosition


@value_object
class SlotFilter:
    """Which slots to list; None means any. The earlier bounds are inclusive, the later ones not.

    Without `include_past`, slots that are over are left out. `meets_from` and `meets_before` find
    slots with a meeting that overlaps the time between them. `bookable_only` leaves out slots that
    nobody can book now; who can book the others depends on the user. `led_by` is the user who leads
    the slots, by `led_resources` as they are now.
    """

    status: SlotStatus = SlotStatus.PUBLISHED
    include_past: bool = False
    starts_from: datetime | None = None
    starts_before: datetime | None = None
    meets_from: datetime | None = None
    meets_before: datetime | None = None
    text: str | None = None
    kind: SlotKind | None = None
    campaign_id: CampaignId | None = None
    series_id: SeriesId | None = None
    resource: str | None = None
    choice_group: str | None = None
    include_unpublished_campaigns: bool = False
    only_with_places_left: bool = False
    bookable_only: bool = False
    led_by: UserId | None = None
    led_resources: tuple[str, ...] = ()

    @property
    def is_narrow(self) -> bool:
        """Whether the filter selects few slots, by a name, an id or a period."""
        names = (
            *(self.text, self.campaign_id, self.series_id, self.resource, self.choice_group),
            self.led_by,
        )
        has_period = self.starts_from is not None and self.starts_before is not None
        return has_period or self.meets_before is not None or any(names)

    def ends_after(self, now: datetime) -> datetime | None:
        """Return the time after which the slots end; None if they may have ended at any time."""
        led_since = None if self.led_by is None else now - LEADS_AFTER_END
        bounds = (None if self.include_past else now, self.meets_from, led_since)
        return max([time for time in bounds if time is not None], default=None)

    @property
    def latest_start(self) -> datetime | None:
        """The time before which the slots start."""
        bounds = [time for time in (self.starts_before, self.meets_before) if time is not None]
        return min(bounds, default=None)


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

    def visible_to(
        self, viewer: Caller | None, facts: frozenset[str] = frozenset()
    ) -> "SlotSelection":
        """Return the selection with more facts, without the parts this viewer never sees."""
        if viewer is None:
            return _visible_to(self, facts, is_anonymous=True, is_organizer=False)
        return _visible_to(self, facts, is_anonymous=False, is_organizer=viewer.is_organizer)


@lru_cache(maxsize=1_000)
def _visible_to(
    selection: SlotSelection, facts: frozenset[str], *, is_anonymous: bool, is_organizer: bool
) -> SlotSelection:
    selection = selection.with_facts(facts)
    if is_anonymous:
        return replace(selection, my_booking=False, my_waitlist_entry=False, booked_by=False)
    if is_organizer or not selection.booked_by:
        return selection
    # A member sees nobody else as the booker of a slot with one place.
    return replace(selection, my_booking=True, booked_by=False)
