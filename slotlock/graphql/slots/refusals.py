"""Refusals about slots themselves and the resources that slots occupy.

Commands on bookings return some of them, too: `Locked`, `SlotNotFound`, `SlotCancelled` and
`SeriesNotFound`. The refusals that only such commands return are in `graphql.booking.refusals`.
"""

from typing import ClassVar, Self, assert_never

import strawberry
from strawberry import field

from slotlock.domain.booking import refusals
from slotlock.domain.booking.refusals import SlotOutcome
from slotlock.domain.campaigns import campaign
from slotlock.domain.shared import validation
from slotlock.domain.slots import outcomes, resources, series, series_dates
from slotlock.graphql.campaigns.refusals import CampaignNotFound
from slotlock.graphql.core.ids import series_global_id, slot_global_id
from slotlock.graphql.core.refusals import InvalidInput, KeyReused, Refusal, RefusalCode
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.core.values import Meeting
from slotlock.graphql.slots.types import Slot


@strawberry.type(description="Another request is using the slot right now.")
class Locked(Refusal):
    slot_id: strawberry.ID = field(description="The id of the slot.")
    retry_after_ms: int = field(description="How long to wait before a retry, in milliseconds.")

    @classmethod
    def from_domain(cls, outcome: refusals.Locked, _view: ResultView) -> Self:
        """Show which slot is locked and when a retry may succeed."""
        return cls(
            code=RefusalCode.LOCKED,
            message="Someone else is booking this slot right now. Please try again.",
            slot_id=slot_global_id(outcome.slot_id),
            retry_after_ms=outcome.retry_after_ms,
        )


