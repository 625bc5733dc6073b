"""What stands in the way before a campaign is published."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot import Slot, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.reports.campaign_reports import SomeUsers, UsersWithoutPassword
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.slots.resource_conflicts import ResourceTaken, ResourceUsage


@value_object
class SlotsReadiness:
    """The slots of a campaign that are not cancelled, and those of them with a problem.

    `bookable` is the number of slots that one user can book at most: one of each choice group, and
    none that has started. Drafts count, because they can be published.
    """

    slot_count: int
    places: int
    drafts: tuple[SlotId, ...]
    past: tuple[SlotId, ...]
    taken: tuple[tuple[SlotId, ResourceTaken], ...]
    bookable: int


@value_object
class CampaignReadiness:
    """The state of the slots of a campaign, and of the users who may book them."""

    slots: SlotsReadiness
    eligible: SomeUsers
    without_password: UsersWithoutPassword
    max_bookings: int | None

    @property
    def with_too_few_slots(self) -> SomeUsers:
        """The users who find fewer slots than they may book, or none: all of them, or nobody."""
        needed = self.max_bookings or 1
        return self.eligible if self.slots.bookable < needed else SomeUsers(0, ())


def check_slots(
    slots: Sequence[Slot], rivals: Sequence[SlotState], now: datetime
) -> SlotsReadiness:
    """Check the slots of a campaign; rivals are published slots with the same resources."""
    upcoming = [slot for slot in slots if slot.start > now]
    drafts = [slot for slot in slots if slot.status is SlotStatus.DRAFT]
    # As they would be if they were published.
    published = [replace(slot, status=SlotStatus.PUBLISHED) for slot in drafts]
    usage = ResourceUsage.from_slots(
        [*rivals, *(SlotState(slot, version=0, changed_at=now) for slot in published)]
    )
    conflicts = ((slot.id, usage.conflict_with(slot)) for slot in published)
    choices = {slot.choice_group or slot.id for slot in upcoming}
    return SlotsReadiness(
        len(slots),
        sum(slot.capacity for slot in upcoming),
        tuple(slot.id for slot in drafts),
        tuple(slot.id for slot in slots if slot.start <= now),
        tuple((slot_id, taken) for slot_id, taken in conflicts if taken),
        len(choices),
    )
