"""Creating the slots of a series in one write."""

from collections.abc import Collection
from dataclasses import replace
from datetime import date

from slotlock.domain.booking.refusals import Locked
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.schedule.meetings import MAX_MEETINGS
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.slots import series
from slotlock.domain.slots.editing import SlotDraft
from slotlock.domain.slots.series import OnConflict, SeriesConflicts, SeriesCreated
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.ids import new_series_id, new_slot_id
from slotlock.infrastructure.mongo.slots.change_set import ChangeSet, check_written
from slotlock.services.commands.batches import locked_refusal
from slotlock.services.container import Services
from slotlock.services.slots.editing import (
    MAX_EDIT_ATTEMPTS,
    creation_notes,
    resource_rivals,
    with_campaign_terms,
)

CreateSeriesOutcome = SeriesCreated | SeriesConflicts | InvalidInput | CampaignNotFound | Locked


async def create(
    services: Services,
    draft: SlotDraft,
    rrule: str,
    holidays: Collection[date],
    on_conflict: OnConflict,
    organizer_id: UserId,
    campaign_id: CampaignId | None = None,
) -> CreateSeriesOutcome:
    """Create the slots of a recurrence rule: all of them, or those without a conflict."""
    series_id = new_series_id()
    ids = [new_slot_id() for _ in range(MAX_MEETINGS)]
    for _ in range(MAX_EDIT_ATTEMPTS):
        placed = await with_campaign_terms(
            services, replace(draft, series_id=series_id), campaign_id
        )
        if isinstance(placed, CampaignNotFound):
            return placed
        slots = series.occurrences_of_draft(placed.draft, rrule, holidays, ids, services.now())
        if isinstance(slots, InvalidInput):
            return slots
        rivals, resource_versions = await resource_rivals(services, [state.slot for state in slots])
        free, conflicts = series.split_conflicts(slots, rivals)
        if not free or (conflicts and on_conflict is OnConflict.STRICT):
            return SeriesConflicts(conflicts)
        changes = ChangeSet(
            (),
            new_slots=free,
            preconditions=(*placed.preconditions, *resource_versions),
            audit_notes=creation_notes(free, organizer_id),
        )
        if check_written(await services.slot_writer.commit(changes)):
            return SeriesCreated(series_id, free, conflicts)
    return locked_refusal(ids[0])
