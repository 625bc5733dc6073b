"""Filters and order of the list of slots."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from slotlock.domain.booking.slot import SeriesId, SlotKind, SlotStatus
from slotlock.domain.campaigns.terms import CampaignId


class SlotOrder(Enum):
    """The order of slots by start; slots with the same start are in the order of their ids."""

    START_ASC = 1
    START_DESC = -1


@dataclass(frozen=True, slots=True)
class SlotFilter:
    """Which slots to list; None means any. `starts_from` is inclusive, `starts_before` is not."""

    status: SlotStatus = SlotStatus.PUBLISHED
    starts_from: datetime | None = None
    starts_before: datetime | None = None
    text: str | None = None
    kind: SlotKind | None = None
    campaign_id: CampaignId | None = None
    series_id: SeriesId | None = None
    include_unpublished_campaigns: bool = False
    only_with_places_left: bool = False
