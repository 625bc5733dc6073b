"""The domain's enums with their names and descriptions in the schema.

Types import an enum from here, so that it is registered before the schema uses it.
"""

from enum import Enum
from typing import TypeVar

import strawberry

from slotlock.domain.admission.tickets import TicketStatus
from slotlock.domain.audit.log import AuditAction
from slotlock.domain.booking.booking import (
    Attendance,
    BookingAction,
    BookingLimit,
    BookingStatus,
)
from slotlock.domain.booking.rules.series import SeriesMode
from slotlock.domain.booking.slot import SlotKind, SlotStatus
from slotlock.domain.campaign_copies.outcomes import CopyProblemKind
from slotlock.domain.campaigns.terms import CampaignState, SlotAdmission
from slotlock.domain.reports.campaign_reports import Interval
from slotlock.domain.reports.exports import CsvSeparator, ExportFormat
from slotlock.domain.resources.resource import ResourceKind
from slotlock.domain.schedule.timetables import Weekday
from slotlock.domain.slots.listing import SlotOrder
from slotlock.domain.slots.series import OnConflict, SeriesScope
from slotlock.domain.users.user import Role

__all__ = [
    "Attendance",
    "AuditAction",
    "BookingAction",
    "BookingLimit",
    "BookingStatus",
    "CampaignState",
    "CopyProblemKind",
    "CsvSeparator",
    "ExportFormat",
    "Interval",
    "OnConflict",
    "ResourceKind",
    "Role",
    "SeriesMode",
    "SeriesScope",
    "SlotAdmission",
    "SlotKind",
    "SlotOrder",
    "SlotStatus",
    "TicketStatus",
    "Weekday",
]

E = TypeVar("E", bound=Enum)


def _register_enum(enum: type[E], name: str, description: str, **value_descriptions: str) -> None:
    """Register a domain enum. Errors: KeyError for a value without a description."""
    strawberry.enum(enum, name=name, description=description)
    for value in enum.__strawberry_definition__.values:  # type: ignore[attr-defined]
        value.description = value_descriptions[value.name]


