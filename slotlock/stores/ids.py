"""New ids. They grow with time, so that what is made later is listed later."""

from bson import ObjectId

from slotlock.domain.bookings import BookingId, SlotId, WaitlistEntryId
from slotlock.domain.slots import SeriesId
from slotlock.domain.teams import TeamId
from slotlock.domain.terms import CampaignId


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