@strawberry.type(
    description="The slot does not exist, or the caller may not see it. Nobody can book a draft, "
    "and only an organizer can book a slot of an unpublished campaign, for another user."
)
class SlotNotFound(Refusal):
    slot_id: strawberry.ID = field(description="The id that the request contained.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        """Refuse an id that names no slot."""
        return cls(
            code=RefusalCode.SLOT_NOT_FOUND,
            message="This slot does not exist.",
            slot_id=strawberry.ID(global_id),
        )

    @classmethod
    def from_domain(cls, outcome: refusals.SlotNotFound, _view: ResultView) -> Self:
        """Show that the viewer can use no slot of the id."""
        return cls.for_id(slot_global_id(outcome.slot_id))


@strawberry.type
class RefusalWithSlot(Refusal):
    """A refusal whose only detail is the slot. The schema lists its subclasses only."""

    CODE: ClassVar[RefusalCode]
    MESSAGE: ClassVar[str]
    slot: Slot = field(description="The current state of the slot.")

    @classmethod
    def from_domain(cls, outcome: SlotOutcome, view: ResultView) -> Self:
        """Show the slot."""
        return cls(code=cls.CODE, message=cls.MESSAGE, slot=Slot.for_outcome(outcome, view))


@strawberry.type(description="An organizer cancelled the slot.")
class SlotCancelled(RefusalWithSlot):
    CODE = RefusalCode.SLOT_CANCELLED
    MESSAGE = "This slot was cancelled."


@strawberry.type(
    description="The slot is a draft, so it cannot be cancelled. Drafts can be deleted."
)
class SlotNotPublished(RefusalWithSlot):
    CODE = RefusalCode.SLOT_NOT_PUBLISHED
    MESSAGE = "This slot is a draft. Please delete it instead."


@strawberry.type(
    description="A user has booked the slot or has waited for it, now or earlier, so it cannot be "
    "deleted. A published slot can be cancelled."
)
class SlotHasBookings(RefusalWithSlot):
    CODE = RefusalCode.SLOT_HAS_BOOKINGS
    MESSAGE = "This slot has or had bookings. Please cancel it instead."


@strawberry.type(
    description="Users have booked some of the slots or have waited for them, now or earlier. "
    "Nothing was removed."
)
class SlotsHaveBookings(Refusal):
    slots: list[Slot] = field(description="The slots that have or had bookings, by start.")

    @classmethod
    def from_domain(cls, outcome: series_dates.SlotsHaveBookings, view: ResultView) -> Self:
        """Show the slots that can be cancelled, but not deleted."""
        return cls(
            code=RefusalCode.SLOTS_HAVE_BOOKINGS,
            message="Some of these slots have or had bookings. Nothing was removed.",
            slots=[Slot.from_domain(view.slots[id_], view.viewer) for id_ in outcome.slot_ids],
        )


@strawberry.type(description="The new capacity is lower than the number of taken places.")
class CapacityBelowTaken(Refusal):
    taken: int = field(description="The number of taken places.")
    slot: Slot = field(description="The current state of the slot.")

    @classmethod
    def from_domain(cls, outcome: refusals.CapacityBelowTaken, view: ResultView) -> Self:
        """Show how many places are taken."""
        slot = Slot.for_outcome(outcome, view)
        taken = slot.capacity - slot.remaining
        return cls(
            code=RefusalCode.CAPACITY_BELOW_TAKEN,
            message=f"The capacity must be at least {taken}: that many places are taken.",
            taken=taken,
            slot=slot,
        )


@strawberry.type(description="Another published slot uses the resource at the same time.")
class ResourceTaken(Refusal):
    resource_name: str = field(description="The name of the resource that both slots need.")
    meeting: Meeting = field(description="The first meeting of the slot that overlaps.")
    other: Slot = field(description="The slot that uses the resource.")
    other_meeting: Meeting = field(description="The overlapping meeting of the other slot.")

    @classmethod
    def from_domain(cls, outcome: resources.ResourceTaken, view: ResultView) -> Self:
        """Show which slot uses the resource and when."""
        return cls(
            code=RefusalCode.RESOURCE_TAKEN,
            message=f"Another slot uses {outcome.resource} at that time.",
            resource_name=outcome.resource,
            meeting=Meeting.from_domain(outcome.meeting),
            other=Slot.from_domain(outcome.other, view.viewer),
            other_meeting=Meeting.from_domain(outcome.other_meeting),
        )


@strawberry.type(
    description="The resource is taken on some dates of the series. Nothing was created."
)
class SeriesConflicts(Refusal):
    conflicts: list[ResourceTaken] = field(description="The dates on which it is taken, and why.")

    @classmethod
    def from_domain(cls, outcome: series.SeriesConflicts, view: ResultView) -> Self:
        """Show the dates on which the resource is taken."""
        return cls(
            code=RefusalCode.SERIES_CONFLICTS,
            message="The resource is taken on some dates of the series.",
            conflicts=[ResourceTaken.from_domain(conflict, view) for conflict in outcome.conflicts],
        )


@strawberry.type(description="The series does not exist, or the caller may see none of its slots.")
class SeriesNotFound(Refusal):
    series_id: strawberry.ID = field(description="The id that the request contained.")

    @classmethod
    def for_id(cls, global_id: str) -> Self:
        """Refuse an id that names no series."""
        return cls(
            code=RefusalCode.SERIES_NOT_FOUND,
            message="This series does not exist.",
            series_id=strawberry.ID(global_id),
        )


SlotRefusal = (
    refusals.Locked
    | refusals.SlotNotFound
    | refusals.SlotCancelled
    | outcomes.SlotNotPublished
    | outcomes.SlotHasBookings
    | series_dates.SlotsHaveBookings
    | refusals.SeriesNotFound
    | refusals.CapacityBelowTaken
    | refusals.KeyReused
    | resources.ResourceTaken
    | series.SeriesConflicts
    | campaign.CampaignNotFound
    | validation.InvalidInput
)


def present_slot_refusal(  # noqa: C901 - a case for each refusal
    refusal: SlotRefusal, view: ResultView
) -> Refusal:
    """Show why a slot could not be created, changed or used."""
    match refusal:
        case refusals.Locked():
            return Locked.from_domain(refusal, view)
        case refusals.SlotNotFound():
            return SlotNotFound.from_domain(refusal, view)
        case refusals.SlotCancelled():
            return SlotCancelled.from_domain(refusal, view)
        case outcomes.SlotNotPublished():
            return SlotNotPublished.from_domain(refusal, view)
        case outcomes.SlotHasBookings():
            return SlotHasBookings.from_domain(refusal, view)
        case series_dates.SlotsHaveBookings():
            return SlotsHaveBookings.from_domain(refusal, view)
        case refusals.SeriesNotFound(series_id=series_id):
            return SeriesNotFound.for_id(series_global_id(series_id))
        case refusals.CapacityBelowTaken():
            return CapacityBelowTaken.from_domain(refusal, view)
        case refusals.KeyReused():
            return KeyReused.from_domain(refusal, view)
        case resources.ResourceTaken():
            return ResourceTaken.from_domain(refusal, view)
        case series.SeriesConflicts():
            return SeriesConflicts.from_domain(refusal, view)
        case campaign.CampaignNotFound():
            return CampaignNotFound.from_domain(refusal, view)
        case validation.InvalidInput():
            return InvalidInput.from_domain(refusal, view)
        case _:
            assert_never(refusal)
