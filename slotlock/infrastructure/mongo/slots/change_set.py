"""The changes that one commit writes, the documents that hold them, and the results."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import Enum, auto

from pymongo import DeleteOne, UpdateOne

from slotlock.domain.audit.notes import AuditNote
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS, UserContext, UserContexts
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.shared.values import value_object
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo import teams
from slotlock.infrastructure.mongo.audit.notes import note_to_document
from slotlock.infrastructure.mongo.client import CommitUnknownError, Document
from slotlock.infrastructure.mongo.idempotency.records import (
    IdempotencyRecord,
    records_to_documents,
)
from slotlock.infrastructure.mongo.slots import document_updates, documents
from slotlock.infrastructure.mongo.slots.booking_documents import (
    ended_booking_to_document,
    ended_waitlist_entry_to_document,
)
from slotlock.infrastructure.mongo.slots.preconditions import Precondition, version_check
from slotlock.infrastructure.mongo.slots.user_contexts import user_version_updates
from slotlock.infrastructure.mongo.terms_documents import campaign_to_document


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
class NewCampaign:
    """A campaign that is inserted with its slots."""

    campaign: Campaign
    created_at: datetime


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
    new_campaigns: tuple[NewCampaign, ...] = ()
    deleted_slots: tuple[SlotState, ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    audit_notes: tuple[AuditNote, ...] = ()

    @property
    def only_adds_to_one_slot(self) -> bool:
        """Whether one slot gains bookings, and nothing else is written."""
        if self.idempotency_records or self.must_commit_alone or len(self.slot_updates) != 1:
            return False
        after = self.slot_updates[0].after
        return after.change.only_adds_bookings and not after.slot.depends_on_other_bookings

    @property
    def must_commit_alone(self) -> bool:
        """Whether it concerns documents that other change sets of a group may concern, too."""
        edits = self.new_slots or self.deleted_slots or self.preconditions or self.audit_notes
        return bool(self.team_versions or edits or self.new_campaigns)


def combine(change_sets: Sequence[ChangeSet]) -> ChangeSet:
    """Return one change set for changes that have no user and no document in common."""
    users: dict[UserId, UserContext] = {}
    for each in change_sets:
        users |= each.users.by_user
    return ChangeSet(
        tuple(update for each in change_sets for update in each.slot_updates),
        UserContexts(users),
        tuple(record for each in change_sets for record in each.idempotency_records),
    )


def inserts_of(changes: ChangeSet) -> Iterator[tuple[str, list[Document]]]:
    """Yield the collections, each with the documents to insert."""
    yield (
        "ended_bookings",
        [
            ended_booking_to_document(booking)
            for update in changes.slot_updates
            for booking in update.after.change.ended
        ],
    )
    yield (
        "ended_waitlist_entries",
        [
            ended_waitlist_entry_to_document(ended)
            for update in changes.slot_updates
            for ended in update.after.change.ended_entries
        ],
    )
    yield "idempotency_records", records_to_documents(changes.idempotency_records)
    yield (
        "campaigns",
        [campaign_to_document(new.campaign, new.created_at) for new in changes.new_campaigns],
    )
    yield "slots", [documents.to_document(slot) for slot in changes.new_slots]
    yield "audit_notes", [note_to_document(note) for note in changes.audit_notes]


def updates_of(changes: ChangeSet) -> Iterator[tuple[str, list[UpdateOne | DeleteOne]]]:
    """Yield the collections, each with its updates, which are conditional on what was loaded.

    The slots are last: if the process dies before them, its transaction does not block them.
    """
    yield "user_versions", _merge_user_version_updates(changes)
    yield (
        "teams",
        [
            UpdateOne(teams.version_filter(version), teams.touch_update())
            for version in changes.team_versions
        ],
    )
    for precondition in changes.preconditions:
        name, update = version_check(precondition)
        yield name, [update]
    yield (
        "slots",
        [
            *(_versioned_update(update) for update in changes.slot_updates),
            *(DeleteOne(document_updates.version_filter(slot)) for slot in changes.deleted_slots),
        ],
    )


def _merge_user_version_updates(changes: ChangeSet) -> list[UpdateOne | DeleteOne]:
    """Return one update for each user, however many slots the change set books for them."""
    by_user: dict[UserId, UpdateOne] = {}
    for slot_update in changes.slot_updates:
        by_user |= user_version_updates(slot_update.after, changes.users)
    return [*by_user.values()]


def _versioned_update(update: SlotUpdate) -> UpdateOne:
    return UpdateOne(
        document_updates.version_filter(update.before),
        document_updates.to_update(update.before, update.after),
    )
