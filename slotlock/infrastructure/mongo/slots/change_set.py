"""The changes that one commit writes, and its results."""

from enum import Enum, auto

from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS, UserContexts
from slotlock.domain.shared.values import value_object
from slotlock.domain.teams.team import TeamVersion
from slotlock.infrastructure.mongo.client import CommitUnknownError
from slotlock.infrastructure.mongo.idempotency.records import IdempotencyRecord
from slotlock.infrastructure.mongo.slots.preconditions import Precondition


class CommitResult(Enum):
    """Whether a change set was written, as a whole."""

    WRITTEN = auto()
    # Nothing was written, because another writer was first: load and decide again.
    CONFLICT = auto()
    # MongoDB did not confirm the write in time: it may be there now, or later, or never.
    UNKNOWN = auto()


def check_written(result: CommitResult) -> bool:
    """Return whether the change was written; False means that nothing was.

    Raises:
        CommitUnknownError: the result is unknown. A new decision could mistake this write for
            another writer's.
    """
    if result is CommitResult.UNKNOWN:
        raise CommitUnknownError("MongoDB did not confirm a write in time")
    return result is CommitResult.WRITTEN


@value_object
class SlotUpdate:
    """A slot as it was loaded and as it will be; `after.change` says what changed."""

    before: SlotState
    after: SlotState


@value_object
class ChangeSet:
    """The changes that are written together, or not at all.

    `users`, `team_versions` and `preconditions` are what the decision relied on besides the slots.
    """

    slot_updates: tuple[SlotUpdate, ...]
    users: UserContexts = NO_CONTEXTS
    idempotency_records: tuple[IdempotencyRecord, ...] = ()
    team_versions: tuple[TeamVersion, ...] = ()
    new_slots: tuple[SlotState, ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    audit_notes: tuple[AuditNote, ...] = ()

    @property
    def only_adds_to_one_slot(self) -> bool:
        """Whether one slot gains bookings, and nothing else is written."""
        more = (
            self.idempotency_records,
            self.team_versions,
            self.new_slots,
            self.preconditions,
            self.audit_notes,
        )
        if any(more) or len(self.slot_updates) != 1:
            return False
        after = self.slot_updates[0].after
        return after.change.only_adds_bookings and not after.slot.depends_on_other_bookings
