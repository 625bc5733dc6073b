"""Ids as clients see them: opaque to them, a kind and its parts to us."""

import re
from datetime import UTC, datetime, timedelta

import strawberry

from slotlock.domain.booking.booking import BookingId, SlotId, WaitlistEntry
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.booking.tickets import TicketRef
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
_SESSION = re.compile(r"session_([0-9a-f]{24})([0-9a-f]{32})", re.ASCII)
_TEAM = re.compile(r"team_([0-9a-f]{24})", re.ASCII)


def slot_global_id(slot_id: SlotId) -> strawberry.ID:
    """The id of a slot."""
    return strawberry.ID(f"slot_{slot_id}")


def booking_global_id(slot_id: SlotId, booking_id: BookingId) -> strawberry.ID:
    """The id of a booking. It names the slot, whose document the booking lives in."""
    return strawberry.ID(f"booking_{slot_id}{booking_id}")


def waitlist_entry_global_id(entry: WaitlistEntry) -> strawberry.ID:
    """The id of a turn in a waiting list."""
    return strawberry.ID(f"waiting_{entry.slot_id}{entry.id}")


def user_global_id(user_id: UserId) -> strawberry.ID:
    """The id of a person."""
    return strawberry.ID(f"user_{user_id}")


def team_global_id(team_id: TeamId) -> strawberry.ID:
    """The id of a team."""
    return strawberry.ID(f"team_{team_id}")


def campaign_global_id(campaign_id: CampaignId) -> strawberry.ID:
    """The id of a campaign."""
    return strawberry.ID(f"campaign_{campaign_id}")


def series_global_id(series_id: SeriesId) -> strawberry.ID:
    """The id of a series."""
    return strawberry.ID(f"series_{series_id}")


def ticket_global_id(ref: TicketRef) -> strawberry.ID:
    """The id of a ticket. It names all that finding its answer takes."""
    ms = round(ref.requested_at.timestamp() * 1000)
    return strawberry.ID(
        f"ticket_{ref.slot_id}{ref.requested_by}{ref.key_hash}{ref.request_hash}{ms:011x}"
    )


def session_global_id(user_id: UserId, session_key: str) -> strawberry.ID:
    """The id of a session. It names the person, who alone may see it."""
    return strawberry.ID(f"session_{user_id}{session_key}")


def parse_slot_id(global_id: str) -> SlotId | None:
    """The slot that an id names, if it can name one."""
    match = _SLOT.fullmatch(global_id)
    return SlotId(match[1]) if match else None


def parse_booking_id(global_id: str) -> tuple[SlotId, BookingId] | None:
    """The slot and the booking that an id names, if it can name one."""
    match = _BOOKING.fullmatch(global_id)
    return (SlotId(match[1]), BookingId(match[2])) if match else None


def parse_user_id(global_id: str) -> UserId | None:
    """The person that an id names, if it can name one."""
    match = _USER.fullmatch(global_id)
    return UserId(match[1]) if match else None


def parse_team_id(global_id: str) -> TeamId | None:
    """The team that an id names, if it can name one."""
    match = _TEAM.fullmatch(global_id)
    return TeamId(match[1]) if match else None


def parse_session_id(global_id: str) -> tuple[UserId, str] | None:
    """The person and the key of the session that an id names, if it can name one."""
    match = _SESSION.fullmatch(global_id)
    return (UserId(match[1]), match[2]) if match else None


def parse_campaign_id(global_id: str) -> CampaignId | None:
    """The campaign that an id names, if it can name one."""
    match = _CAMPAIGN.fullmatch(global_id)
    return CampaignId(match[1]) if match else None


def parse_series_id(global_id: str) -> SeriesId | None:
    """The series that an id names, if it can name one."""
    match = _SERIES.fullmatch(global_id)
    return SeriesId(match[1]) if match else None


def parse_ticket_id(global_id: str) -> TicketRef | None:
    """The ticket that an id names, if it can name one."""
    match = _TICKET.fullmatch(global_id)
    if match is None:
        return None
    asked_at = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(match[5], 16))
    return TicketRef(SlotId(match[1]), UserId(match[2]), match[3], match[4], asked_at)
