"""The domain's enums with their names and descriptions in the schema.

Types import an enum from here, so that it is registered before the schema uses it.
"""

from enum import Enum
from typing import TypeVar

import strawberry

from slotlock.domain.admission.tickets import TicketStatus
from slotlock.domain.audit.audit_log import AuditAction
from slotlock.domain.booking.booking import (
    Attendance,
    BookingAction,
    BookingLimit,
    BookingStatus,
)
from slotlock.domain.booking.rules.book import SeriesMode
from slotlock.domain.booking.slot import SlotKind, SlotStatus
from slotlock.domain.campaign_copies.campaign_copy_outcomes import CopyProblemKind
from slotlock.domain.campaigns.terms import CampaignState, SlotAdmission
from slotlock.domain.draws.basis import DrawMethod
from slotlock.domain.draws.draw import DrawState
from slotlock.domain.draws.drawing import WishResult
from slotlock.domain.notifications.outbox import Channel, OutboxState
from slotlock.domain.notifications.webhooks import WebhookEvent
from slotlock.domain.reports.campaign_reports import Interval
from slotlock.domain.reports.export_formats import CsvSeparator, ExportFormat, ExportLanguage
from slotlock.domain.resources.resource import ResourceKind
from slotlock.domain.schedule.timetables import Weekday
from slotlock.domain.shared.pagination import TimeOrder
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.slots.listing import SlotOrder
from slotlock.domain.slots.series import OnConflict, SeriesScope
from slotlock.domain.users.user import Registration, Role

__all__ = [
    "Attendance",
    "AuditAction",
    "BookingAction",
    "BookingLimit",
    "BookingStatus",
    "CampaignState",
    "Channel",
    "CopyProblemKind",
    "CsvSeparator",
    "DrawMethod",
    "DrawState",
    "ExportFormat",
    "ExportLanguage",
    "Interval",
    "OnConflict",
    "OutboxState",
    "ProblemCode",
    "Registration",
    "ResourceKind",
    "Role",
    "SeriesMode",
    "SeriesScope",
    "SlotAdmission",
    "SlotKind",
    "SlotOrder",
    "SlotStatus",
    "TicketStatus",
    "TimeOrder",
    "WebhookEvent",
    "Weekday",
    "WishResult",
]

E = TypeVar("E", bound=Enum)


def _register_enum(enum: type[E], name: str, description: str, **value_descriptions: str) -> None:
    """Register a domain enum. Errors: KeyError for a value without a description."""
    strawberry.enum(enum, name=name, description=description)
    for value in enum.__strawberry_definition__.values:  # type: ignore[attr-defined]
        value.description = value_descriptions[value.name]


