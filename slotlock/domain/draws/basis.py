"""The basis of a draw: all that its result follows from, apart from the seed.

Closing fixes it and publishes its hashes. Each hash is the SHA-256 of a JSON value in the canonical
form of RFC 8785; docs/reference/draw-record.md specifies the values.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Any, Literal, NewType

from msgspec import Meta, to_builtins

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.value_object import document_object
from slotlock.domain.users.user import UserId

DrawId = NewType("DrawId", str)

Json = dict[str, Any]
# Values as a record has them. A text has no half of a surrogate pair, which has no form in UTF-8.
Text = Annotated[str, Meta(pattern="^[^\ud800-\udfff]*\\Z")]
Count = Annotated[int, Meta(ge=0, lt=2**53)]
Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Id = Meta(pattern=r"^[0-9A-Za-z_-]{1,64}\Z")
RecordSlotId = Annotated[SlotId, _Id]
RecordDrawId = Annotated[DrawId, _Id]
# The only reasons for which a place that was drawn may not be booked.
NOT_BOOKED_FOR = (
    "USER_BANNED",
    "USER_NOT_FOUND",
    "SLOT_CANCELLED",
    "SLOT_NOT_FOUND",
    "SLOT_STARTED",
    "SLOT_FULL",
)
NotBookedReason = Annotated[str, Meta(pattern=f"^({'|'.join(NOT_BOOKED_FOR)})\\Z")]
State = Annotated[str, Meta(pattern=r"^(collecting|closed|drawn|published|superseded|cancelled)\Z")]

# The version of the rule and of its record. Another rule needs another name.
FORMAT = "slotlock-draw-2"


class DrawMethod(DescribedEnum):
    """How places are given by lot."""

    ROUNDS = (
        "rounds",
        "In rounds: in each one, every user gets one place at most, and the next round runs in "
        "the reverse order.",
    )
    SERIAL = "serial", "One user after the other gets everything that is left of their wishes."


class DrawRecordReaders(DescribedEnum):
    """Who reads the result in the record of a draw."""

    PARTICIPANTS = "participants", "Organizers, and users with wishes in it and their guardians."
    EVERYBODY = "everybody", "Everybody who sees the campaign."


@document_object
class GroupPlaces:
    """How many users of a group a slot takes, and how many it has when the wishes close."""

    group: Text
    limit: Count
    count: Count


@document_object
class DrawSlot:
    """An open slot of the campaign as it is when the wishes close.

    `booked` of its places are taken. Groups have codes, which say no names.
    """

    id: RecordSlotId
    title: Text
    capacity: Count
    booked: Count
    choice_group: Text | None
    groups: tuple[GroupPlaces, ...]
    meetings: tuple[Meeting, ...]


@document_object
class DrawMember:
    """A user of an entry: a hash in place of the id, and the codes of the groups.

    `had` is how many bookings the user had in the campaign, if it limits them. No lot can give a
    slot in `blocked`: the user may not book it, or an earlier booking rules it out.
    """

    pseudonym: Hash
    groups: tuple[Text, ...] = ()
    had: Count = 0
    blocked: tuple[RecordSlotId, ...] = ()


@document_object
class DrawEntry:
    """The ranked wishes of one user, or of a team, which gets places for all members or none."""

    leaf: Hash
    members: tuple[DrawMember, ...]
    wishes: tuple[RecordSlotId, ...]


@document_object
class SeedAnnouncement:
    """Where the seed will be from: a public source and its moment, or the hash of the seed."""

    source: Text | None = None
    at: datetime | None = None
    commitment: Hash | None = None


@document_object
class PublicAct:
    """A step of a draw as its record shows it, or a change of what it sets."""

    at: datetime
    state: State
    reason: Text | None = None
    wishes_until: datetime | None = None
    seed_source: Text | None = None
    seed_at: datetime | None = None


@document_object
class FormerDraw:
    """An earlier draw of the campaign: how it ended, and the hash of its record, if it has one."""

    draw_id: RecordDrawId
    state: State
    root: Hash | None
    seed_known: bool
    reason: Text | None
    record_hash: Hash | None


@document_object
class DrawBasis:
    """The rules, the slots and the entries of a draw; the entries are sorted by their leaves.

    `gap_minutes` is how far apart the places of a user must be: campaigns have no such rule yet.
    """

    draw_id: RecordDrawId
    campaign_id: Annotated[CampaignId, _Id]
    method: DrawMethod
    max_bookings: Count | None
    forbid_overlap: bool
    slots: tuple[DrawSlot, ...]
    entries: tuple[DrawEntry, ...]
    announced: SeedAnnouncement = SeedAnnouncement()
    acts: tuple[PublicAct, ...] = ()
    former: tuple[FormerDraw, ...] = ()
    record_for: DrawRecordReaders = DrawRecordReaders.PARTICIPANTS
    gap_minutes: Literal[0] = 0


def in_order(basis: DrawBasis) -> DrawBasis:
    """Return the basis with its slots by id and its entries by leaf, whatever their order was."""
    slots = tuple(sorted(basis.slots, key=lambda slot: slot.id))
    entries = tuple(sorted(basis.entries, key=lambda entry: entry.leaf))
    return replace(basis, slots=slots, entries=entries)


def build_entry(members: Sequence[DrawMember], wishes: Sequence[SlotId]) -> DrawEntry:
    """Return the entry of these members, sorted, with its leaf."""
    ordered = tuple(sorted(members, key=lambda member: member.pseudonym))
    return DrawEntry(leaf_of(ordered, wishes), ordered, tuple(wishes))


def pseudonym_of(salt: str, user_id: UserId) -> str:
    """Return the hash that stands for a user: only those who know the salt can find whose it is."""
    return _hash([salt, user_id])


def leaf_of(members: Sequence[DrawMember], wishes: Sequence[SlotId]) -> str:
    """Return the hash of an entry, in hexadecimal."""
    return _hash(entry_to_json(members, wishes))


def root_of(basis: DrawBasis) -> str:
    """Return the hash over the rules, the slots and all leaves, in hexadecimal."""
    leaves = [entry.leaf for entry in basis.entries]
    return _hash({"rules": rules_to_json(basis), "leaves": leaves})


def lot_of(seed: str, root: str, leaf: str) -> str:
    """Return the lot of an entry. The entry with the lowest lot is the first."""
    return _hash([seed, root, leaf])


def commitment_of(draw_id: DrawId, seed: str) -> str:
    """Return the hash by which a seed is fixed before anybody knows it."""
    return _hash([draw_id, seed])


def entry_to_json(members: Sequence[DrawMember], wishes: Sequence[SlotId]) -> Json:
    """Return what the leaf of an entry is the hash of."""
    return {"members": to_json(members), "wishes": list(wishes)}


def rules_to_json(basis: DrawBasis) -> Json:
    """Return what the root is the hash of, apart from the leaves."""
    shown = to_json(replace(basis, entries=()))
    del shown["entries"]
    return {"format": FORMAT, **shown, "notBookedFor": list(NOT_BOOKED_FOR)}


def to_json(value: object) -> Any:
    """Return objects with times as JSON has them."""
    return json.loads(json.dumps(to_builtins(value, builtin_types=(datetime,)), default=time_text))


def time_text(instant: datetime) -> str:
    """Return a time as records contain it, such as `2030-05-17T14:00:00.000Z`."""
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def _hash(value: object) -> str:
    # For texts, whole numbers, true, false and null with names in ASCII, this is RFC 8785.
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()
