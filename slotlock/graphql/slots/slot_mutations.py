"""Mutations with which organizers create, change, publish, cancel and delete slots."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, TypeVar

import strawberry
from strawberry import argument

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import SlotNotFound
from slotlock.domain.booking.decision import CommandResult
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.domain.shared import validation
from slotlock.domain.users.user import UserId
from slotlock.graphql.context import Info
from slotlock.graphql.core import ids
from slotlock.graphql.core.arguments import require_valid_key
from slotlock.graphql.core.enums import SeriesScope
from slotlock.graphql.core.outcomes import Result, ResultView, refuse_id
from slotlock.graphql.slots.holiday_lists import load_holidays
from slotlock.graphql.slots.inputs import CreateSlotInput, UpdateSlotInput
from slotlock.graphql.slots.slot_results import CREATE_SLOT, DELETE_SLOT, UPDATE_SLOT
from slotlock.services.container import Services
from slotlock.services.slots import deletion, editing

Outcome = TypeVar("Outcome")

CreateSlotArgument = Annotated[CreateSlotInput, argument(description="The slot to create.")]
UpdateSlotArgument = Annotated[UpdateSlotInput, argument(description="The slot and its changes.")]
ScopeArgument = Annotated[
    SeriesScope,
    argument(description="Which slots of the series change: all of them, or none if one cannot."),
]
CancelReasonArgument = Annotated[
    str | None,
    argument(
        description="Why, in one line of at most 200 characters. Everyone who sees the slot can "
        "read it, and mails about the cancellation have it."
    ),
]
DeleteScopeArgument = Annotated[
    SeriesScope,
    argument(description="Which slots of the series to delete: all of them, or none if one stays."),
]


@strawberry.type
class SlotMutations:
    @CREATE_SLOT.mutation("Create a slot. Organizers only.")
    async def create_slot(self, info: Info, input: CreateSlotArgument) -> object:
        organizer = info.context.require_organizer()
        key = require_valid_key(input.idempotency_key)
        campaign_id = ids.parse_campaign_id(input.campaign_id or "")
        if input.campaign_id is not None and campaign_id is None:
            return refuse_id(CampaignNotFound, input.campaign_id)
        holidays = await load_holidays(
            info, input.timetable.holiday_list_id if input.timetable else None
        )
        if isinstance(holidays, validation.InvalidInput):
            return CREATE_SLOT.present(holidays, ResultView(organizer))
        draft = input.to_draft(holidays)
        if isinstance(draft, validation.InvalidInput):
            return CREATE_SLOT.present(draft, ResultView(organizer))
        result = await editing.create(
            info.context.services, draft, organizer.user_id, campaign_id, key
        )
        return CREATE_SLOT.present(result.outcome, ResultView(organizer, result.slots))

    @UPDATE_SLOT.mutation("Change a slot or several slots of a series. Organizers only.")
    async def update_slot(self, info: Info, input: UpdateSlotArgument) -> object:
        organizer = info.context.require_organizer()
        if (slot_id := ids.parse_slot_id(input.slot_id)) is None:
            return refuse_id(SlotNotFound, input.slot_id)
        holidays = await load_holidays(
            info, input.timetable.holiday_list_id if input.timetable else None
        )
        if isinstance(holidays, validation.InvalidInput):
            return UPDATE_SLOT.present(holidays, ResultView(organizer))
        changes = input.to_changes(holidays)
        if isinstance(changes, validation.InvalidInput):
            return UPDATE_SLOT.present(changes, ResultView(organizer))
        result = await editing.edit(
            info.context.services, slot_id, changes, organizer.user_id, input.scope
        )
        return UPDATE_SLOT.present(result.outcome, ResultView(organizer, result.slots))

    @UPDATE_SLOT.mutation("Publish a draft, so that everyone sees the slot. Organizers only.")
    async def publish_slot(
        self,
        info: Info,
        slot_id: Annotated[strawberry.ID, argument(description="The slot to publish.")],
        scope: ScopeArgument = SeriesScope.THIS,
    ) -> object:
        return await _change(info, slot_id, scope, editing.publish, UPDATE_SLOT)

    @UPDATE_SLOT.mutation(
        "Cancel a published slot with all its bookings. Everyone sees that it was "
        "cancelled. Organizers only."
    )
    async def cancel_slot(
        self,
        info: Info,
        slot_id: Annotated[strawberry.ID, argument(description="The slot to cancel.")],
        scope: ScopeArgument = SeriesScope.THIS,
        reason: CancelReasonArgument = None,
    ) -> object:
        cancel = partial(editing.cancel, reason=reason)
        return await _change(info, slot_id, scope, cancel, UPDATE_SLOT)

    @DELETE_SLOT.mutation(
        "Delete a draft, or another slot that nobody has ever booked or waited for. "
        "Subscribers to its availability get one last state with the status CANCELLED. Organizers "
        "only."
    )
    async def delete_slot(
        self,
        info: Info,
        slot_id: Annotated[strawberry.ID, argument(description="The slot to delete.")],
        scope: DeleteScopeArgument = SeriesScope.THIS,
    ) -> object:
        return await _change(info, slot_id, scope, deletion.delete, DELETE_SLOT)


async def _change(
    info: Info,
    global_id: str,
    scope: SeriesScope,
    change: Callable[[Services, SlotId, UserId, SeriesScope], Awaitable[CommandResult[Outcome]]],
    result: Result[Outcome],
) -> object:
    organizer = info.context.require_organizer()
    if (slot_id := ids.parse_slot_id(global_id)) is None:
        return refuse_id(SlotNotFound, global_id)
    changed = await change(info.context.services, slot_id, organizer.user_id, scope)
    return result.present(changed.outcome, ResultView(organizer, changed.slots))
