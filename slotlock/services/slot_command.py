"""The interface of every operation on the bookings of slots, and what a batch needs of them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar, get_args

from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.decision import CommandResult, Decision, LoadedState
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.slots.slot_query import SlotQuery
from slotlock.infrastructure.mongo.slots.write_set import Precondition, SlotWrite
from slotlock.services.idempotency_key import IdempotencyKey

Outcome_co = TypeVar("Outcome_co", covariant=True)

# Waitlist entries to load besides those that can be promoted: some users have booked elsewhere.
EXTRA_WAITLIST_DEPTH = 4


class SlotCommand(Generic[Outcome_co]):
    """One operation on slots: what it reads, what it decides and what its write depends on.

    A command is a value: the executor may apply it several times, each time to newer slots.
    `outcomes` are those that the class names in its brackets, as in `SlotCommand[BookOutcome]`.
    """

    outcomes: ClassVar[Any] = object
    # Only these commands have preconditions and audit notes: edits by organizers, and of draws.
    is_edit: ClassVar[bool] = False
    # Of the following, most commands have these values, and some have properties.
    # The bookings that the command reads by their ids.
    booking_ids: tuple[BookingId, ...] = ()
    # How many entries at the beginning of each waiting list the command may promote.
    waitlist_depth: int = 1
    # The teams that permit the command; its write fails once one of them has changed.
    team_versions: tuple[TeamVersion, ...] = ()
    # The other documents that must be unchanged when the command is written.
    preconditions: tuple[Precondition, ...] = ()
    # The key under which an accepted outcome is recorded in the same transaction.
    idempotency_key: IdempotencyKey | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if bases := cls.__dict__.get("__orig_bases__"):
            (cls.outcomes,) = get_args(bases[0])

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        """The slots that the command locks and reads, the one it is mainly about first."""
        raise NotImplementedError

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        """The users whose bookings and waitlist entries in these slots the command reads."""
        raise NotImplementedError

    def audit_note(self, _change: SlotWrite) -> AuditNote | None:
        """Return the audit note for a changed slot; only edits by organizers write notes."""
        return None

    def apply(self, state: LoadedState, now: datetime) -> Decision[Outcome_co]:
        """Decide the command on this state. A slot that does not exist is not in it."""
        raise NotImplementedError

    def preview(self, state: LoadedState, now: datetime) -> Decision[Outcome_co] | None:
        """Return the decision of `apply` if it changes nothing, else None."""
        decision = self.apply(state, now)
        return None if decision.changed_slots else decision

    def check_result(self, result: CommandResult[object]) -> CommandResult[Outcome_co]:
        """Return the result if this operation can have its outcome.

        Raises:
            UnexpectedOutcomeError: The outcome belongs to another operation.
        """
        if not isinstance(result.outcome, self.outcomes):
            raise UnexpectedOutcomeError(result.outcome)
        known: Any = result
        checked: CommandResult[Outcome_co] = known
        return checked

    @classmethod
    def check_outcome(cls, outcome: Any) -> Outcome_co:
        """Return the outcome if this operation can have it.

        Raises:
            UnexpectedOutcomeError: The outcome belongs to another operation.
        """
        if not isinstance(outcome, cls.outcomes):
            raise UnexpectedOutcomeError(outcome)
        known: Outcome_co = outcome
        return known


class UnexpectedOutcomeError(TypeError):
    """An operation was given an outcome of another one: a bug, or a damaged stored record."""


def slot_query(
    slot_id: SlotId, commands: Sequence[SlotCommand[object]], now: datetime
) -> SlotQuery:
    """Return the query for what the commands need of a slot."""
    user_ids, booking_ids, waitlist_depth = set[UserId](), set[BookingId](), EXTRA_WAITLIST_DEPTH
    for command in commands:
        user_ids.update(command.user_ids)
        booking_ids.update(command.booking_ids)
        waitlist_depth += command.waitlist_depth
    return SlotQuery(slot_id, now, tuple(user_ids), tuple(booking_ids), waitlist_depth)


def slot_ids_of(commands: Iterable[SlotCommand[object]]) -> list[SlotId]:
    """Return the slots of the commands, in the order in which locks are acquired."""
    return sorted({slot_id for command in commands for slot_id in command.slot_ids})
