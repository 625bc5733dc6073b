"""Booking one slot, or several slots all or none: for the caller or for others.

`book_series` books the slots of a series with a command of this module.
"""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from typing import ClassVar, Self

from prometheus_client import Counter

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.booking_outcomes import (
    BookAllOutcome,
    BookOutcome,
    BookSeriesOutcome,
    NoneBooked,
)
from slotlock.domain.booking.booking_refusals import Locked, OnBehalfRefusal, SlotNotFound
from slotlock.domain.booking.decision import CommandResult, Decision, LoadedState, refuse
from slotlock.domain.booking.rules.book import (
    BookingRequest,
    SeriesMode,
    SlotClaim,
    book,
    book_all,
    book_series,
    book_unchanged,
)
from slotlock.domain.campaigns.terms import SlotAdmission
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.ids import new_booking_id
from slotlock.infrastructure.request_deadline import WaitDeadline
from slotlock.infrastructure.telemetry.buffered_metrics import BufferedCounter
from slotlock.services.booking.booking_changes import BOOKING_ACTIONS_TOTAL
from slotlock.services.booking.permissions import (
    BookingPermissions,
    Claim,
    check_booking_permissions,
    with_reader,
)
from slotlock.services.commands.current_slot import with_current_slot
from slotlock.services.commands.executor import execute
from slotlock.services.commands.idempotency import execute_once
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.slot_command import SlotCommand

BOOKINGS_TOTAL = Counter(
    "slotlock_bookings_total",
    "Bookings by outcome, tickets included",
    ["outcome"],
)
# A team may change between the permission check and the write.
MAX_TEAM_ATTEMPTS = 3


@value_object
class BookingOptions:
    """How to book: as a hold or not, how long to wait in seconds, and the idempotency key."""

    hold: bool = False
    wait_s: float = 0.0
    key: str | None = None

    def to_idempotency_key(self, caller: Caller, *request_parts: object) -> IdempotencyKey | None:
        """Return the caller's key for this request, if the caller sent one."""
        if not self.key:
            return None
        return IdempotencyKey.for_request(caller.user_id, self.key, *request_parts, self.hold)


@value_object
class BookSlotCommand(SlotCommand[BookOutcome]):
    """Book or hold a place in one slot for one user."""

    name: ClassVar[str] = "book"

    caller: Caller
    slot_id: SlotId
    request: BookingRequest
    idempotency_key: IdempotencyKey | None = None
    team_versions: tuple[TeamVersion, ...] = ()

    @classmethod
    def create(
        cls,
        caller: Caller,
        slot_id: SlotId,
        user_id: UserId,
        hold: bool,
        key: IdempotencyKey | None,
        *,
        is_queued: bool = False,
    ) -> Self:
        """Return a command with a new booking id, for a request of the queue or one without it."""
        request = booking_request(caller, user_id, hold, is_queued=is_queued)
        return cls(caller, slot_id, request, key)

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        return (self.slot_id,)

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        return (self.request.user_id, self.caller.user_id)

    @property
    def named_claims(self) -> tuple[Claim, ...]:
        """The slot of each claim, and the user that the place is for."""
        return ((self.slot_id, self.request.user_id),)

    def permitted(self, by: BookingPermissions) -> Self:
        """Return the command with what permits it."""
        request = by.permit(self.slot_id, self.request)
        return replace(self, request=request, team_versions=by.team_versions)

    def not_permitted(self, refusals: Mapping[Claim, OnBehalfRefusal]) -> OnBehalfRefusal:
        """Return the outcome if the caller may not book for the user."""
        return refusals[self.slot_id, self.request.user_id]

    def apply(self, state: LoadedState, now: datetime) -> Decision[BookOutcome]:
        slot = state.slots.get(self.slot_id)
        if slot is None:
            return refuse(SlotNotFound(self.slot_id))
        return book(slot, state.users, self.request, now)

    def preview(self, state: LoadedState, now: datetime) -> Decision[BookOutcome] | None:
        """Return the decision without the booking that it would add."""
        slot = state.slots.get(self.slot_id)
        if slot is None:
            return refuse(SlotNotFound(self.slot_id))
        return book_unchanged(slot, state.users, self.request, now)


def permitted_claims(claims: Iterable[SlotClaim], by: BookingPermissions) -> tuple[SlotClaim, ...]:
    """Return claims with what permits each of them."""
    return tuple(replace(each, request=by.permit(each.slot_id, each.request)) for each in claims)


@value_object
class BookSlotsCommand(SlotCommand[BookAllOutcome]):
    """Book or hold several places in one or more slots, all of them or none."""

    name: ClassVar[str] = "bookAll"

    caller: Caller
    claims: tuple[SlotClaim, ...]
    idempotency_key: IdempotencyKey | None = None
    team_versions: tuple[TeamVersion, ...] = ()

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        return tuple(sorted({claim.slot_id for claim in self.claims}))

    @property
    def named_claims(self) -> tuple[Claim, ...]:
        """The slot of each claim, and the user that the place is for."""
        return tuple((claim.slot_id, claim.request.user_id) for claim in self.claims)

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        return (*{user_id for _, user_id in self.named_claims}, self.caller.user_id)

    def permitted(self, by: BookingPermissions) -> Self:
        """Return the command with what permits it."""
        claims = permitted_claims(self.claims, by)
        return replace(self, claims=claims, team_versions=by.team_versions)

    def not_permitted(self, refusals: Mapping[Claim, OnBehalfRefusal]) -> BookAllOutcome:
        """Return the outcome if the caller may not book for one of the users."""
        return NoneBooked(tuple(map(refusals.get, self.named_claims)))

    @property
    def waitlist_depth(self) -> int:  # type: ignore[override]
        return len(self.claims)

    def apply(self, state: LoadedState, now: datetime) -> Decision[BookAllOutcome]:
        return book_all(state, self.claims, now)


