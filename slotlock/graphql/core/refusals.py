"""Refusals: expected results that a client can act on, returned as data."""

from enum import Enum
from typing import ClassVar, Self

import strawberry
from strawberry import enum_value, field

from slotlock.domain.booking import refusals
from slotlock.domain.shared import validation
from slotlock.graphql.core.result_view import ResultView


@strawberry.enum(
    name="RefusalCode",
    description="Why the server refused a request. The list grows as the schema does.",
)
class RefusalCode(Enum):
    LOCKED = enum_value("LOCKED", description="Another request is using the slot. Retry soon.")
    QUEUE_FULL = enum_value("QUEUE_FULL", description="The booking queue is full. Retry soon.")
    TICKET_NOT_FOUND = enum_value(
        "TICKET_NOT_FOUND", description="The caller has no such ticket, or it is too old."
    )
    TICKET_NOT_QUEUED = enum_value(
        "TICKET_NOT_QUEUED",
        description="The request is not in the queue: the ticket has its final state.",
    )
    SLOT_NOT_FOUND = enum_value("SLOT_NOT_FOUND", description="The slot does not exist.")
    SLOT_FULL = enum_value("SLOT_FULL", description="The slot has no free place.")
    ALREADY_BOOKED = enum_value(
        "ALREADY_BOOKED", description="The user already has a booking in the slot."
    )
    QUEUE_ONLY = enum_value(
        "QUEUE_ONLY", description="Members get places through the booking queue only."
    )
    SLOT_STARTED = enum_value("SLOT_STARTED", description="The slot has already started.")
    SLOT_CANCELLED = enum_value("SLOT_CANCELLED", description="The slot was cancelled.")
    SLOT_NOT_PUBLISHED = enum_value(
        "SLOT_NOT_PUBLISHED", description="The slot is a draft, which can only be deleted."
    )
    SLOT_HAS_BOOKINGS = enum_value(
        "SLOT_HAS_BOOKINGS", description="The slot has or had bookings or a waiting list."
    )
    BOOKING_NOT_FOUND = enum_value(
        "BOOKING_NOT_FOUND", description="The booking does not exist or has ended."
    )
    CAPACITY_BELOW_TAKEN = enum_value(
        "CAPACITY_BELOW_TAKEN", description="The new capacity is below the number of bookings."
    )
    INVALID_INPUT = enum_value("INVALID_INPUT", description="A field of the input is invalid.")
    EMAIL_TAKEN = enum_value("EMAIL_TAKEN", description="The e-mail address has an account.")
    REGISTRATION_CLOSED = enum_value(
        "REGISTRATION_CLOSED", description="Nobody can register on this server."
    )
    INVALID_CREDENTIALS = enum_value(
        "INVALID_CREDENTIALS", description="The e-mail address or the password is wrong."
    )
    TOO_MANY_ATTEMPTS = enum_value(
        "TOO_MANY_ATTEMPTS", description="There were too many sign-in attempts. Retry later."
    )
    INVALID_SESSION = enum_value(
        "INVALID_SESSION", description="The session has ended. The user must sign in again."
    )
    SESSION_NOT_FOUND = enum_value(
        "SESSION_NOT_FOUND", description="The caller has no such session."
    )
    TEAM_NOT_FOUND = enum_value("TEAM_NOT_FOUND", description="The caller is in no such team.")
    TEAM_FULL = enum_value("TEAM_FULL", description="The team cannot invite anyone else.")
    ALREADY_MEMBER = enum_value(
        "ALREADY_MEMBER", description="The invited user is already in the team."
    )
    NOT_INVITED = enum_value("NOT_INVITED", description="The invitation does not exist.")
    TOO_MANY_TEAMS = enum_value(
        "TOO_MANY_TEAMS", description="The caller is in the maximum number of teams."
    )
    TOO_MANY_INVITATIONS = enum_value(
        "TOO_MANY_INVITATIONS",
        description="The e-mail address has the maximum number of open invitations.",
    )
    TEAM_BUSY = enum_value(
        "TEAM_BUSY", description="Other requests are changing the team. Retry soon."
    )
    KEY_REUSED = enum_value(
        "KEY_REUSED", description="The idempotency key was sent before with other arguments."
    )
    LIMIT_REACHED = enum_value(
        "LIMIT_REACHED", description="The user has the maximum number of bookings."
    )
    SERIES_NOT_FOUND = enum_value("SERIES_NOT_FOUND", description="The series does not exist.")
    NOTHING_TO_BOOK = enum_value(
        "NOTHING_TO_BOOK", description="No slot of the series can be booked any more."
    )
    SERIES_TOO_LONG = enum_value(
        "SERIES_TOO_LONG", description="The series has more slots than one request may book."
    )
    CAMPAIGN_NOT_FOUND = enum_value(
        "CAMPAIGN_NOT_FOUND", description="The campaign does not exist."
    )
    CAMPAIGN_BUSY = enum_value(
        "CAMPAIGN_BUSY", description="Other requests are changing the campaign. Retry soon."
    )
    CAMPAIGN_IN_USE = enum_value(
        "CAMPAIGN_IN_USE", description="The campaign is published or has slots."
    )
    CAMPAIGN_NOT_COPIED = enum_value(
        "CAMPAIGN_NOT_COPIED", description="The campaign cannot be copied to the new dates."
    )
    CAMPAIGN_TOO_LARGE = enum_value(
        "CAMPAIGN_TOO_LARGE",
        description="The campaign has more slots or meetings than one request may copy.",
    )
    RESOURCE_TAKEN = enum_value(
        "RESOURCE_TAKEN", description="Another slot uses the resource at the same time."
    )
    RESOURCE_NOT_FOUND = enum_value(
        "RESOURCE_NOT_FOUND", description="The resource does not exist."
    )
    RESOURCE_IN_USE = enum_value(
        "RESOURCE_IN_USE", description="Slots that are not over use the resource."
    )
    SLOTS_HAVE_BOOKINGS = enum_value(
        "SLOTS_HAVE_BOOKINGS", description="Some of the slots have or had bookings."
    )
    SERIES_CONFLICTS = enum_value(
        "SERIES_CONFLICTS", description="The resource is taken on some dates of the series."
    )
    NOT_YET_OPEN = enum_value("NOT_YET_OPEN", description="The campaign has not opened yet.")
    CLOSED = enum_value("CLOSED", description="The campaign takes no bookings any more.")
    NOT_ELIGIBLE = enum_value("NOT_ELIGIBLE", description="The campaign is for other groups.")
    TOO_MANY_NO_SHOWS = enum_value(
        "TOO_MANY_NO_SHOWS", description="The user missed too many bookings of the campaign."
    )
    HOLD_COOLDOWN = enum_value(
        "HOLD_COOLDOWN",
        description="The user gave up a hold in the slot, and may hold a place again later.",
    )
    GROUP_FULL = enum_value(
        "GROUP_FULL", description="The user's group has all of its places in the slot."
    )
    TIME_CONFLICT = enum_value(
        "TIME_CONFLICT", description="The slot overlaps another booking of the user."
    )
    NOT_TEAMMATE = enum_value("NOT_TEAMMATE", description="The user is in no team with the caller.")
    USER_NOT_FOUND = enum_value("USER_NOT_FOUND", description="The user does not exist.")
    USER_BANNED = enum_value("USER_BANNED", description="The user to book for is banned.")
    CLAIMS_REFUSED = enum_value(
        "CLAIMS_REFUSED", description="At least one claim was refused, so nothing was booked."
    )
    HOLD_EXPIRED = enum_value("HOLD_EXPIRED", description="The hold has expired.")
    HOLD_LIMIT_REACHED = enum_value(
        "HOLD_LIMIT_REACHED", description="The hold cannot be extended any further."
    )
    NOT_HELD = enum_value("NOT_HELD", description="The booking is confirmed and does not expire.")
    NOT_CONFIRMED = enum_value("NOT_CONFIRMED", description="The booking is a hold, or has ended.")
    ALREADY_CHECKED_IN = enum_value(
        "ALREADY_CHECKED_IN", description="The user of the booking is checked in."
    )
    CHECK_IN_NOT_OPEN = enum_value(
        "CHECK_IN_NOT_OPEN", description="It is too early to check in for the slot."
    )
    SLOT_NOT_STARTED = enum_value(
        "SLOT_NOT_STARTED", description="The slot has not started, so nobody has missed it."
    )
    WRONG_SLOT = enum_value("WRONG_SLOT", description="The booking is for another slot.")
    INVALID_CHECK_IN_CODE = enum_value(
        "INVALID_CHECK_IN_CODE", description="The text is no check-in code of this server."
    )
    CUTOFF_PASSED = enum_value("CUTOFF_PASSED", description="It is too late to cancel.")
    ALREADY_WAITING = enum_value(
        "ALREADY_WAITING", description="The caller is already on the waiting list."
    )
    SLOT_NOT_FULL = enum_value(
        "SLOT_NOT_FULL", description="The slot has a free place to book right now."
    )
    WAITLIST_FULL = enum_value("WAITLIST_FULL", description="The waiting list is full.")
    NOT_WAITING = enum_value("NOT_WAITING", description="The caller is not on the waiting list.")
    BANNED = enum_value("BANNED", description="The account is banned.")
    INVALID_INVITATION = enum_value(
        "INVALID_INVITATION", description="The invitation token is not valid."
    )
    CANNOT_BAN_SELF = enum_value(
        "CANNOT_BAN_SELF", description="The caller cannot ban or unban their own account."
    )
    LAST_ADMIN = enum_value("LAST_ADMIN", description="The user is the last admin.")
    CANNOT_ERASE_SELF = enum_value(
        "CANNOT_ERASE_SELF", description="Admins cannot erase their own account."
    )
    ADMIN_REQUIRED = enum_value("ADMIN_REQUIRED", description="Only an admin may do this.")


