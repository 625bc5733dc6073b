"""New ids. They grow with time, so that what is made later is listed later."""

from bson import ObjectId

from slotlock.domain.booking.booking import BookingId, SlotId, WaitlistEntryId
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.teams.team import TeamId


def new_slot_id() -> SlotId:
    """An id that no slot has."""
    return SlotId(str(ObjectId()))


def new_booking_id() -> BookingId:
    """An id that no booking has."""
    return BookingId(str(ObjectId()))


def new_waitlist_entry_id() -> WaitlistEntryId:
    """An id that no turn in a waiting list has, nor a booking."""
    return WaitlistEntryId(str(ObjectId()))


def new_series_id() -> SeriesId:
    """An id that no series has."""
    return SeriesId(str(ObjectId()))


def new_team_id() -> TeamId:
    """An id that no team has."""
    return TeamId(str(ObjectId()))


def new_campaign_id() -> CampaignId:
    """An id that no campaign has."""
    return CampaignId(str(ObjectId()))