@value_object
class BookSeriesCommand(SlotCommand[BookSeriesOutcome]):
    """Book or hold a place in slots of a series for one user. Each claim is for another slot."""

    name: ClassVar[str] = "bookSeries"

    caller: Caller
    user_id: UserId
    claims: tuple[SlotClaim, ...]
    mode: SeriesMode
    idempotency_key: IdempotencyKey | None = None
    team_versions: tuple[TeamVersion, ...] = ()

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        return tuple(claim.slot_id for claim in self.claims)

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        return (self.user_id, self.caller.user_id)

    @property
    def named_claims(self) -> tuple[Claim, ...]:
        """The slot of each claim, and the user that the place is for."""
        return tuple((claim.slot_id, self.user_id) for claim in self.claims)

    def permitted(self, by: BookingPermissions) -> Self:
        """Return the command with what permits it."""
        claims = permitted_claims(self.claims, by)
        return replace(self, claims=claims, team_versions=by.team_versions)

    def not_permitted(self, refusals: Mapping[Claim, OnBehalfRefusal]) -> BookSeriesOutcome:
        """Return the outcome if the caller may not book for the user."""
        return next(iter(refusals.values()))

    def apply(self, state: LoadedState, now: datetime) -> Decision[BookSeriesOutcome]:
        return book_series(state, self.claims, self.mode, now)


async def book_slot(
    services: Services, caller: Caller, slot_id: SlotId, user_id: UserId, options: BookingOptions
) -> CommandResult[BookOutcome]:
    """Book or hold a place for one user."""
    key = None
    if options.key:
        key = options.to_idempotency_key(caller, BookSlotCommand.name, slot_id, user_id)
    command = BookSlotCommand.create(caller, slot_id, user_id, options.hold, key)
    return command.check_result(await execute_booking(services, command, options.wait_s))


async def execute_booking(
    services: Services, command: BookSlotCommand, wait_s: float
) -> CommandResult[object]:
    """Execute a booking once per idempotency key.

    The outcome is a BookOutcome. For queued requests it may be RequestLost: the ticket has reported
    the loss already.
    """
    key, is_own = command.idempotency_key, command.request.user_id == command.caller.user_id
    result: CommandResult[object]
    if is_own and key is None:
        result = await execute(services, command, wait_s)
    else:
        deadline = WaitDeadline.after(wait_s)
        booking = partial(execute_if_permitted, services, command, deadline)
        result = await execute_once(services, key, command.slot_id, deadline, booking)
        result = await with_reader(services, command.caller, result, command.request.user_id)
    if not result.slots:  # as a recorded one
        result = await with_current_slot(services, result, command.caller.user_id)
    _outcome_counter(type(result.outcome).__name__).inc()
    return result


@cache
def _outcome_counter(label: str) -> BufferedCounter:
    return BufferedCounter(BOOKINGS_TOTAL.labels(label))


async def book_slots(
    services: Services,
    caller: Caller,
    claims: Sequence[tuple[SlotId, UserId]],
    options: BookingOptions,
) -> CommandResult[BookAllOutcome]:
    """Book or hold a place for every claim, or none at all."""
    key = options.to_idempotency_key(caller, BookSlotsCommand.name, *claims)
    requests = (
        SlotClaim(slot_id, booking_request(caller, user_id, options.hold))
        for slot_id, user_id in claims
    )
    command = BookSlotsCommand(caller, tuple(requests), key)
    deadline = WaitDeadline.after(options.wait_s)
    booking = partial(execute_if_permitted, services, command, deadline)
    result = await execute_once(services, key, command.slot_ids[0], deadline, booking)
    result = await with_reader(services, caller, result, *(user_id for _, user_id in claims))
    final = command.check_result(result)
    BOOKING_ACTIONS_TOTAL.labels(command.name, type(final.outcome).__name__).inc()
    return final


def execute_if_permitted(
    services: Services,
    command: BookSlotCommand | BookSlotsCommand | BookSeriesCommand,
    deadline: WaitDeadline,
) -> Awaitable[CommandResult[object]]:
    """Execute a booking, unless the caller may not book for one of its users."""
    if all(user_id == command.caller.user_id for _, user_id in command.named_claims):
        return execute(services, command, deadline.remaining_s)
    return _execute_for_others(services, command, deadline)


async def _execute_for_others(
    services: Services,
    command: BookSlotCommand | BookSlotsCommand | BookSeriesCommand,
    deadline: WaitDeadline,
) -> CommandResult[object]:
    result: CommandResult[object]
    for _ in range(MAX_TEAM_ATTEMPTS):
        permissions = await check_booking_permissions(
            services, command.caller, command.named_claims
        )
        if permissions.refusals:
            refusal = command.not_permitted(permissions.refusals)
            return CommandResult(refusal, caller=permissions.caller)
        attempt = command.permitted(permissions)
        result = await execute(services, attempt, deadline.remaining_s)
        if not (permissions.team_versions and isinstance(result.outcome, Locked)):
            break
    return replace(result, caller=permissions.caller)


def booking_request(
    caller: Caller, user_id: UserId, hold: bool, *, is_queued: bool = False
) -> BookingRequest:
    """Return the request for a booking with a new id, of the queue or without it.

    For another user, it lacks what permits it (`BookingPermissions.permit`).
    """
    admission = SlotAdmission.QUEUE_ONLY if is_queued else SlotAdmission.ANY
    return BookingRequest(
        user_id,
        new_booking_id(),
        caller.user_id,
        hold,
        admission=SlotAdmission.DRAW if caller.is_organizer else admission,
    )
