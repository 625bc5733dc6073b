"""The shapes of the documents of draws.

    draws: {_id, campaign, active?: true, settings: {method, wishesUntil, showsDemand,
            leftoversOpenAt, joinsWaitlists, seedSource, seedAt, recordFor},
            acts: [{at, by, state, reason, wishesUntil, seedSource, seedAt}], serverSeed, version,
            root?, rootAt?, entryCount?, rules?: {root: rules}, seed?: {text, source, byServer},
            isWritten, recordHash?, supersedes?, dueAt?, failures?, problem?}
    draw_slots: {draw, root, slot: {as in the record}, notBooked?: [{leaf, pseudonym, reason}],
                 waitlisted?: how many users were admitted to the waiting list}
    draw_entries: {draw, root, leaf, users: [user], salt?, ruledOut?: code, members, wishes,
                   blocked: {slot: {result, conflict}}, groups: {code: name},
                   lot?, number?, outcomes?}

The parts of a basis have the form of the public record. They are stored under their root before the
draw gets this root: a basis whose root is not that of its draw has lost, and nobody reads it.
`blocked` and `groups` are not public: they have what the record says by codes.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from bson import ObjectId
from msgspec import convert, to_builtins

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.draws.basis import DrawEntry, entry_to_json
from slotlock.domain.draws.draw import Draw, DrawAct
from slotlock.domain.draws.drawing import DrawnEntry, WishOutcome, WishResult
from slotlock.domain.draws.wish_closing import ClosedWishes
from slotlock.infrastructure.draw_records import parse_outcome
from slotlock.infrastructure.mongo.client import Document


def entry_documents(closed: ClosedWishes) -> Iterator[Document]:
    """Return the documents of the entries of a basis."""
    for entry in closed.basis.entries:
        wishes = closed.wishes[entry.leaf]
        pseudonyms = [member.pseudonym for member in entry.members]
        document = {
            "leaf": entry.leaf,
            "users": [ObjectId(closed.users[each]) for each in pseudonyms],
            "salt": wishes.salt,
            **entry_to_json(entry.members, entry.wishes),
        }
        document["groups"] = {
            code: closed.groups[code] for member in entry.members for code in member.groups
        }
        # If several members are ruled out, the reason is that of the first.
        document["blocked"] = {
            each.slot_id: {
                "result": each.result.value,
                "conflict": ObjectId(each.conflict) if each.conflict else None,
            }
            for each in reversed(closed.blocked[entry.leaf])
        }
        codes = [closed.ruled_out[each] for each in pseudonyms if each in closed.ruled_out]
        yield {**document, "ruledOut": codes[0]} if codes else document


def to_blocked(document: Document) -> dict[SlotId, WishOutcome]:
    """Return why wishes of an entry could not be granted, by slot."""
    return {
        SlotId(slot_id): WishOutcome(
            SlotId(slot_id),
            WishResult(each["result"]),
            conflict=SlotId(str(each["conflict"])) if each["conflict"] else None,
        )
        for slot_id, each in document["blocked"].items()
    }


def to_drawn(document: Document) -> DrawnEntry | None:
    """Return what was drawn for an entry; None before that."""
    if "outcomes" not in document:
        return None
    entry = convert(document, DrawEntry)
    blocked, names = to_blocked(document), document["groups"]
    outcomes = []
    for outcome, slot_id in zip(document["outcomes"], entry.wishes, strict=True):
        found = parse_outcome(outcome, slot_id)
        if found.result is WishResult.BLOCKED:
            found = blocked[slot_id]
        outcomes.append(replace(found, group=names[found.group]) if found.group else found)
    return DrawnEntry(entry, document["lot"], document["number"], tuple(outcomes))


def to_fields(draw: Draw) -> Document:
    """Return the fields of a draw."""
    fields: Document = to_builtins(draw, builtin_types=(datetime,)) | {
        "id": None,
        "campaign": ObjectId(draw.campaign_id),
        "active": draw.is_active or None,
        "acts": [to_subdocument(act) for act in draw.acts],
        "supersedes": ObjectId(draw.supersedes) if draw.supersedes else None,
        "dueAt": draw.due_at,
    }
    return {name: value for name, value in fields.items() if value is not None}


def to_subdocument(act: DrawAct) -> Document:
    """Return an act as its draw has it."""
    fields: Document = to_builtins(act, builtin_types=(datetime,))
    return {**fields, "by": ObjectId(act.by) if act.by else None}


def to_draw(document: Document) -> Draw:
    """Return the draw that a document describes."""
    acts = [{**each, "by": str(each["by"]) if each["by"] else None} for each in document["acts"]]
    known = {**document, "id": str(document["_id"]), "acts": acts}
    known |= {name: str(known[name]) for name in ("campaign", "supersedes") if name in known}
    return convert(known, Draw)
