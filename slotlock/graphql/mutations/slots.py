"""What organisers do with slots."""

from typing import Annotated, assert_never

import strawberry
from strawberry import argument, field

from slotlock.desk import keeping
from slotlock.domain import campaigns, outcomes, resources
from slotlock.domain import refusals as refused
from slotlock.domain.people import Caller
from slotlock.domain.series import SeriesScope
from slotlock.graphql import ids
from slotlock.graphql.context import Info
from slotlock.graphql.types.campaigns import CampaignNotFound, ResourceTaken
from slotlock.graphql.types.refusals import (
    CapacityBelowTaken,
    InvalidInput,
    Locked,
    SlotCancelled,
    SlotNotFound,
)
from slotlock.graphql.types.slot_inputs import CreateSlotInput, UpdateSlotInput
from slotlock.graphql.types.slots import Slot

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
        organiser = info.context.organiser
        campaign_id = ids.campaign_id_of(input.campaign_id or "")
        if input.campaign_id is not None and campaign_id is None:
            return CampaignNotFound.of(input.campaign_id)
        outcome = await keeping.create(
            info.context.desk, input.as_draft(), organiser.user_id, campaign_id
        )
        return _created(outcome, organiser)

    @field(description="Change a slot. Organisers only.")
    async def update_slot(
        self,
        info: Info,
        input: Annotated[UpdateSlotInput, argument(description="The changes.")],  # noqa: A002
    ) -> UpdateSlotResult:
        organiser = info.context.organiser
        slot_id = ids.slot_id_of(input.slot_id)
        if slot_id is None:
            return SlotNotFound.of(input.slot_id)
        desk, changes = info.context.desk, input.changes()
        viewer = organiser.user_id
        outcome = await keeping.edit(desk, slot_id, changes, viewer, input.scope)
        return _kept(outcome, organiser)

    @field(description="Open a draft to everyone. Organisers only.")
    async def publish_slot(
        self, info: Info, slot_id: SlotIdArgument, scope: ScopeArgument = SeriesScope.THIS
    ) -> UpdateSlotResult:
        organiser = info.context.organiser
        found = ids.slot_id_of(slot_id)
        if found is None:
            return SlotNotFound.of(slot_id)
        desk = info.context.desk
        outcome = await keeping.publish(desk, found, organiser.user_id, scope)
        return _kept(outcome, organiser)

    @field(description="Call a slot off for everyone. Organisers only.")
    async def cancel_slot(
        self, info: Info, slot_id: SlotIdArgument, scope: ScopeArgument = SeriesScope.THIS
    ) -> UpdateSlotResult:
        organiser = info.context.organiser
        found = ids.slot_id_of(slot_id)
        if found is None:
            return SlotNotFound.of(slot_id)
        desk = info.context.desk
        outcome = await keeping.call_off(desk, found, organiser.user_id, scope)
        return _kept(outcome, organiser)


def _created(outcome: keeping.Created, organiser: Caller) -> CreateSlotResult:
    match outcome:
        case outcomes.SlotKept():
            return Slot.of(outcome.slot, organiser)
        case refused.InvalidInput():
            return InvalidInput.of(outcome)
        case campaigns.CampaignNotFound():
            return CampaignNotFound.of(ids.campaign_gid(outcome.campaign_id))
        case resources.ResourceTaken():
            return ResourceTaken.of(outcome, organiser)
        case refused.Locked():
            return Locked.of(outcome)
        case _:
            assert_never(outcome)


def _kept(outcome: outcomes.KeepOutcome, organiser: Caller) -> UpdateSlotResult:
    match outcome:
        case outcomes.SlotKept():
            return Slot.of(outcome.slot, organiser)
        case refused.InvalidInput():
            return InvalidInput.of(outcome)
        case refused.SlotNotFound():
            return SlotNotFound.of(ids.slot_gid(outcome.slot_id))
        case refused.SlotCancelled():
            return SlotCancelled.of(Slot.of(outcome.slot, organiser))
        case refused.CapacityBelowTaken():
            return CapacityBelowTaken.of(Slot.of(outcome.slot, organiser))
        case resources.ResourceTaken():
            return ResourceTaken.of(outcome, organiser)
        case refused.Locked():
            return Locked.of(outcome)
        case _:
            assert_never(outcome)