_register_enum(
    Role,
    name="Role",
    description="The rights of a user.",
    MEMBER="The user may book places.",
    ORGANIZER="The user may also manage slots, campaigns and members.",
    ADMIN="The user may also ban and unban organizers and admins.",
)
_register_enum(
    ResourceKind,
    name="ResourceKind",
    description="What a resource is.",
    ROOM="A room.",
    STAFF="A member of the staff, such as a teacher.",
    EQUIPMENT="A device, such as a projector.",
    OTHER="Something else.",
)
_register_enum(
    SlotStatus,
    name="SlotStatus",
    description="Whether a slot is visible and can be booked.",
    DRAFT="Only organizers see the slot. Nobody can book it.",
    PUBLISHED="Everyone sees the slot, unless its campaign is unpublished.",
    CANCELLED="The slot was cancelled with all its bookings. Nobody can book it.",
)
_register_enum(
    SlotKind,
    name="SlotKind",
    description="The kind of event that a slot is for.",
    MEETING="A meeting.",
    COURSE="A course or a class.",
    OTHER="Something else.",
)
_register_enum(
    SlotAdmission,
    name="SlotAdmission",
    description="How members get places. Organizers can always book.",
    ANY="Members book with `bookSlot` or through the booking queue, with `requestBooking`.",
    QUEUE_ONLY="Members get places through the booking queue only, and from the waiting list.",
)
_register_enum(
    BookingStatus,
    name="BookingStatus",
    description="Whether a booking occupies a place.",
    HELD="The booking is a hold. It occupies a place until `heldUntil` unless it is confirmed.",
    CONFIRMED="The booking occupies a place.",
    CANCELLED="The booking was cancelled or moved, or its slot was cancelled.",
    EXPIRED="The booking was a hold and expired.",
)
_register_enum(
    Attendance,
    name="Attendance",
    description="Whether the user of a booking came.",
    NOT_RECORDED="Neither a check-in nor a no-show is recorded.",
    CHECKED_IN="An organizer checked the user in.",
    NO_SHOW="An organizer marked the booking as a no-show: the user did not come.",
)
BOOKING_ACTION_DESCRIPTIONS = {
    "BOOKED": "The user or someone else booked a place.",
    "HELD": "The user or someone else placed a hold.",
    "PROMOTED": "The waiting list booked a free place for its first user.",
    "OFFERED": "The waiting list placed a hold for its first user.",
    "CONFIRMED": "A hold was confirmed.",
    "EXTENDED": "A hold was extended.",
    "MOVED": "The booking was moved to another slot.",
    "CANCELLED": "The booking was cancelled, or its slot was cancelled.",
    "EXPIRED": "A hold expired.",
    "CHECKED_IN": "An organizer checked the user in.",
    "CHECK_IN_UNDONE": "An organizer took the check-in back.",
    "NO_SHOW": "An organizer marked the booking as a no-show.",
    "NO_SHOW_UNDONE": "An organizer took the no-show back.",
    "OTHER": "The action is one of a newer version, which this server does not know.",
}
_register_enum(
    BookingAction,
    name="BookingAction",
    description="An action on a booking.",
    **BOOKING_ACTION_DESCRIPTIONS,
    WAITLIST_LEFT="The user's waiting list entry ended without a booking. Only live events have "
    "this action.",
    SLOT_EDITED="The time or place of the slot changed. Only live events have this action.",
)
_register_enum(
    AuditAction,
    name="AuditAction",
    description="The action that an entry of the audit log records.",
    **BOOKING_ACTION_DESCRIPTIONS,
    WAITLIST_JOINED="A user joined a waiting list.",
    WAITLIST_LEFT="A waiting list entry ended without a booking.",
    SLOT_CREATED="A slot was created.",
    SLOT_EDITED="A slot was changed.",
    SLOT_PUBLISHED="A draft slot was published.",
    SLOT_CANCELLED="A slot was cancelled.",
    SLOT_DELETED="A slot was deleted. The entry has the fields that it had.",
    CAMPAIGN_CREATED="A campaign was created.",
    CAMPAIGN_EDITED="A campaign was changed.",
    CAMPAIGN_PUBLISHED="A campaign was published.",
    CAMPAIGN_UNPUBLISHED="A campaign was unpublished.",
    CAMPAIGN_DELETED="A campaign was deleted. The entry has the fields that it had.",
    RESOURCE_CREATED="A resource was created, by itself or by an import.",
    RESOURCE_EDITED="The kind of a resource was changed.",
    RESOURCE_DELETED="A resource was deleted. The entry has the fields that it had.",
    GROUPS_SET="The groups of a user were changed.",
    ROLE_SET="A user was given a role, or an account above member was created.",
    BANNED="A user was banned, or the reason for a ban was changed.",
    UNBANNED="A ban was lifted.",
    USERS_IMPORTED="A file created or changed users. One entry covers at most 500 of them.",
    USERS_INVITED="Users were invited to set a first password. One entry covers at most 500.",
    USER_CREATED="A user was created and invited to set a first password.",
    USER_EDITED="The name or the e-mail address of a user was changed.",
    USER_ERASED="A user was erased. Their past bookings stay, without a name.",
    SESSIONS_ENDED="All sessions of a user were ended by somebody else.",
    PASSWORD_SET="An operator set a user's password, which ended all sessions of the user.",  # noqa: S106
    PASSWORD_RESET_CREATED="An operator created a token that replaces a user's password.",  # noqa: S106
)
_register_enum(
    BookingLimit,
    name="BookingLimit",
    description="A limit on bookings that organizers can override for a user.",
    SLOT_STARTED="Bookings do not change after the slot has started.",
    CANCEL_CUTOFF="Members cannot cancel a booking after the cut-off.",
    ONE_OF_CHOICE="A user has at most one booking among the slots of a choice group.",
    NOT_YET_OPEN="A campaign takes no bookings before it opens.",
    CLOSED="A campaign takes no bookings after it closes or while it is unpublished.",
    NOT_ELIGIBLE="A campaign takes bookings of its eligible groups only.",
    MAX_BOOKINGS="A campaign limits the number of bookings per user.",
    TIME_CONFLICT="The bookings of a user in campaigns that forbid it must not overlap.",
    GROUP_FULL="A slot limits the number of places per group.",
    NO_SHOWS="A campaign takes no bookings of a user with too many no-shows for some days.",
    HOLD_COOLDOWN="A slot lets a user hold a place again only some time after an unconfirmed hold.",
    OTHER="The limit is one of a newer version, which this server does not know.",
)
_register_enum(
    TicketStatus,
    name="TicketStatus",
    description="The progress of a ticket.",
    QUEUED="The request waits in the queue.",
    ANSWERED="The request was processed and `outcome` is final.",
    LOST="The queue lost the request before it was processed. Nothing was booked; the user may "
    "request the booking again with the same key or another one.",
    FAILED="The request could not be processed. Operators can return it to the queue.",
    CANCELLED="The user cancelled the request before it was processed. Nothing was booked, and "
    "nothing will be.",
)
_register_enum(
    CampaignState,
    name="CampaignState",
    description="Whether a campaign takes bookings at the moment.",
    UPCOMING="The campaign has not opened yet.",
    OPEN="The campaign takes bookings if it is published.",
    CLOSED="The campaign takes no bookings any more.",
)
_register_enum(
    Weekday,
    name="Weekday",
    description="A day of the week.",
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
    name="OnConflict",
    description="How to handle dates on which the resource of a new series is taken.",
    STRICT="Create nothing.",
    SKIP_CONFLICTS="Create the slots of the other dates.",
)
_register_enum(
    CopyProblemKind,
    name="CampaignCopyProblemKind",
    description="Why a campaign cannot be copied to the new dates.",
    RESOURCE_TAKEN="Another published slot uses a resource of the slot at the new time.",
    RESOURCE_NOT_FOUND="A resource of the slot does not exist any more.",
    IN_PAST="The slot would lie in the past, or the campaign would close there.",
    INVALID_TIMES="Meetings of the slot would overlap, because of a clock change.",
)
_register_enum(
    SeriesScope,
    name="SeriesScope",
    description="Which slots of a series a change applies to. Other slots of the series that are "
    "over or cancelled do not change.",
    THIS="Only the slot that the request names.",
    THIS_AND_FOLLOWING="The slot that the request names and those that start later.",
    ALL="Every slot of the series.",
)
_register_enum(
    SeriesMode,
    name="SeriesMode",
    description="Which slots of a series to book.",
    ALL_OR_NONE="All of them. If one of them is refused, none is booked.",
    WHAT_IS_FREE="Those that can be booked, one after the other in the order of their start.",
)
_register_enum(
    SlotOrder,
    name="SlotOrder",
    description="The order of a list of slots. Slots with the same start or title are ordered by "
    "id.",
    START_ASC="Earliest start first.",
    START_DESC="Latest start first.",
    TITLE_ASC="By title, from A to Z, whatever its case and accents.",
    TITLE_DESC="By title, from Z to A, whatever its case and accents.",
)
_register_enum(
    Interval,
    name="Interval",
    description="The length of one interval of a time series.",
    MINUTE="One minute.",
    HOUR="One hour.",
    DAY="24 hours.",
)
_register_enum(
    CsvSeparator,
    name="CsvSeparator",
    description="What separates the cells of a CSV file.",
    COMMA="A comma, as Excel expects where the decimal sign is a point.",
    SEMICOLON="A semicolon, as Excel expects where the decimal sign is a comma.",
)
_register_enum(
    ExportFormat,
    name="ExportFormat",
    description="The format of an export.",
    CSV="A line for each booking, and for each user on a waiting list.",
    XLSX="An Excel workbook: a summary, the waiting lists, and a sheet for each slot.",
    PDF="Sign-in sheets to print, with boxes to tick and space for signatures.",
)
