"""New ids. They grow with time, so that newer objects sort after older ones."""

from bson import ObjectId

from slotlock.domain.booking.booking import BookingId, SlotId, WaitlistEntryId
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.teams.team import TeamId


def new_slot_id() -> SlotId:
    """Return an id for a new slot."""
    return SlotId(str(ObjectId()))


def new_booking_id() -> BookingId:
    """Return an id for a new booking."""
    return BookingId(str(ObjectId()))


def new_waitlist_entry_id() -> WaitlistEntryId:
    """Return an id for a new waitlist entry."""
    return WaitlistEntryId(str(ObjectId()))


def new_series_id() -> SeriesId:
    """Return an id for a new series."""
    return SeriesId(str(ObjectId()))


def new_team_id() -> TeamId:
    """Return an id for a new team."""
    return TeamId(str(ObjectId()))


def new_campaign_id() -> CampaignId:
    """Return an id for a new campaign."""
    return CampaignId(str(ObjectId()))