@strawberry.interface(
    description="An expected reason why a request was not carried out. Clients can select `code` "
    "and `message` of every refusal, including those that are added later."
)
class Refusal:
    code: RefusalCode = field(description="The reason, for programs.")
    message: str = field(description="The reason as a sentence in English, to show to users.")


@strawberry.type
class RefusalWithoutDetails(Refusal):
    """A refusal without further fields. The schema lists its subclasses only."""

    CODE: ClassVar[RefusalCode]
    MESSAGE: ClassVar[str]

    @classmethod
    def create(cls) -> Self:
        """Show the refusal to the client."""
        return cls(code=cls.CODE, message=cls.MESSAGE)


@strawberry.type(description="The problem with one field of an input.")
class FieldProblem:
    field: str = strawberry.field(description="The name of the field.")
    message: str = strawberry.field(description="The problem as a sentence in English.")


@strawberry.type(description="At least one field of the input is invalid. Nothing was changed.")
class InvalidInput(Refusal):
    fields: list[FieldProblem] = field(description="Every invalid field with its problem.")

    @classmethod
    def from_domain(cls, outcome: validation.InvalidInput, _view: ResultView) -> Self:
        """Show the invalid fields to the client that sent them."""
        problems = [FieldProblem(field=p.field, message=p.message) for p in outcome.problems]
        return cls(
            code=RefusalCode.INVALID_INPUT,
            message=" ".join(f"{problem.field}: {problem.message}" for problem in problems),
            fields=problems,
        )


@strawberry.type(description="The idempotency key was sent before with other arguments.")
class KeyReused(Refusal):
    idempotency_key: str = field(
        description="The key that was sent. Empty in the outcome of a ticket, which stores only "
        "the hash of the key."
    )

    @classmethod
    def from_domain(cls, outcome: refusals.KeyReused, _view: ResultView) -> Self:
        """Show the key to the client that sent it."""
        return cls(
            code=RefusalCode.KEY_REUSED,
            message="This idempotency key was already used for another request.",
            idempotency_key=outcome.key,
        )
