"""Mutations with which organizers create, change, publish, cancel and delete slots."""

from typing import Annotated

import strawberry
from strawberry import argument, field

from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.shared import validation
from slotlock.domain.slots import outcomes
from slotlock.domain.users.user import Caller
from slotlock.graphql.campaigns.refusals import CampaignNotFound
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import require_valid_key
from slotlock.graphql.core.enums import SeriesScope
from slotlock.graphql.core.refusals import InvalidInput, KeyReused, Refusal
from slotlock.graphql.core.result_view import ResultView
from slotlock.graphql.slots.inputs.slots import CreateSlotInput, UpdateSlotInput
from slotlock.graphql.slots.refusals import (
    CapacityBelowTaken,
    Locked,
    ResourceTaken,
    SlotCancelled,
    SlotHasBookings,
    SlotNotFound,
    SlotNotPublished,
    present_slot_refusal,
)
from slotlock.graphql.slots.types import Slot
from slotlock.services.slots import deletion, editing

CreateSlotResult = Annotated[
    Slot | InvalidInput | CampaignNotFound | ResourceTaken | Locked | KeyReused,
    strawberry.union("CreateSlotResult", description="The new slot, or a refusal."),
]
UpdateSlotResult = Annotated[
    Slot
    | InvalidInput
    | SlotNotFound
    | SlotCancelled
    | SlotNotPublished
    | CapacityBelowTaken
    | ResourceTaken
    | Locked,
    strawberry.union("UpdateSlotResult", description="The changed slot, or a refusal."),
]


@strawberry.type(description="The slots were deleted.")
class SlotsDeleted:
    slot_ids: list[strawberry.ID] = field(
        description="The ids of the deleted slots, the slot that the request named first."
    )


DeleteSlotResult = Annotated[
    SlotsDeleted | SlotNotFound | SlotHasBookings | Locked,
    strawberry.union("DeleteSlotResult", description="The ids of what was deleted, or a refusal."),
]

CreateSlotArgument = Annotated[CreateSlotInput, argument(description="The slot to create.")]
UpdateSlotArgument = Annotated[UpdateSlotInput, argument(description="The slot and its changes.")]
ScopeArgument = Annotated[
    SeriesScope,
    argument(description="Which slots of the series change: all of them, or none if one cannot."),
]
DeleteScopeArgument = Annotated[
    SeriesScope,
    argument(description="Which slots of the series to delete: all of them, or none if one stays."),
]


@strawberry.type
class SlotMutations:
    @field(description="Create a slot. Organizers only.", graphql_type=CreateSlotResult)
    async def create_slot(self, info: Info, input: CreateSlotArgument) -> Slot | Refusal:  # noqa: A002
        organizer = info.context.require_organizer()
        key = require_valid_key(input.idempotency_key)
        campaign_id = ids.parse_campaign_id(input.campaign_id or "")
        if input.campaign_id is not None and campaign_id is None:
            return CampaignNotFound.for_id(input.campaign_id)
        draft = input.to_draft()
        if isinstance(draft, validation.InvalidInput):
            return InvalidInput.from_domain(draft, ResultView(organizer))
        result = await editing.create(
            info.context.services, draft, organizer.user_id, campaign_id, key
        )
        return _present_result(result, organizer)

    @field(
        description="Change a slot or several slots of a series. Organizers only.",
        graphql_type=UpdateSlotResult,
    )
    async def update_slot(self, info: Info, input: UpdateSlotArgument) -> Slot | Refusal:  # noqa: A002
        organizer = info.context.require_organizer()
        slot_id = ids.parse_slot_id(input.slot_id)
        if slot_id is None:
            return SlotNotFound.for_id(input.slot_id)
        changes = input.to_changes()
        if isinstance(changes, validation.InvalidInput):
            return InvalidInput.from_domain(changes, ResultView(organizer))
        result = await editing.edit(
            info.context.services, slot_id, changes, organizer.user_id, input.scope
        )
        return _present_result(result, organizer)

    @field(
        description="Publish a draft, so that everyone sees the slot. Organizers only.",
        graphql_type=UpdateSlotResult,
    )
    async def publish_slot(
        self,
        info: Info,
        slot_id: Annotated[strawberry.ID, argument(description="The slot to publish.")],
        scope: ScopeArgument = SeriesScope.THIS,
    ) -> Slot | Refusal:
        organizer = info.context.require_organizer()
        parsed_id = ids.parse_slot_id(slot_id)
        if parsed_id is None:
            return SlotNotFound.for_id(slot_id)
        result = await editing.publish(info.context.services, parsed_id, organizer.user_id, scope)
        return _present_result(result, organizer)

    @field(
        description="Cancel a published slot with all its bookings. Everyone sees that it was "
        "cancelled. Organizers only.",
        graphql_type=UpdateSlotResult,
    )
    async def cancel_slot(
        self,
        info: Info,
        slot_id: Annotated[strawberry.ID, argument(description="The slot to cancel.")],
        scope: ScopeArgument = SeriesScope.THIS,
    ) -> Slot | Refusal:
        organizer = info.context.require_organizer()
        parsed_id = ids.parse_slot_id(slot_id)
        if parsed_id is None:
            return SlotNotFound.for_id(slot_id)
        result = await editing.cancel(info.context.services, parsed_id, organizer.user_id, scope)
        return _present_result(result, organizer)

    @field(
        description="Delete a draft, or another slot that nobody has ever booked or waited for. "
        "Subscribers to its availability get one last state with the status CANCELLED. Organizers "
        "only.",
        graphql_type=DeleteSlotResult,
    )
    async def delete_slot(
        self,
        info: Info,
        slot_id: Annotated[strawberry.ID, argument(description="The slot to delete.")],
        scope: DeleteScopeArgument = SeriesScope.THIS,
    ) -> SlotsDeleted | Refusal:
        organizer = info.context.require_organizer()
        parsed_id = ids.parse_slot_id(slot_id)
        if parsed_id is None:
            return SlotNotFound.for_id(slot_id)
        result = await deletion.delete(info.context.services, parsed_id, organizer.user_id, scope)
        outcome = result.outcome
        if isinstance(outcome, outcomes.SlotsDeleted):
            return SlotsDeleted(slot_ids=[ids.slot_global_id(id_) for id_ in outcome.slot_ids])
        return present_slot_refusal(outcome, ResultView(organizer, result.slots))


def _present_result(
    result: CommandResult[editing.CreateSlotOutcome] | CommandResult[outcomes.EditSlotOutcome],
    viewer: Caller,
) -> Slot | Refusal:
    outcome, view = result.outcome, ResultView(viewer, result.slots)
    if isinstance(outcome, outcomes.SlotSaved):
        return Slot.for_outcome(outcome, view)
    return present_slot_refusal(outcome, view)
