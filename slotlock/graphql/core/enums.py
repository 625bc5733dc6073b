"""The domain's enums with their names and descriptions in the schema.

Types import an enum from here, so that it is registered before the schema uses it.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Any, TypeVar

import strawberry
from strawberry import enum_value

from slotlock.domain.admission.tickets import TicketStatus
from slotlock.domain.audit.audit_log import AUDIT_ACTIONS
from slotlock.domain.booking.booking import (
    Attendance,
    BookingAction,
    BookingLimit,
    BookingStatus,
    MadeAs,
)
from slotlock.domain.booking.rules.book import SeriesMode
from slotlock.domain.booking.slot import SlotKind, SlotStatus
from slotlock.domain.campaign_copies.campaign_copy_outcomes import CopyProblemKind
from slotlock.domain.campaigns.terms import CampaignState, SlotAdmission
from slotlock.domain.draws import drawing
from slotlock.domain.draws.basis import DrawMethod, DrawRecordReaders
from slotlock.domain.draws.draw import DrawState
from slotlock.domain.notifications.outbox import Channel, OutboxState
from slotlock.domain.notifications.webhooks import WebhookEvent
from slotlock.domain.reports.campaign_reports import Interval
from slotlock.domain.reports.export_formats import (
    CsvSeparator,
    ExportFormat,
    ExportGrouping,
    ExportLanguage,
)
from slotlock.domain.resources.resource import ResourceKind
from slotlock.domain.schedule.timetables import Weekday
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.pagination import TimeOrder
from slotlock.domain.shared.problems import ProblemCode
from slotlock.domain.site.site import FormOfAddress
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
    "DrawRecordReaders",
    "DrawState",
    "ExportFormat",
    "ExportGrouping",
    "ExportLanguage",
    "FormOfAddress",
    "Interval",
    "MadeAs",
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
# mypy accepts only enums whose members stand in the source.
_make_enum: Any = Enum


def _register_enum(enum: type[E], name: str, description: str, **value_descriptions: str) -> None:
    """Register a domain enum. Errors: KeyError for a value without a description."""
    strawberry.enum(enum, name=name, description=description)
    for value in enum.__strawberry_definition__.values:  # type: ignore[attr-defined]
        value.description = value_descriptions[value.name]


def _register_described(enum: type[DescribedEnum], name: str) -> None:
    description = " ".join((enum.__doc__ or "").split())
    members = {each.name: each.description for each in enum}
    _register_enum(enum, name, description, **members)


def make_enum(name: str, description: str, values: Iterable[tuple[str, object, str]]) -> Any:
    """Return an enum of the schema for these names, values and descriptions."""
    members = {each: enum_value(value, description=text) for each, value, text in values}
    return strawberry.enum(_make_enum(name, members), name=name, description=description)


AuditAction = make_enum(
    "AuditAction",
    "The action that an entry of the audit log records.",
    ((each.name, each, each.description) for each in AUDIT_ACTIONS),
)

WishResult = make_enum(
    "WishResult",
    "What became of a wish.",
    (
        (each.name, each, each.description)
        for each in drawing.WishResult
        if each is not drawing.WishResult.BLOCKED
    ),
)


for each in (
    Attendance,
    BookingAction,
    BookingLimit,
    BookingStatus,
    CampaignState,
    CsvSeparator,
    DrawMethod,
    DrawRecordReaders,
    DrawState,
    ExportFormat,
    ExportGrouping,
    ExportLanguage,
    FormOfAddress,
    Interval,
    MadeAs,
    OnConflict,
    OutboxState,
    Registration,
    ResourceKind,
    Role,
    SeriesMode,
    SeriesScope,
    SlotAdmission,
    SlotKind,
    SlotStatus,
    TicketStatus,
    WebhookEvent,
):
    _register_described(each, each.__name__)
_register_described(Channel, "OutboxChannel")
_register_described(CopyProblemKind, "CampaignCopyProblemKind")
_register_enum(
    ProblemCode,
    name="FieldProblemCode",
    description="Why the value of a field is invalid. The list grows as the schema does.",
    **{each.name: each.value for each in ProblemCode},
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
