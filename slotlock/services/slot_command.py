"""The interface of every operation on the bookings of slots."""

from datetime import datetime
from typing import ClassVar, Protocol, TypeVar

from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.booking.booking import BookingId, SlotId
from slotlock.domain.booking.decision import CommandResult, Decision, LoadedState
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo.slots.change_set import SlotUpdate
from slotlock.infrastructure.mongo.slots.preconditions import Precondition
from slotlock.services.idempotency_key import IdempotencyKey

Outcome_co = TypeVar("Outcome_co", covariant=True)


class SlotCommand(Protocol[Outcome_co]):
    """One operation on slots: what it reads, what it decides and what its write depends on.

    A command is a value: the executor may apply it several times, each time to newer slots.
    """

    # The word for the operation in metrics and in the request hash of an idempotency key.
    name: ClassVar[str]

    @property
    def slot_ids(self) -> tuple[SlotId, ...]:
        """The slots that the command locks and reads, the one it is mainly about first."""

    @property
    def user_ids(self) -> tuple[UserId, ...]:
        """The users whose bookings and waitlist entries in these slots the command reads."""

    @property
    def booking_ids(self) -> tuple[BookingId, ...]:
        """The bookings that the command reads by their ids."""
        return ()

    @property
    def waitlist_depth(self) -> int:
        """How many entries at the beginning of each waiting list the command may promote."""
        return 1

    @property
    def team_versions(self) -> tuple[TeamVersion, ...]:
        """The teams that permit the command; its write fails once one of them has changed."""
        return ()

    @property
    def preconditions(self) -> tuple[Precondition, ...]:
        """The other documents that must be unchanged when the command is written."""
        return ()

    @property
    def idempotency_key(self) -> IdempotencyKey | None:
        """The key under which an accepted outcome is recorded in the same transaction."""
        return None

    def audit_note(self, _change: SlotUpdate) -> AuditNote | None:
        """Return the audit note for a changed slot; only edits by organizers write notes."""
        return None

    def apply(self, state: LoadedState, now: datetime) -> Decision[Outcome_co]:
        """Decide the command on this state. A slot that does not exist is not in it."""

    def check_result(self, result: CommandResult[object]) -> CommandResult[Outcome_co]:
        """Return the result if this operation can have its outcome.

        Raises:
            UnexpectedOutcomeError: The outcome belongs to another operation.
        """
        return CommandResult(self.check_outcome(result.outcome), result.slots)

    @staticmethod
    def check_outcome(outcome: object) -> Outcome_co:
        """Return the outcome if this operation can have it.

        Raises:
            UnexpectedOutcomeError: The outcome belongs to another operation.
        """


class UnexpectedOutcomeError(TypeError):
    """An operation was given an outcome of another one: a bug, or a damaged stored record."""
