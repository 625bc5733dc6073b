"""Global ids: opaque to clients, a type and its parts to the server."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime, timedelta

import strawberry

from slotlock.domain.admission.tickets import TicketRef
from slotlock.domain.booking.booking import BookingId, SlotId, WaitlistEntry, WaitlistEntryId
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.teams.team import TeamId
from slotlock.domain.users.user import UserId

_SLOT = re.compile(r"slot_([0-9a-f]{24})", re.ASCII)
_BOOKING = re.compile(r"booking_([0-9a-f]{24})([0-9a-f]{24})", re.ASCII)
_USER = re.compile(r"user_([0-9a-f]{24})", re.ASCII)
_CAMPAIGN = re.compile(r"campaign_([0-9a-f]{24})", re.ASCII)
_SERIES = re.compile(r"series_([0-9a-f]{24})", re.ASCII)
_TICKET = re.compile(
    r"ticket_([0-9a-f]{24})([0-9a-f]{24})([0-9a-f]{32})([0-9a-f]{16})([0-9a-f]{11})", re.ASCII
)
_WAITLIST_ENTRY = re.compile(r"waitlistEntry_([0-9a-f]{24})([0-9a-f]{24})", re.ASCII)
_SESSION = re.compile(r"session_([0-9a-f]{24})([0-9a-f]{32})", re.ASCII)
_RESOURCE = re.compile(r"resource_([0-9A-Za-z_-]{1,600}={0,2})", re.ASCII)
_TEAM = re.compile(r"team_([0-9a-f]{24})", re.ASCII)


def slot_global_id(slot_id: SlotId) -> strawberry.ID:
    """Build the global id of a slot."""
    return strawberry.ID(f"slot_{slot_id}")


def booking_global_id(slot_id: SlotId, booking_id: BookingId) -> strawberry.ID:
    """Build the global id of a booking. It contains the slot, whose document holds the booking."""
    return strawberry.ID(f"booking_{slot_id}{booking_id}")


def waitlist_entry_global_id(entry: WaitlistEntry) -> strawberry.ID:
    """Build the global id of a waiting list entry."""
    return strawberry.ID(f"waitlistEntry_{entry.slot_id}{entry.id}")


def user_global_id(user_id: UserId) -> strawberry.ID:
    """Build the global id of a user."""
    return strawberry.ID(f"user_{user_id}")


def team_global_id(team_id: TeamId) -> strawberry.ID:
    """Build the global id of a team."""
    return strawberry.ID(f"team_{team_id}")


def campaign_global_id(campaign_id: CampaignId) -> strawberry.ID:
    """Build the global id of a campaign."""
    return strawberry.ID(f"campaign_{campaign_id}")


def series_global_id(series_id: SeriesId) -> strawberry.ID:
    """Build the global id of a series."""
    return strawberry.ID(f"series_{series_id}")


def resource_global_id(name: str) -> strawberry.ID:
    """Build the global id of a resource. It contains the name, which never changes."""
    return strawberry.ID(f"resource_{urlsafe_b64encode(name.encode()).decode()}")


def parse_resource_id(global_id: str) -> str | None:
    """Return the name of the resource of a global id, or None for an id of another form."""
    match = _RESOURCE.fullmatch(global_id)
    try:
        return urlsafe_b64decode(match[1]).decode() if match else None
    except ValueError:
        return None


def ticket_global_id(ref: TicketRef) -> strawberry.ID:
    """Build the global id of a ticket. It contains all that is needed to find its outcome."""
    requested_at_ms = round(ref.requested_at.timestamp() * 1000)
    return strawberry.ID(
        f"ticket_{ref.slot_id}{ref.requested_by}{ref.key_hash}{ref.request_hash}{requested_at_ms:011x}"
    )


def session_global_id(user_id: UserId, session_key: str) -> strawberry.ID:
    """Build the global id of a session. It contains its user, who alone may see it."""
    return strawberry.ID(f"session_{user_id}{session_key}")


def parse_slot_id(global_id: str) -> SlotId | None:
    """Return the slot of a global id, or None for an id of another form."""
    match = _SLOT.fullmatch(global_id)
    return SlotId(match[1]) if match else None


def parse_booking_id(global_id: str) -> tuple[SlotId, BookingId] | None:
    """Return the slot and the booking of a global id, or None for an id of another form."""
    match = _BOOKING.fullmatch(global_id)
    return (SlotId(match[1]), BookingId(match[2])) if match else None


def parse_waitlist_entry_id(global_id: str) -> tuple[SlotId, WaitlistEntryId] | None:
    """Return the slot and the entry of a global id, or None for an id of another form."""
    match = _WAITLIST_ENTRY.fullmatch(global_id)
    return (SlotId(match[1]), WaitlistEntryId(match[2])) if match else None


def parse_user_id(global_id: str) -> UserId | None:
    """Return the user of a global id, or None for an id of another form."""
    match = _USER.fullmatch(global_id)
    return UserId(match[1]) if match else None


def parse_team_id(global_id: str) -> TeamId | None:
    """Return the team of a global id, or None for an id of another form."""
    match = _TEAM.fullmatch(global_id)
    return TeamId(match[1]) if match else None


def parse_session_id(global_id: str) -> tuple[UserId, str] | None:
    """Return the user and the session key of a global id, or None for an id of another form."""
    match = _SESSION.fullmatch(global_id)
    return (UserId(match[1]), match[2]) if match else None


def parse_campaign_id(global_id: str) -> CampaignId | None:
    """Return the campaign of a global id, or None for an id of another form."""
    match = _CAMPAIGN.fullmatch(global_id)
    return CampaignId(match[1]) if match else None


def parse_series_id(global_id: str) -> SeriesId | None:
    """Return the series of a global id, or None for an id of another form."""
    match = _SERIES.fullmatch(global_id)
    return SeriesId(match[1]) if match else None


def parse_ticket_id(global_id: str) -> TicketRef | None:
    """Return the ticket of a global id, or None for an id of another form."""
    match = _TICKET.fullmatch(global_id)
    if match is None:
        return None
    requested_at = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(match[5], 16))
    return TicketRef(SlotId(match[1]), UserId(match[2]), match[3], match[4], requested_at)
