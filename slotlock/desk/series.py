"""Creating the slots of a series: every date is checked, and all are written together."""

from collections.abc import Collection
from dataclasses import replace
from datetime import date

from slotlock.desk.act import locked
from slotlock.desk.desk import Desk
from slotlock.desk.keeping import EDIT_TRIES, created, in_campaign, neighbours
from slotlock.domain import series as rules
from slotlock.domain.campaigns import CampaignNotFound
from slotlock.domain.keeping import SlotDraft
from slotlock.domain.meetings import MAX_MEETINGS
from slotlock.domain.people import UserId
from slotlock.domain.refusals import InvalidInput, Locked
from slotlock.domain.series import OnConflict, SeriesConflicts, SeriesCreated
from slotlock.domain.terms import CampaignId
from slotlock.stores.ids import new_series_id, new_slot_id
from slotlock.stores.writes import Changes

SeriesOutcome = SeriesCreated | SeriesConflicts | InvalidInput | CampaignNotFound | Locked


async def create(
    desk: Desk,
    draft: SlotDraft,
    rrule: str,
    holidays: Collection[date],
    on_conflict: OnConflict,
    by: UserId,
    campaign_id: CampaignId | None = None,
) -> SeriesOutcome:
    """Create the slots that a rule makes of a first one, all or as many as are free."""
    series_id = new_series_id()
    ids = [new_slot_id() for _ in range(MAX_MEETINGS)]
    for _ in range(EDIT_TRIES):
        placed = await in_campaign(desk, replace(draft, series_id=series_id), campaign_id)
        if isinstance(placed, CampaignNotFound):
            return placed
        slots = rules.planned(placed.draft, rrule, holidays, ids, desk.now())
        if isinstance(slots, InvalidInput):
            return slots
        others, seen = await neighbours(desk, slots)
        free, conflicts = rules.without_conflicts(slots, others)
        if not free or (conflicts and on_conflict is OnConflict.STRICT):
            return SeriesConflicts(conflicts)
        guards = (*placed.guards, *seen)
        changes = Changes((), new=free, guards=guards, notes=created(free, by))
        if await desk.writes.commit(changes):
            return SeriesCreated(series_id, free, conflicts)
    return locked(ids[0])
