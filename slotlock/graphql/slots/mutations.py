"""What organisers do with slots."""

from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.domain.booking import outcomes, refusals
from slotlock.domain.campaigns import campaign
from slotlock.domain.shared import validation
from slotlock.domain.slots import resources
from slotlock.domain.slots.series import SeriesScope
from slotlock.domain.users.user import Caller
from slotlock.graphql.campaigns.types import CampaignNotFound, ResourceTaken
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.refusals import (
    CapacityBelowTaken,
    InvalidInput,
    Locked,
    SlotCancelled,
    SlotNotFound,
)
from slotlock.graphql.slots.inputs import CreateSlotInput, UpdateSlotInput
from slotlock.graphql.slots.types import Slot
from slotlock.services.slots import editing

CreateSlotResult = Annotated[
    Slot | InvalidInput | CampaignNotFound | ResourceTaken | Locked,
    strawberry.union("CreateSlotResult", description="What came of creating a slot."),
]
UpdateSlotResult = Annotated[
    Slot
    | InvalidInput
    | SlotNotFound
    | SlotCancelled
    | CapacityBelowTaken
    | ResourceTaken
    | Locked,
    strawberry.union("UpdateSlotResult", description="What came of changing a slot."),
]

ScopeArgument = Annotated[
    SeriesScope, argument(description="Of a series, which slots it is for, all of them or none.")
]
SlotIdArgument = Annotated[strawberry.ID, argument(description="The slot.")]


@strawberry.type
class SlotMutations:
    @field(description="Create a slot. Organisers only.")
    async def create_slot(
        self,
        info: Info,
        input: Annotated[CreateSlotInput, argument(description="The slot.")],  # noqa: A002
    ) -> CreateSlotResult:
        organiser = info.context.require_organizer
        campaign_id = ids.parse_campaign_id(input.campaign_id or "")
        if input.campaign_id is not None and campaign_id is None:
            return CampaignNotFound.for_id(input.campaign_id)
        outcome = await editing.create(
            info.context.services, input.to_draft(), organiser.user_id, campaign_id
        )
        return _to_create_slot_result(outcome, organiser)

    @field(description="Change a slot. Organisers only.")
    async def update_slot(
        self,
        info: Info,
        input: Annotated[UpdateSlotInput, argument(description="The changes.")],  # noqa: A002
    ) -> UpdateSlotResult:
        organiser = info.context.require_organizer
        slot_id = ids.parse_slot_id(input.slot_id)
        if slot_id is None:
            return SlotNotFound.for_id(input.slot_id)
        desk, changes = info.context.services, input.to_changes()
        viewer = organiser.user_id
        outcome = await editing.edit(desk, slot_id, changes, viewer, input.scope)
        return _to_update_slot_result(outcome, organiser)

    @field(description="Open a draft to everyone. Organisers only.")
    async def publish_slot(
        self, info: Info, slot_id: SlotIdArgument, scope: ScopeArgument = SeriesScope.THIS
    ) -> UpdateSlotResult:
        organiser = info.context.require_organizer
        found = ids.parse_slot_id(slot_id)
        if found is None:
            return SlotNotFound.for_id(slot_id)
        desk = info.context.services
        outcome = await editing.publish(desk, found, organiser.user_id, scope)
        return _to_update_slot_result(outcome, organiser)

    @field(description="Call a slot off for everyone. Organisers only.")
    async def cancel_slot(
        self, info: Info, slot_id: SlotIdArgument, scope: ScopeArgument = SeriesScope.THIS
    ) -> UpdateSlotResult:
        organiser = info.context.require_organizer
        found = ids.parse_slot_id(slot_id)
        if found is None:
            return SlotNotFound.for_id(slot_id)
        desk = info.context.services
        outcome = await editing.cancel(desk, found, organiser.user_id, scope)
        return _to_update_slot_result(outcome, organiser)


def _to_create_slot_result(outcome: editing.CreateSlotOutcome, viewer: Caller) -> CreateSlotResult:
    match outcome:
        case outcomes.SlotSaved():
            return Slot.from_domain(outcome.slot, viewer)
        case validation.InvalidInput():
            return InvalidInput.from_domain(outcome)
        case campaign.CampaignNotFound():
            return CampaignNotFound.for_id(ids.campaign_global_id(outcome.campaign_id))
        case resources.ResourceTaken():
            return ResourceTaken.from_domain(outcome, viewer)
        case refusals.Locked():
            return Locked.from_domain(outcome)
        case _:
            assert_never(outcome)


def _to_update_slot_result(outcome: outcomes.EditSlotOutcome, viewer: Caller) -> UpdateSlotResult:
    match outcome:
        case outcomes.SlotSaved():
            return Slot.from_domain(outcome.slot, viewer)
        case validation.InvalidInput():
            return InvalidInput.from_domain(outcome)
        case refusals.SlotNotFound():
            return SlotNotFound.for_id(ids.slot_global_id(outcome.slot_id))
        case refusals.SlotCancelled():
            return SlotCancelled.from_domain(Slot.from_domain(outcome.slot, viewer))
        case refusals.CapacityBelowTaken():
            return CapacityBelowTaken.from_domain(Slot.from_domain(outcome.slot, viewer))
        case resources.ResourceTaken():
            return ResourceTaken.from_domain(outcome, viewer)
        case refusals.Locked():
            return Locked.from_domain(outcome)
        case _:
            assert_never(outcome)