_register_enum(
    ProblemCode,
    name="FieldProblemCode",
    description="Why the value of a field is invalid. The list grows as the schema does.",
    **{each.name: each.value for each in ProblemCode},
)
_register_enum(
    DrawState,
    name="DrawState",
    description="The progress of a draw.",
    COLLECTING="Users enter wishes.",
    CLOSED="No more wishes are accepted. The root is public once it is set.",
    DRAWN="The seed is fixed, and with it the result. Organizers see it.",
    PUBLISHED="Everybody sees the result. The places are booked, and then what is left is open.",
    SUPERSEDED="Another draw has replaced it. Its record stays public.",
    CANCELLED="Its campaign was deleted before the publication.",
)
_register_enum(
    DrawMethod,
    name="DrawMethod",
    description="How places are given by lot.",
    ROUNDS="In rounds: in each one, every user gets one place at most, and the next round runs in "
    "the reverse order.",
    SERIAL="One user after the other gets everything that is left of their wishes.",
)
_register_enum(
    WishResult,
    name="WishResult",
    description="What became of a wish.",
    GRANTED="The user has a place.",
    FULL="All places were taken by lower lottery numbers, or in an earlier round.",
    TIME_CONFLICT="The slot overlaps with a better wish that was granted, or an earlier booking.",
    LIMIT="The user had as many bookings as the campaign or the choice group allows.",
    GROUP_FULL="All places of the group were taken.",
    NOT_ELIGIBLE="The user may not book in the campaign.",
    ALREADY_BOOKED="The user had a place before the draw.",
    UNAVAILABLE="The slot was not open when the wishes were closed.",
)
_register_enum(
    Role,
    name="Role",
    description="The rights of a user.",
    MEMBER="The user may book places.",
    ORGANIZER="The user may also book for others, and manage slots, campaigns, resources and the "
    "accounts of members.",
    ADMIN="The user may also manage the accounts of organizers and admins, set roles, erase users "
    "and read their personal data.",
)
_register_enum(
    Registration,
    name="Registration",
    description="Who gets an account.",
    OPEN="Everybody may register.",
    INVITED="Users set a first password with an invitation from an organizer.",
    CLOSED="The operators give accounts their passwords.",
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
    DRAW="Members enter wishes, and places are drawn by lot. Until then only organizers book.",
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
    HOLIDAY_LIST_CREATED="A list of holidays was created.",
    HOLIDAY_LIST_EDITED="A list of holidays was changed.",
    HOLIDAY_LIST_DELETED="A list of holidays was deleted. The entry has the fields that it had.",
    WEBHOOK_CREATED="A webhook was created.",
    WEBHOOK_EDITED="The URL or the events of a webhook changed, or it was disabled or enabled.",
    WEBHOOK_ROTATED="A webhook got a new secret.",
    WEBHOOK_DELETED="A webhook was deleted. The entry has the fields that it had.",
    GROUPS_SET="The groups of a user were changed.",
    ROLE_SET="A user was given a role, or an account above member was created.",
    BANNED="A user was banned, or the reason for a ban was changed.",
    UNBANNED="A ban was lifted.",
    USERS_IMPORTED="A file created or changed users. One entry covers at most 500 of them.",
    USERS_INVITED="Users were invited to set a first password. One entry covers at most 500.",
    USER_CREATED="A user was created and invited to set a first password.",
    USER_EDITED="The name or the e-mail address of a user was changed.",
    USER_ERASED="A user was erased. Their past bookings stay, without a name.",
    CLAIMED="An admin claimed an account that somebody had registered, and invited its user.",
    VOUCHED_FOR="An organizer vouched for a user who had registered.",
    SESSIONS_ENDED="All sessions of a user were ended by somebody else.",
    PASSWORD_SET="An operator set a user's password, which ended all sessions of the user.",  # noqa: S106
    ANNOUNCEMENT_SENT="An organizer wrote a mail to all who have a place.",
    DRAW_CONFIGURED="A draw was opened, or its settings were changed.",
    DRAW_CLOSED="The wishes of a draw were closed, and its root is public.",
    DRAW_RUN="The seed of a draw was fixed.",
    DRAW_PUBLISHED="The result of a draw was published.",
    DRAW_SUPERSEDED="A draw was replaced by another one.",
    PASSWORD_RESET_CREATED="An operator or admin created a token that replaces a password.",  # noqa: S106
    SIGN_IN_LINKED="A sign-in at a provider was linked to an account.",
    SIGN_IN_UNLINKED="A sign-in at a provider was unlinked from an account.",
    CALENDAR_FEED_CREATED="A user created a private calendar feed, which replaced the one before.",
)
_register_enum(
    BookingLimit,
    name="BookingLimit",
    description="A limit on bookings that organizers can override for a user. `overriddenRefusals` "
    "names it as the refusal does that members get.",
    SLOT_STARTED="Bookings do not change after the slot has started.",
    CANCEL_CUTOFF="Members cannot cancel a booking after the cut-off.",
    ONE_OF_CHOICE="A user has at most one booking among the slots of a choice group.",
    NOT_YET_OPEN="A campaign takes no bookings before it opens.",
    CLOSED="A campaign takes no bookings after it closes or while it is unpublished.",
    NOT_ELIGIBLE="A campaign takes bookings of its eligible groups only.",
    EMAIL_NOT_VERIFIED="A campaign or the site wants a verified e-mail address.",
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
    description="How to handle dates of a series on which a resource is taken.",
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
    TimeOrder,
    name="TimeOrder",
    description="The order of a list by time. What starts at the same time is ordered by id.",
    UPCOMING_FIRST="What is not over, the earliest start first; then what is over, the latest "
    "start first. What is over is decided once, for the first page.",
    START_ASC="Earliest start first.",
    START_DESC="Latest start first.",
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
_register_enum(
    ExportLanguage,
    name="ExportLanguage",
    description="The language of the texts in an export.",
    EN="English.",
    DE="German.",
    FR="French.",
    ES="Spanish.",
    ZH="Chinese.",
)
_register_enum(
    Channel,
    name="OutboxChannel",
    description="How an entry of the outbox is sent.",
    MAIL="As a mail.",
    WEBHOOK="As a call of a webhook.",
)
_register_enum(
    OutboxState,
    name="OutboxState",
    description="What became of an entry of the outbox.",
    QUEUED="It waits for its time, or for the next attempt.",
    SENDING="It is being sent.",
    SENT="The other server has taken it.",
    FAILED="The other server rejected it, or the last attempt failed.",
    SUPPRESSED="It was not sent, because there was no address or no reason any more.",
)
_register_enum(
    WebhookEvent,
    name="WebhookEvent",
    description="What a webhook can be about. Messages have the name as `booking.confirmed`.",
    BOOKING_CONFIRMED="A place was booked, or a hold was confirmed.",
    BOOKING_HELD="A hold was placed, by a user or as an offer of the waiting list.",
    BOOKING_MOVED="A booking was moved; the message is about the new one.",
    BOOKING_CANCELLED="A booking was cancelled, or its slot was.",
    BOOKING_EXPIRED="A hold expired.",
    BOOKING_PROMOTED="The waiting list booked a free place for its first user.",
    BOOKING_CHECKED_IN="A user was checked in.",
    BOOKING_NO_SHOW="A booking was marked as a no-show.",
    WAITLIST_JOINED="A user joined a waiting list.",
    WAITLIST_LEFT="A waiting list entry ended without a booking.",
    SLOT_PUBLISHED="A slot was published, or created as published.",
    SLOT_EDITED="A slot was changed.",
    SLOT_CANCELLED="A slot was cancelled.",
    SLOT_FULL="The last free place of a slot was taken.",
    CAMPAIGN_PUBLISHED="A campaign was published, or created as published.",
    CAMPAIGN_OPENED="The opening time of a published campaign has come.",
    CAMPAIGN_CLOSED="The closing time of a published campaign has come.",
    DRAW_CLOSED="The wishes of a draw are closed, and its root is public.",
    DRAW_PUBLISHED="The result of a draw is public. Its places are booked from now on.",
    USER_CREATED="A user got an account.",
    USER_ERASED="A user was erased.",
)
