"""Changes of one existing booking by the rules of the domain, such as `cancel` or `check_in`."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import ParamSpec, TypeVar, cast

from prometheus_client import Counter

from slotlock.domain.booking.booking import Booking, BookingId, SlotId
from slotlock.domain.booking.booking_outcomes import BookingAlreadyDone
from slotlock.domain.booking.booking_refusals import BookingNotFound, UserBanned
from slotlock.domain.booking.decision import (
    BookingChangeRequest,
    BookingRule,
    CommandResult,
    Decision,
    LoadedState,
    refuse,
)
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import UserContexts
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.request_deadline import WaitDeadline
from slotlock.services.booking.permissions import (
    account_refusal,
    with_known_dependents,
    with_led_slots,
    with_reader,
)
from slotlock.services.commands.executor import execute
from slotlock.services.commands.idempotency import execute_once
from slotlock.services.container import Services
from slotlock.services.idempotency_key import IdempotencyKey
from slotlock.services.slot_command import SlotCommand, UnexpectedOutcomeError

BOOKING_ACTIONS_TOTAL = Counter(
    "slotlock_booking_actions_total",
    "Responses to booking actions by outcome",
    ["action", "outcome"],
)

Arguments = ParamSpec("Arguments")
Outcome = TypeVar("Outcome")


@value_object
class BookingChangeCommand(SlotCommand[object]):
    """The change of one existing booking, which checks the outcome itself."""

    request: BookingChangeRequest
    decide: Callable[[SlotState, UserContexts, datetime], Decision[object]]
    idempotency_key: IdempotencyKey | None = None

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        return (self.request.slot_id,)

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        return (self.request.caller.user_id,)

    @property
    def booking_ids(self) -> tuple[BookingId, ...]:  # type: ignore[override]
        return (self.request.booking_id,)

    def apply(self, state: LoadedState, now: datetime) -> Decision[object]:
        slot = state.slots.get(self.request.slot_id)
        if slot is None:
            return refuse(BookingNotFound(self.request.slot_id, self.request.booking_id))
        return self.decide(slot, state.users, now)


async def change_booking(
    services: Services,
    rule: BookingRule[Arguments, Outcome],
    request: BookingChangeRequest,
    *args: Arguments.args,
    **arguments: Arguments.kwargs,
) -> CommandResult[Outcome]:
    """Change a booking by a rule once per idempotency key, also one that has ended."""
    sent = {name: value for name, value in sorted(arguments.items()) if value is not None}
    key = IdempotencyKey.for_change(request, rule.name, *([sent] if sent else ()))
    deadline = WaitDeadline.after(request.wait_s)

    async def change(request: BookingChangeRequest) -> CommandResult[object]:
        def decide(slot: SlotState, users: UserContexts, now: datetime) -> Decision[object]:
            decision = rule.decide(slot, users, request, now, *args, **arguments)
            done = decision.outcome
            if (
                rule.gives_place
                and isinstance(done, BookingAlreadyDone)
                and done.booking.user_id != request.caller.user_id
                and done.booking.user_id not in request.not_banned
            ):
                return refuse(UserBanned(done.booking.user_id))  # until the account is read
            return decision

        command = BookingChangeCommand(request, decide, key)
        changed = await execute(services, command, deadline.remaining_s)
        if isinstance(changed.outcome, UserBanned):
            related = await with_account(services, request, changed.outcome.user_id)
        elif isinstance(changed.outcome, BookingNotFound):
            related = await with_relations(services, request)
        else:
            return changed
        if related:
            return replace(await change(related), caller=related.caller)
        return await _ended_result(services, rule, request) or changed

    result = await execute_once(services, key, request.slot_id, deadline, partial(change, request))
    if not isinstance(result.outcome, rule.outcomes):
        raise UnexpectedOutcomeError(result.outcome)
    BOOKING_ACTIONS_TOTAL.labels(rule.name, type(result.outcome).__name__).inc()
    if isinstance(result.outcome, BookingAlreadyDone):
        result = await with_manager(services, request.caller, result, result.outcome.booking)
    return CommandResult(cast("Outcome", result.outcome), result.slots, result.caller)


async def with_manager(
    services: Services, caller: Caller, result: CommandResult[object], booking: Booking
) -> CommandResult[object]:
    """Return the result of a change with its caller, also if it is a replay for a guardian."""
    others = () if booking.is_managed_by(caller) else (booking.user_id,)
    return await with_reader(services, caller, result, *others)


async def with_relations(
    services: Services, request: BookingChangeRequest
) -> BookingChangeRequest | None:
    """Return the request of a guardian, or of who leads the slot; None if known, or not so."""
    known = request.caller
    if known.is_organizer or known.leads or known.acts_for:
        return None
    dependents = await services.users.find_dependents([known.user_id])
    caller = with_known_dependents(known, dependents)
    caller = await with_led_slots(services, caller, [request.slot_id])
    if caller is known:
        return None
    not_banned = frozenset(each.id for each in dependents if not each.banned)
    return replace(request, caller=caller, not_banned=not_banned)


async def with_account(
    services: Services, request: BookingChangeRequest, user_id: UserId
) -> BookingChangeRequest | None:
    """Return the request with what the account of the user of its booking says; None if banned.

    Nobody gets a place for a banned user, as in `check_booking_permissions`.
    """
    users = await services.users.find_many([user_id])
    if account_refusal(user_id, users.get(user_id)):
        return None
    caller = with_known_dependents(request.caller, users.values())
    return replace(request, caller=caller, not_banned=request.not_banned | {user_id})


async def _ended_result(
    services: Services, rule: BookingRule[Arguments, Outcome], request: BookingChangeRequest
) -> CommandResult[object] | None:
    """Return the result for a booking that has ended; None if it is not found."""
    ended = await find_ended(services, request, by_leaders=rule.by_leaders)
    if ended is None:
        return None
    booking, slot = ended
    outcome = rule.ended_outcome(booking)
    return None if outcome is None else CommandResult(outcome, {slot.id: slot})


async def find_ended(
    services: Services, request: BookingChangeRequest, *, by_leaders: bool = False
) -> tuple[Booking, SlotState] | None:
    """Return the ended booking and its slot, if the caller may find the booking."""
    booking = await services.ended_bookings.find(request.booking_id)
    if booking is None or booking.slot_id != request.slot_id:
        return None
    caller = request.caller
    if not (booking.is_led_by(caller) if by_leaders else booking.is_managed_by(caller)):
        return None
    query = SlotQuery(request.slot_id, services.now(), [request.caller.user_id])
    slot = await services.slots.find(query)
    return None if slot is None else (booking, slot)
