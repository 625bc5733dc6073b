"""The changes that one commit writes, the documents that hold them, and the results.

A commit checks that the versions of its preconditions are those that were loaded: campaign terms,
resources, dates of a series and the progress of a draw.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import Enum, auto
from operator import attrgetter

from bson import ObjectId

from slotlock.domain.audit.audit_notes import AuditNote
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.booking.user_contexts import NO_CONTEXTS, UserContext, UserContexts
from slotlock.domain.campaigns.campaign import Campaign
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.draws.basis import DrawId
from slotlock.domain.resources.resource import Resource
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.teams.team import TeamVersion
from slotlock.domain.users.user import UserId
from slotlock.infrastructure.mongo import team_repository
from slotlock.infrastructure.mongo.audit.audit_note_repository import note_to_document
from slotlock.infrastructure.mongo.client import CommitUnknownError, Document
from slotlock.infrastructure.mongo.document_parts import (
    campaign_to_document,
    resource_to_document,
)
from slotlock.infrastructure.mongo.idempotency.records import (
    IdempotencyRecord,
    records_to_documents,
)
from slotlock.infrastructure.mongo.slots import slot_document_updates, slot_documents
from slotlock.infrastructure.mongo.slots.booking_documents import (
    ended_booking_to_document,
    ended_waitlist_entry_to_document,
)
from slotlock.infrastructure.mongo.slots.user_context_loader import user_version_updates


@value_object
class CampaignVersion:
    """The version of the terms that slots were given.

    Of its slots that are not cancelled, only one may have each of `numbers` after the write.
    """

    campaign_id: CampaignId
    version: int
    numbers: tuple[str, ...] = ()


@value_object
class ResourceVersion:
    """The version of a resource when its slots were loaded; no version if there was none."""

    name: str
    version: int | None


@value_object
class SeriesVersion:
    """How often dates were added to a series, which its slot with the lowest id counts."""

    counting_slot_id: SlotId
    version: int


@value_object
class WaitlistProgress:
    """How many users of a draw were admitted to the waiting list of a slot, before and after.

    It is written with the entries of those who join, so that no repetition lets them join again.
    """

    draw_id: DrawId
    root: str
    slot_id: SlotId
    before: int
    after: int


Precondition = CampaignVersion | ResourceVersion | SeriesVersion | WaitlistProgress


def version_check(precondition: Precondition) -> tuple[str, Document]:
    """Return the collection, and the update that matches only the version that was loaded.

    It writes, because another transaction can change a document that this one only reads.
    """
    if isinstance(precondition, CampaignVersion):
        loaded = {"_id": ObjectId(precondition.campaign_id), "terms.version": precondition.version}
        return "campaigns", {"q": loaded, "u": {"$inc": {"touchCount": 1}}}
    if isinstance(precondition, SeriesVersion):
        # No field means that no dates were added yet.
        counting = {
            "_id": ObjectId(precondition.counting_slot_id),
            "seriesVersion": precondition.version or None,
        }
        return "slots", {"q": counting, "u": {"$inc": {"seriesVersion": 1}}}
    if isinstance(precondition, WaitlistProgress):
        # No field means that nobody was admitted yet.
        progress = {
            "draw": ObjectId(precondition.draw_id),
            "root": precondition.root,
            "slot.id": precondition.slot_id,
            "waitlisted": precondition.before or None,
        }
        return "draw_slots", {"q": progress, "u": {"$set": {"waitlisted": precondition.after}}}
    # No upsert: a slot never creates a resource that was missing, or is deleted meanwhile.
    by_version = {"_id": precondition.name, "version": precondition.version}
    return "resources", {"q": by_version, "u": {"$inc": {"version": 1}}}


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
class SlotWrite:
    """A slot as it was loaded and as it will be; `after.change` says what changed."""

    before: SlotState
    after: SlotState


@value_object
class NewCampaign:
    """A campaign that is inserted with its slots."""

    campaign: Campaign
    created_at: datetime


# What other change sets of a group may change, too.
_NOT_IN_GROUPS = attrgetter(
    "new_slots",
    "deleted_slots",
    "preconditions",
    "audit_notes",
    "team_versions",
    "new_campaigns",
    "new_resources",
)


@value_object
class WriteSet:
    """The changes that are written together, or not at all.

    `users`, `team_versions` and `preconditions` are what the decision relied on besides the slots.
    """

    slot_writes: tuple[SlotWrite, ...]
    users: UserContexts = NO_CONTEXTS
    idempotency_records: tuple[IdempotencyRecord, ...] = ()
    team_versions: tuple[TeamVersion, ...] = ()
    new_slots: tuple[SlotState, ...] = ()
    new_campaigns: tuple[NewCampaign, ...] = ()
    deleted_slots: tuple[SlotState, ...] = ()
    new_resources: tuple[Resource, ...] = ()
    preconditions: tuple[Precondition, ...] = ()
    audit_notes: tuple[AuditNote, ...] = ()

    @property
    def only_adds_to_one_slot(self) -> bool:
        """Whether one slot gains bookings, and nothing else is written."""
        if self.idempotency_records or any(_NOT_IN_GROUPS(self)) or len(self.slot_writes) != 1:
            return False
        after = self.slot_writes[0].after
        adds_versions = self.users.by_user and after.slot.depends_on_other_bookings
        return after.change.only_adds_bookings and not adds_versions

    @property
    def free_numbers(self) -> Iterator[CampaignVersion]:
        """Yield the campaigns with numbers that one slot of each may have."""
        for each in self.preconditions:
            if isinstance(each, CampaignVersion) and each.numbers:
                yield each

    @property
    def must_commit_alone(self) -> bool:
        """Whether it concerns documents that other change sets of a group may concern, too."""
        return any(_NOT_IN_GROUPS(self))


def combine(write_sets: Sequence[WriteSet]) -> WriteSet:
    """Return one change set for changes that have no user and no document in common."""
    users: dict[UserId, UserContext] = {}
    slot_writes: list[SlotWrite] = []
    records: list[IdempotencyRecord] = []
    for each in write_sets:
        users |= each.users.by_user
        slot_writes += each.slot_writes
        records += each.idempotency_records
    return WriteSet(tuple(slot_writes), UserContexts(users), tuple(records))


def inserts_of(changes: WriteSet) -> Iterator[tuple[str, list[Document]]]:
    """Yield the collections, each with the documents to insert."""
    yield (
        "ended_bookings",
        [
            ended_booking_to_document(booking)
            for update in changes.slot_writes
            for booking in update.after.change.ended
        ],
    )
    yield (
        "ended_waitlist_entries",
        [
            ended_waitlist_entry_to_document(ended)
            for update in changes.slot_writes
            for ended in update.after.change.ended_entries
        ],
    )
    yield "idempotency_records", records_to_documents(changes.idempotency_records)
    yield (
        "campaigns",
        [campaign_to_document(new.campaign, new.created_at) for new in changes.new_campaigns],
    )
    yield "resources", [resource_to_document(each) for each in changes.new_resources]
    yield "slots", [slot_documents.to_document(slot) for slot in changes.new_slots]
    yield "audit_notes", [note_to_document(note) for note in changes.audit_notes]


def updates_of(changes: WriteSet) -> Iterator[tuple[str, list[Document]]]:
    """Yield the collections, each with its updates, which are conditional on what was loaded.

    An update is one of an `update` command: {q, u, upsert?}.

    The slots are last: if the process dies before them, its transaction does not block them.
    """
    yield "user_versions", _merge_user_version_updates(changes)
    yield (
        "teams",
        [
            {"q": team_repository.version_filter(version), "u": team_repository.touch_update()}
            for version in changes.team_versions
        ],
    )
    for precondition in changes.preconditions:
        name, update = version_check(precondition)
        yield name, [update]
    yield "slots", list(map(_versioned_update, changes.slot_writes))


def _merge_user_version_updates(changes: WriteSet) -> list[Document]:
    """Return one update for each user, however many slots the change set books for them."""
    by_user: dict[UserId, Document] = {}
    for slot_write in changes.slot_writes if changes.users.by_user else ():
        by_user |= user_version_updates(slot_write.after, changes.users)
    return [*by_user.values()]


def _versioned_update(update: SlotWrite) -> Document:
    return {
        "q": slot_document_updates.version_filter(update.before),
        "u": slot_document_updates.to_update(update.before, update.after),
    }
