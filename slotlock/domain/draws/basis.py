"""The basis of a draw: all that its result follows from, apart from the seed.

Closing fixes it and publishes its hashes. Each hash is the SHA-256 of a JSON value in the canonical
form of RFC 8785; docs/reference/draw-record.md specifies the values.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NewType

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.described_enum import DescribedEnum
from slotlock.domain.shared.value_object import value_object
from slotlock.domain.users.user import UserId

DrawId = NewType("DrawId", str)

Json = dict[str, Any]

# The version of the rule and of its record. Another rule needs another name.
FORMAT = "slotlock-draw-1"


class DrawMethod(DescribedEnum):
    """How places are given by lot."""

    ROUNDS = (
        "rounds",
        "In rounds: in each one, every user gets one place at most, and the next round runs in "
        "the reverse order.",
    )
    SERIAL = "serial", "One user after the other gets everything that is left of their wishes."


@value_object
class DrawSlot:
    """A slot as it is when the wishes close.

    `booked` of its places are taken, and `group_counts` has how many of them by each group that is
    limited. Wishes for it count only if it is open. One that is not open stands for bookings, in
    the campaign of the draw or elsewhere: see `hidden_slot`.
    """

    id: SlotId
    title: str
    capacity: int
    booked: int
    is_open: bool
    in_campaign: bool
    forbids_overlap: bool
    choice_group: str | None
    group_limits: tuple[GroupLimit, ...]
    group_counts: tuple[tuple[str, int], ...]
    meetings: tuple[Meeting, ...]


@value_object
class DrawMember:
    """A user of an entry: a hash in place of the id, the groups, and the slots booked before.

    `is_eligible` is false if the user may not book in the campaign, whatever the slot.
    """

    pseudonym: str
    is_eligible: bool = True
    groups: tuple[str, ...] = ()
    booked: tuple[SlotId, ...] = ()


@value_object
class DrawEntry:
    """The ranked wishes of one user, or of a team, which gets places for all members or none."""

    leaf: str
    members: tuple[DrawMember, ...]
    wishes: tuple[SlotId, ...]


@value_object
class DrawBasis:
    """The rules, the slots and the entries of a draw; the entries are sorted by their leaves."""

    draw_id: DrawId
    campaign_id: CampaignId
    method: DrawMethod
    max_bookings: int | None
    group_limits: tuple[GroupLimit, ...]
    slots: tuple[DrawSlot, ...]
    entries: tuple[DrawEntry, ...]


def hidden_slot(
    meetings: Sequence[Meeting], choice_group: str | None, number: int | None
) -> DrawSlot:
    """Return what stands for a booking in a slot that nobody can wish for.

    The record is public, and the slot may be hidden: its id is the hash of what is shown of it, so
    that it says no more. Bookings in the campaign are counted: they have different numbers for each
    user. Those elsewhere have none.
    """
    shown = [number, choice_group, _meetings_to_json(meetings)]
    return DrawSlot(
        SlotId(_hash(shown)),
        title="",
        capacity=0,
        booked=0,
        is_open=False,
        in_campaign=number is not None,
        forbids_overlap=bool(meetings),
        choice_group=choice_group,
        group_limits=(),
        group_counts=(),
        meetings=tuple(meetings),
    )


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
    shown = [
        {
            "pseudonym": member.pseudonym,
            "eligible": member.is_eligible,
            "groups": list(member.groups),
            "booked": list(member.booked),
        }
        for member in members
    ]
    return {"members": shown, "wishes": list(wishes)}


def rules_to_json(basis: DrawBasis) -> Json:
    """Return what the root is the hash of, apart from the leaves."""
    return {
        "format": FORMAT,
        "draw": basis.draw_id,
        "campaign": basis.campaign_id,
        "method": basis.method.value,
        "maxBookings": basis.max_bookings,
        "groupLimits": _limits_to_json(basis.group_limits),
        "slots": [_slot_to_json(slot) for slot in basis.slots],
    }


def _slot_to_json(slot: DrawSlot) -> Json:
    return {
        "id": slot.id,
        "title": slot.title,
        "capacity": slot.capacity,
        "booked": slot.booked,
        "open": slot.is_open,
        "inCampaign": slot.in_campaign,
        "forbidOverlap": slot.forbids_overlap,
        "choiceGroup": slot.choice_group,
        "groupLimits": _limits_to_json(slot.group_limits),
        "groupCounts": [{"group": group, "count": n} for group, n in slot.group_counts],
        "meetings": _meetings_to_json(slot.meetings),
    }


def _meetings_to_json(meetings: Sequence[Meeting]) -> list[Json]:
    return [{"start": time_text(each.start), "end": time_text(each.end)} for each in meetings]


def _limits_to_json(limits: Sequence[GroupLimit]) -> list[Json]:
    return [{"group": each.group, "limit": each.limit} for each in limits]


def time_text(instant: datetime) -> str:
    """Return a time as records contain it, such as `2030-05-17T14:00:00.000Z`."""
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"


def _hash(value: object) -> str:
    # For texts, whole numbers, true, false and null with names in ASCII, this is RFC 8785.
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()
