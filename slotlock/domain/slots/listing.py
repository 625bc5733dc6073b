"""What people look for in the list of slots, and where in it they stand."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from slotlock.domain.booking.slot import SeriesId, SlotKind, SlotStatus
from slotlock.domain.campaigns.terms import CampaignId


class SlotOrder(Enum):
    """By start, and by id among slots that start together."""

    START_ASC = 1
    START_DESC = -1


@dataclass(frozen=True, slots=True)
class SlotFilter:
    """Which slots; a field that is None asks for nothing. Times bound the start, from inclusive."""

    status: SlotStatus = SlotStatus.PUBLISHED
    starts_from: datetime | None = None
    starts_before: datetime | None = None
    text: str | None = None
    kind: SlotKind | None = None
    campaign_id: CampaignId | None = None
    series_id: SeriesId | None = None
    include_unpublished_campaigns: bool = False
    only_with_places_left: bool = False
