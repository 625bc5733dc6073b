"""The domain's enums, described for clients."""

from enum import Enum
from typing import TypeVar

import strawberry

from slotlock.domain.audit.log import AuditAction
from slotlock.domain.booking.history import BookingAction, BookingLimit, BookingStatus
from slotlock.domain.booking.slot import SlotKind, SlotStatus
from slotlock.domain.booking.tickets import TicketStatus
from slotlock.domain.campaigns.terms import CampaignState
from slotlock.domain.reports.campaign_reports import Interval
from slotlock.domain.schedule.timetables import Weekday
from slotlock.domain.slots.listing import SlotOrder
from slotlock.domain.slots.series import OnConflict, SeriesScope
from slotlock.domain.users.user import Role

E = TypeVar("E", bound=Enum)


def _register_enum(enum: type[E], description: str, **value_descriptions: str) -> None:
    # The domain's own enums, so that nothing is copied between two of them; a value that is not
    # described here is a KeyError at import.
    strawberry.enum(enum, description=description)
    for value in enum.__strawberry_definition__.values:  # type: ignore[attr-defined]
        value.description = value_descriptions[value.name]


_register_enum(
    Role,
    "What a person may do.",
    MEMBER="Books places.",
    ORGANIZER="Also creates and keeps slots.",
    ADMIN="May do everything.",
)
_register_enum(
    SlotStatus,
    "Where a slot is in its life.",
    DRAFT="Seen by organisers only; cannot be booked.",
    PUBLISHED="Open to everyone.",
    CANCELLED="Called off; cannot be booked.",
)
_register_enum(
    SlotKind,
    "What a slot is for.",
    MEETING="A meeting.",
    COURSE="A course or a class.",
    OTHER="Something else.",
)
_register_enum(
    BookingStatus,
    "Whether a booking takes a place.",
    HELD="It takes a place until `heldUntil`, unless it is confirmed.",
    CONFIRMED="It takes a place.",
    CANCELLED="It gave its place back, or its slot was called off.",
    EXPIRED="It was a hold that ran out.",
)
BOOKING_ACTION_DESCRIPTIONS = {
    "BOOKED": "A place was booked.",
    "HELD": "A place was held for a while.",
    "PROMOTED": "A freed place was booked for the next in the waiting list.",
    "OFFERED": "A freed place was held for the next in the waiting list.",
    "CONFIRMED": "A hold became a booking for good.",
    "EXTENDED": "A hold was made to last longer.",
    "MOVED": "The place was exchanged for one in another slot.",
    "CANCELLED": "The place was given back, or the slot was called off.",
    "EXPIRED": "The hold ran out.",
}
_register_enum(BookingAction, "What happened to a booking.", **BOOKING_ACTION_DESCRIPTIONS)
_register_enum(
    AuditAction,
    "What happened.",
    **BOOKING_ACTION_DESCRIPTIONS,
    WAITLIST_JOINED="Somebody began to wait for a place.",
    WAITLIST_LEFT="A turn in a waiting list ended without a place.",
    SLOT_CREATED="A slot was created.",
    SLOT_EDITED="A slot was changed.",
    SLOT_PUBLISHED="A draft was opened to everyone.",
    SLOT_CANCELLED="A slot was called off.",
    CAMPAIGN_CREATED="A campaign was created.",
    CAMPAIGN_EDITED="A campaign was changed.",
    CAMPAIGN_PUBLISHED="A campaign was shown to everybody.",
    CAMPAIGN_UNPUBLISHED="A campaign was hidden.",
    GROUPS_SET="Somebody was put into groups, or out of them.",
    ROLE_SET="Somebody got another role, or an account with a role above member.",
    BANNED="Somebody was banned, or got another reason for it.",
    UNBANNED="A ban was taken back.",
    USERS_IMPORTED="People were created or changed by a file; up to 500 an entry.",
    USERS_INVITED="Invitations to set a first password were made; up to 500 an entry.",
)
_register_enum(
    BookingLimit,
    "A limit that organisers can override for somebody.",
    SLOT_STARTED="Nothing changes once a slot has begun.",
    CANCEL_CUTOFF="Places are given back until the cut-off.",
    ONE_OF_CHOICE="A person has a place in at most one slot of a choice.",
    NOT_YET_OPEN="A campaign takes bookings from its opening on.",
    CLOSED="A campaign takes bookings until it closes, while it is published.",
    NOT_ELIGIBLE="A campaign is for people of certain groups.",
    MAX_BOOKINGS="A person has at most so many bookings in a campaign.",
    TIME_CONFLICT="A person's bookings do not overlap.",
    GROUP_FULL="At most so many people of a group have a place in a slot.",
)
_register_enum(
    TicketStatus,
    "Where a ticket is on its way.",
    QUEUED="It is in line.",
    ANSWERED="It has its outcome, for good.",
    LOST="The line was lost before anybody decided on it: nothing was booked, and nothing will be "
    "unless its person asks again, under the same key or another.",
    FAILED="It could not be decided on. The operators know, and can put it back in line.",
)
_register_enum(
    CampaignState,
    "Where a campaign is in time.",
    UPCOMING="It opens later.",
    OPEN="It takes bookings, if it is published.",
    CLOSED="It takes no bookings any more.",
)
_register_enum(
    Weekday,
    "A day of the week.",
    MONDAY="Monday.",
    TUESDAY="Tuesday.",
    WEDNESDAY="Wednesday.",
    THURSDAY="Thursday.",
    FRIDAY="Friday.",
    SATURDAY="Saturday.",
    SUNDAY="Sunday.",
)
_register_enum(
    OnConflict,
    "What becomes of a series some of whose dates are taken.",
    STRICT="Nothing is created.",
    SKIP_CONFLICTS="Those dates are left out.",
)
_register_enum(
    SeriesScope,
    "Which slots of a series a change is for. Others than the one that is named stay as they are "
    "when they were called off or are over.",
    THIS="This one alone.",
    THIS_AND_FOLLOWING="This one and those that begin later.",
    ALL="All of them.",
)
_register_enum(
    SlotOrder,
    "The order of a list of slots; slots that start together are in the order of their ids.",
    START_ASC="The earliest first.",
    START_DESC="The latest first.",
)
_register_enum(
    Interval,
    "How much time one point of figures stands for, counted from the first.",
    MINUTE="A minute.",
    HOUR="An hour.",
    DAY="24 hours.",
)
