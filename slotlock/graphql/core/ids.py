"""Global ids: opaque to clients, a type and its parts to the server."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

import strawberry

from slotlock.domain.admission.tickets import TicketRef
from slotlock.domain.booking.booking import BookingId, SlotId, WaitlistEntry, WaitlistEntryId
from slotlock.domain.booking.slot import SeriesId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import DrawId
from slotlock.domain.notifications.webhooks import WebhookId
from slotlock.domain.schedule.holidays import HolidayListId
from slotlock.domain.teams.team import TeamId
from slotlock.domain.users.user import UserId

_BOOKING = re.compile(r"booking_([0-9a-f]{24})([0-9a-f]{24})", re.ASCII)
_TICKET = re.compile(
    r"ticket_([0-9a-f]{24})([0-9a-f]{24})([0-9a-f]{32})([0-9a-f]{16})([0-9a-f]{11})", re.ASCII
)
_WAITLIST_ENTRY = re.compile(r"waitlistEntry_([0-9a-f]{24})([0-9a-f]{24})", re.ASCII)
_SESSION = re.compile(r"session_([0-9a-f]{24})([0-9a-f]{32})", re.ASCII)
_WEBHOOK_DELIVERY = re.compile(r"webhookDelivery_([0-9A-Za-z_.:]{1,200})", re.ASCII)
_RESOURCE = re.compile(r"resource_([0-9A-Za-z_-]{1,600}={0,2})", re.ASCII)

Id = TypeVar("Id")


class GlobalIds(Generic[Id]):
    """The global ids of a kind of object whose own id has 24 hexadecimal digits."""

    def __init__(self, kind: str, to_id: Callable[[str], Id]) -> None:
        self._kind = kind
        self._form = re.compile(rf"{kind}_([0-9a-f]{{24}})", re.ASCII)
        self._to_id = to_id

    def build(self, id_: Id) -> strawberry.ID:
        """Build the global id of an object."""
        return strawberry.ID(f"{self._kind}_{id_}")

    def parse(self, global_id: str) -> Id | None:
        """Return the id of the object of a global id, or None for an id of another form."""
        match = self._form.fullmatch(global_id)
        return self._to_id(match[1]) if match else None


_SLOTS = GlobalIds("slot", SlotId)
_USERS = GlobalIds("user", UserId)
_TEAMS = GlobalIds("team", TeamId)
_CAMPAIGNS = GlobalIds("campaign", CampaignId)
_DRAWS = GlobalIds("draw", DrawId)
_SERIES = GlobalIds("series", SeriesId)
_HOLIDAY_LISTS = GlobalIds("holidayList", HolidayListId)
_WEBHOOKS = GlobalIds("webhook", WebhookId)
slot_global_id, parse_slot_id = _SLOTS.build, _SLOTS.parse
user_global_id, parse_user_id = _USERS.build, _USERS.parse
team_global_id, parse_team_id = _TEAMS.build, _TEAMS.parse
campaign_global_id, parse_campaign_id = _CAMPAIGNS.build, _CAMPAIGNS.parse
draw_global_id, parse_draw_id = _DRAWS.build, _DRAWS.parse
series_global_id, parse_series_id = _SERIES.build, _SERIES.parse
holiday_list_global_id, parse_holiday_list_id = _HOLIDAY_LISTS.build, _HOLIDAY_LISTS.parse
webhook_global_id, parse_webhook_id = _WEBHOOKS.build, _WEBHOOKS.parse


def booking_global_id(slot_id: SlotId, booking_id: BookingId) -> strawberry.ID:
    """Build the global id of a booking. It contains the slot, whose document holds the booking."""
    return strawberry.ID(f"booking_{slot_id}{booking_id}")


def waitlist_entry_global_id(entry: WaitlistEntry) -> strawberry.ID:
    """Build the global id of a waiting list entry."""
    return strawberry.ID(f"waitlistEntry_{entry.slot_id}{entry.id}")


def resource_global_id(name: str) -> strawberry.ID:
    """Build the global id of a resource. It contains the name."""
    return strawberry.ID(f"resource_{urlsafe_b64encode(name.encode()).decode()}")


def parse_resource_id(global_id: str) -> str | None:
    """Return the name of the resource of a global id, or None for an id of another form."""
    match = _RESOURCE.fullmatch(global_id)
    try:
        return urlsafe_b64decode(match[1]).decode() if match else None
    except ValueError:
        return None


def webhook_delivery_global_id(entry_id: str) -> strawberry.ID:
    """Build the global id of a delivery. It contains the id of its entry in the outbox."""
    return strawberry.ID(f"webhookDelivery_{entry_id}")


def parse_webhook_delivery_id(global_id: str) -> str | None:
    """Return the id of the entry of a global id, or None for an id of another form."""
    match = _WEBHOOK_DELIVERY.fullmatch(global_id)
    return match[1] if match else None


def ticket_global_id(ref: TicketRef) -> strawberry.ID:
    """Build the global id of a ticket. It contains all that is needed to find its outcome."""
    requested_at_ms = round(ref.requested_at.timestamp() * 1000)
    return strawberry.ID(
        f"ticket_{ref.slot_id}{ref.requested_by}{ref.key_hash}{ref.request_hash}{requested_at_ms:011x}"
    )


def session_global_id(user_id: UserId, session_key: str) -> strawberry.ID:
    """Build the global id of a session. It contains its user, who alone may see it."""
    return strawberry.ID(f"session_{user_id}{session_key}")


def parse_booking_id(global_id: str) -> tuple[SlotId, BookingId] | None:
    """Return the slot and the booking of a global id, or None for an id of another form."""
    match = _BOOKING.fullmatch(global_id)
    return (SlotId(match[1]), BookingId(match[2])) if match else None


def parse_waitlist_entry_id(global_id: str) -> tuple[SlotId, WaitlistEntryId] | None:
    """Return the slot and the entry of a global id, or None for an id of another form."""
    match = _WAITLIST_ENTRY.fullmatch(global_id)
    return (SlotId(match[1]), WaitlistEntryId(match[2])) if match else None


def parse_session_id(global_id: str) -> tuple[UserId, str] | None:
    """Return the user and the session key of a global id, or None for an id of another form."""
    match = _SESSION.fullmatch(global_id)
    return (UserId(match[1]), match[2]) if match else None


def parse_ticket_id(global_id: str) -> TicketRef | None:
    """Return the ticket of a global id, or None for an id of another form."""
    match = _TICKET.fullmatch(global_id)
    if match is None:
        return None
    requested_at = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=int(match[5], 16))
    return TicketRef(SlotId(match[1]), UserId(match[2]), match[3], match[4], requested_at)
