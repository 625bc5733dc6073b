"""Creating the slots of a series in one write."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_refusals import KeyReused, Locked
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.campaign import CampaignNotFound
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.schedule.meetings import MAX_MEETINGS
from slotlock.domain.shared.validation import InvalidInput
from slotlock.domain.slots import series
from slotlock.domain.slots.series import (
    OnConflict,
    SeriesConflicts,
    SeriesCreated,
    SeriesSummary,
    SkippedDate,
)
from slotlock.domain.slots.slot_patch import SlotDraft
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.conflicts import attempts
from slotlock.infrastructure.mongo.ids import new_series_id, new_slot_id
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.write_set import WriteSet, check_written
from slotlock.services import resources
from slotlock.services.commands.commit import locked_refusal
from slotlock.services.commands.idempotency import find_created, to_record
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey, fields_of_draft
from slotlock.services.slots.editing import (
    creation_notes,
    resource_rivals,
    with_campaign_terms,
)

CreateSeriesRefusal = SeriesConflicts | InvalidInput | CampaignNotFound | Locked | KeyReused
CreateSeriesOutcome = SeriesCreated | CreateSeriesRefusal


async def create(
    services: Services,
    draft: SlotDraft,
    rrule: str,
    holidays: Collection[date],
    on_conflict: OnConflict,
    organizer_id: UserId,
    campaign_id: CampaignId | None = None,
    key_text: str | None = None,
) -> CreateSeriesOutcome:
    """Create the slots of a recurrence rule: all of them, or those without a conflict.

    Return the series that the same request with this key created, if there is one.

    Raises:
        CommitUnknownError: MongoDB did not confirm the write in time.
    """
    key = IdempotencyKey.for_creation(
        organizer_id,
        key_text,
        "createSlotSeries",
        fields_of_draft(draft),
        rrule,
        sorted(holidays),
        on_conflict,
        campaign_id,
    )
    series_id = new_series_id()
    ids = [new_slot_id() for _ in range(MAX_MEETINGS)]
    refusal: CreateSeriesRefusal = locked_refusal(ids[0])
    for _ in attempts():
        if stored := await _find_created_series(services, key):
            return stored
        placed = await with_campaign_terms(
            services, replace(draft, series_id=series_id), campaign_id
        )
        if isinstance(placed, CampaignNotFound):
            return placed
        known = await resources.draft_with_resources(services, placed.draft)
        if isinstance(known, InvalidInput):
            return known
        now = services.now()
        slots = series.occurrences_of_draft(known, rrule, holidays, ids, now)
        if isinstance(slots, InvalidInput):
            return slots
        rivals, resource_versions = await resource_rivals(services, [state.slot for state in slots])
        free, conflicts = series.split_conflicts(slots, rivals)
        if not free or (conflicts and on_conflict is OnConflict.STRICT):
            refusal = SeriesConflicts(conflicts)
            break
        skipped = series.skipped_holidays(known, rrule, holidays)
        created = SeriesCreated(series_id, free, conflicts, skipped)
        summary = SeriesSummary.from_created(created)
        changes = WriteSet(
            (),
            idempotency_records=(to_record(key, summary, now),) if key else (),
            new_slots=free,
            preconditions=(*placed.preconditions, *resource_versions),
            audit_notes=creation_notes(free, organizer_id),
        )
        if check_written(await services.slot_writer.commit(changes)):
            return created
    return await _find_created_series(services, key) or refusal


async def _find_created_series(
    services: Services, key: IdempotencyKey | None
) -> SeriesCreated | KeyReused | None:
    """Return the series that a request of the key created, with its slots as they are now."""
    stored = await find_created(services, key, SeriesSummary)
    if stored is None:
        return None
    if isinstance(stored.outcome, KeyReused):
        return stored.outcome
    summary, now = stored.outcome, services.now()
    slots = await services.slots.find_by_series(summary.series_id, now)
    others = await find_conflicting_slots(services, summary.skipped, now)
    return summary.with_slots(slots, others)


async def find_conflicting_slots(
    services: Services, skipped: Sequence[SkippedDate], now: datetime
) -> Mapping[SlotId, SlotState]:
    """Return those of the other slots of skipped dates that still exist."""
    other_ids = {each.other_id for each in skipped}
    found = await asyncio.gather(
        *(services.slots.find(SlotQuery(slot_id, now)) for slot_id in other_ids)
    )
    return {other.id: other for other in found if other is not None}
