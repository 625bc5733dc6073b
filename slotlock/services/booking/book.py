"""Getting a place: for oneself, for a team-mate, for anybody as an organiser; one or several."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from prometheus_client import Counter

from slotlock.domain.booking import book as rules
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.outcomes import BookAllOutcome, BookOutcome, NoneBooked
from slotlock.domain.booking.refusals import (
    Locked,
    NotTeammate,
    OnBehalfRefusal,
    SlotNotFound,
    UserBanned,
    UserNotFound,
)
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.user import Caller, UserId
from slotlock.infrastructure.mongo.ids import new_booking_id
from slotlock.services.admission.tickets import replay_outcome
from slotlock.services.booking.changes import BOOKING_ACTIONS_TOTAL
from slotlock.services.commands.decisions import SlotCommand, on_slot
from slotlock.services.commands.executor import execute
from slotlock.services.commands.idempotency import IdempotencyKey, run_once
from slotlock.services.commands.outcome_labels import outcome_label
from slotlock.services.container import Services

BOOKINGS_TOTAL = Counter(
    "slotlock_bookings_total", "Answers to bookSlot, and of tickets, by outcome", ["outcome"]
)
# Somebody joining or leaving a team meanwhile makes what was seen of it stale.
MAX_TEAM_ATTEMPTS = 3

Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class BookingOptions:
    """How a place is wanted: as a hold, after waiting for so long, under this key."""

    hold: bool = False
    wait_s: float = 0.0
    key: str | None = None

    def to_idempotency_key(self, caller: Caller, *request_parts: Any) -> IdempotencyKey | None:
        """The slip of the key that came with the wish, if one did."""
        return (
            IdempotencyKey.for_request(caller.user_id, self.key, *request_parts, self.hold)
            if self.key
            else None
        )


@dataclass(frozen=True, slots=True)
class BookSlotCommand:
    """A place in one slot for one person, and who asks for it."""

    caller: Caller
    slot_id: SlotId
    user_id: UserId
    hold: bool
    idempotency_key: IdempotencyKey | None = None

    def to_slot_command(
        self, team_versions: tuple[TeamVersion, ...] = ()
    ) -> SlotCommand[BookOutcome]:
        """What the desk shall do."""
        party = _booking_request(self.caller, self.user_id, self.hold)
        otherwise: BookOutcome = SlotNotFound(self.slot_id)
        return SlotCommand(
            on_slot(self.slot_id, lambda slot, now: rules.book(slot, party, now), otherwise),
            user_ids=(self.user_id, self.caller.user_id),
            idempotency_key=self.idempotency_key,
            team_versions=team_versions,
        )


@dataclass(frozen=True, slots=True)
class BookingPermissions:
    """Whom the caller may book for, and the teams that say so."""

    refusals: dict[UserId, OnBehalfRefusal]
    team_versions: tuple[TeamVersion, ...] = ()


async def book(
    services: Services, caller: Caller, slot_id: SlotId, user_id: UserId, options: BookingOptions
) -> BookOutcome:
    """Book or hold a place for one person."""
    slip = options.to_idempotency_key(caller, "book", slot_id, user_id)
    return await execute_booking(
        services, BookSlotCommand(caller, slot_id, user_id, options.hold, slip), options.wait_s
    )


async def execute_booking(
    services: Services, command: BookSlotCommand, wait_s: float
) -> BookOutcome:
    """Book or hold a place as somebody asks for it."""

    async def attempt(permissions: BookingPermissions, wait_s: float) -> BookOutcome:
        if refusal := permissions.refusals.get(command.user_id):
            return refusal
        return await execute(
            services, [command.slot_id], command.to_slot_command(permissions.team_versions), wait_s
        )

    run = _retry_on_team_change(services, command.caller, [command.user_id], attempt)
    kept = await run_once(services, command.idempotency_key, command.slot_id, wait_s, run)
    # The key may be a ticket's, which was refused.
    outcome: BookOutcome = await replay_outcome(services, kept, command.caller.user_id)
    BOOKINGS_TOTAL.labels(outcome_label(outcome)).inc()
    return outcome


async def book_all(
    services: Services,
    caller: Caller,
    claims: Sequence[tuple[SlotId, UserId]],
    options: BookingOptions,
) -> BookAllOutcome:
    """Book or hold a place for every claim, or none at all."""

    async def attempt(permissions: BookingPermissions, wait_s: float) -> BookAllOutcome:
        if permissions.refusals:
            return NoneBooked(tuple(permissions.refusals.get(user_id) for _, user_id in claims))
        wanted = [
            rules.SlotClaim(slot, _booking_request(caller, user_id, options.hold))
            for slot, user_id in claims
        ]
        request = SlotCommand(
            lambda slots, now: rules.book_all(slots, wanted, now),
            user_ids=(*people, caller.user_id),
            idempotency_key=slip,
            team_versions=permissions.team_versions,
            waitlist_depth=len(claims),
        )
        return await execute(services, slot_ids, request, wait_s)

    people = tuple({user_id for _, user_id in claims})
    slot_ids = sorted({slot_id for slot_id, _ in claims})
    slip = options.to_idempotency_key(caller, "bookAll", *claims)
    run = _retry_on_team_change(services, caller, people, attempt)
    outcome: BookAllOutcome = await run_once(services, slip, slot_ids[0], options.wait_s, run)
    BOOKING_ACTIONS_TOTAL.labels("bookAll", outcome_label(outcome)).inc()
    return outcome


def _booking_request(caller: Caller, user_id: UserId, hold: bool) -> rules.BookingRequest:
    organised = caller.is_organizer and user_id != caller.user_id
    return rules.BookingRequest(user_id, new_booking_id(), caller.user_id, hold, organised)


def _retry_on_team_change(
    services: Services,
    caller: Caller,
    user_ids: Sequence[UserId],
    attempt: Callable[[BookingPermissions, float], Awaitable[Outcome]],
) -> Callable[[float], Awaitable[Outcome | Locked]]:
    # Who left a team before the booking was written was not booked for.
    async def run(wait_s: float) -> Outcome | Locked:
        until = asyncio.get_running_loop().time() + wait_s
        for _ in range(MAX_TEAM_ATTEMPTS):
            allowed = await check_booking_permissions(services, caller, user_ids)
            left = max(until - asyncio.get_running_loop().time(), 0.0)
            outcome = await attempt(allowed, left)
            if not (allowed.team_versions and isinstance(outcome, Locked)):
                break
        return outcome

    return run


async def check_booking_permissions(
    services: Services, caller: Caller, user_ids: Sequence[UserId]
) -> BookingPermissions:
    """Whom of these people the caller may book for now."""
    others = {user_id for user_id in user_ids if user_id != caller.user_id}
    if not others:
        return BookingPermissions({})
    mates: Collection[UserId] = others
    teams: tuple[TeamVersion, ...] = ()
    if not caller.is_organizer:
        mates, teams = await services.teams.find_teammates(caller.user_id, others)
    refusals: dict[UserId, OnBehalfRefusal] = {i: NotTeammate(i) for i in others if i not in mates}
    known = await services.users.find_many(mates)
    refusals |= {user_id: UserNotFound(user_id) for user_id in mates if user_id not in known}
    refusals |= {user.id: UserBanned(user.id) for user in known.values() if user.banned}
    return BookingPermissions(refusals, teams)
