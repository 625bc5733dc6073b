"""The record of a draw as a JSON document, and the recomputation of all that it claims.

docs/reference/draw-record.md specifies the document. Both the server and `slotlock draw verify` use
it, which needs no server.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Annotated, Any, TypeVar

from msgspec import Meta, ValidationError, convert

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.draws.basis import (
    FORMAT,
    Count,
    DrawBasis,
    DrawEntry,
    DrawSlot,
    Hash,
    Json,
    NotBookedReason,
    PublicAct,
    RecordSlotId,
    Text,
    commitment_of,
    entry_to_json,
    leaf_of,
    root_of,
    rules_to_json,
    to_json,
)
from slotlock.domain.draws.drawing import DrawnEntry, WishOutcome, WishResult, draw_places
from slotlock.domain.shared.value_object import document_object, value_object

Value = TypeVar("Value")


@document_object
class NotBooked:
    """A place that was drawn and could not be booked, for whom, and the code of the reason."""

    leaf: Hash
    pseudonym: Hash
    slot_id: RecordSlotId
    reason: NotBookedReason


@value_object
class DrawRecord:
    """What a record claims. `acts` is None before the draw is over: it has no result then."""

    basis: DrawBasis
    root: str
    seed: str | None = None
    drawn: tuple[DrawnEntry, ...] = ()
    not_booked: tuple[NotBooked, ...] = ()
    acts: tuple[PublicAct, ...] | None = None


class RecordError(ValueError):
    """The document is no record of this format: the message says where, and why."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"record{path}: {reason}".encode("ascii", "backslashreplace").decode())


def to_document(record: DrawRecord) -> Json:
    """Return the document of a record."""
    basis = record.basis
    document: Json = {"rules": rules_to_json(basis), "root": record.root}
    if record.acts is None:
        return {**document, "leaves": [entry.leaf for entry in basis.entries]}
    by_leaf = sorted(record.drawn, key=lambda each: each.entry.leaf)
    result = (
        {"leaves": [entry.leaf for entry in basis.entries]}
        if record.seed is None
        else {"entries": [_drawn_to_json(each) for each in by_leaf]}
    )
    return {
        **document,
        "seed": record.seed,
        **result,
        "notBooked": to_json(record.not_booked),
        "acts": to_json(record.acts),
    }


def to_text(record: DrawRecord) -> str:
    """Return the document of a record as JSON."""
    document = to_document(record)
    entries = document.pop("entries", None)
    if entries is None:
        return _dump(document)
    # One by one, as Python lets nothing else run while it writes a value.
    rows = ",\n".join(map(_dump, entries))
    return f'{_dump(document)[:-1]}, "entries": [{rows}]}}'


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _drawn_to_json(each: DrawnEntry) -> Json:
    entry = each.entry
    return {
        "leaf": entry.leaf,
        **entry_to_json(entry.members, entry.wishes),
        "lot": each.lot,
        "number": each.number,
        "outcomes": [outcome_to_json(outcome) for outcome in each.outcomes],
    }


# The name of the reason for a result, and the attribute of the outcome that has it.
_REASONS = {
    WishResult.GRANTED: ("round", "round"),
    WishResult.FULL: ("lastNumber", "last_number"),
    WishResult.TIME_CONFLICT: ("with", "conflict"),
    WishResult.LIMIT: ("with", "conflict"),
    WishResult.GROUP_FULL: ("group", "group"),
}


def outcome_to_json(outcome: WishOutcome) -> Json:
    """Return the outcome of a wish with the one of its reasons that belongs to its result."""
    name, attribute = _REASONS.get(outcome.result, ("", ""))
    reason = {name: getattr(outcome, attribute)} if name else {}
    return {"result": outcome.result.value, **reason}


def read_json(content: bytes) -> object:
    """Return a JSON document, in which no record has what programs read differently.

    Raises:
        RecordError: it is no JSON in UTF-8 without a byte order mark.
    """
    try:
        return json.loads(
            content.decode(),
            object_pairs_hook=_read_object,
            parse_int=_read_number,
            parse_float=_WrongNumber,
            parse_constant=_WrongNumber,
        )
    except (ValueError, RecursionError):
        raise RecordError("", "this is no JSON in UTF-8") from None


class _WrongNumber:
    """A number that no record has."""

    def __init__(self, _text: str) -> None: ...


def _read_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object; if a name occurs twice, with one more that says so."""
    found = dict(pairs)
    twice = (name for n, (name, _) in enumerate(pairs) if name in dict(pairs[:n]))
    return found if len(found) == len(pairs) else {**found, f"{next(twice)} twice": None}


def _read_number(text: str) -> object:
    return _WrongNumber(text) if text.startswith("-") or len(text) > 16 else int(text)


@document_object
class _Outcome:
    result: WishResult
    round: Count | None = None
    last_number: Count | None = None
    with_: RecordSlotId | None = None
    group: Text | None = None


@document_object
class _Entry(DrawEntry):
    lot: Hash = ""
    number: Count = 0
    outcomes: tuple[_Outcome, ...] = ()


@document_object
class _Rules(DrawBasis):
    format: Annotated[str, Meta(pattern=f"^{FORMAT}\\Z")] = ""
    not_booked_for: tuple[str, ...] = ()


@document_object
class _Document:
    rules: dict[str, Any]
    root: Hash
    leaves: tuple[Hash, ...] = ()
    seed: Text | None = None
    entries: tuple[_Entry, ...] = ()
    not_booked: tuple[NotBooked, ...] = ()
    acts: tuple[PublicAct, ...] | None = None


def from_document(document: object) -> DrawRecord:
    """Return the record of a document, whose hashes and results may still be wrong.

    Raises:
        RecordError: the document is no record of this format.
    """
    found = _convert(document, _Document, "")
    rules = _convert({**found.rules, "entries": []}, _Rules, ".rules")
    drawn = tuple(
        DrawnEntry(
            DrawEntry(each.leaf, each.members, each.wishes),
            each.lot,
            each.number,
            tuple(map(_to_outcome, each.outcomes, each.wishes)),
        )
        for each in found.entries
    )
    leaves = tuple(DrawEntry(leaf, (), ()) for leaf in found.leaves)
    basis = DrawBasis(*(getattr(rules, each.name) for each in fields(DrawBasis)))
    entries = leaves if found.seed is None else tuple(each.entry for each in drawn)
    basis = replace(basis, entries=entries)
    record = DrawRecord(basis, found.root, found.seed, drawn, found.not_booked, found.acts)
    written = to_document(record)
    if drawn and found.seed is not None:
        written["entries"] = [_drawn_to_json(each) for each in drawn]  # in their order
    _require_same(document, written, "")
    _check_slots(basis.slots)
    _check_entries(found.entries)
    return record


def _convert(value: object, kind: type[Value], path: str) -> Value:
    try:
        return convert(value, kind)
    except ValidationError as error:
        reason, _, where = str(error).partition(" - at `$")
        raise RecordError(f"{path}{where.removesuffix('`')}", reason) from None
    except UnicodeError:
        raise RecordError(path, "a name has half of a surrogate pair") from None


def _to_outcome(found: _Outcome, slot_id: SlotId) -> WishOutcome:
    values = found.round, found.last_number, found.with_, found.group
    return WishOutcome(slot_id, found.result, *values)


def _require_same(value: object, right: object, path: str) -> None:
    """Require that a value is written as a record writes what was read: names, times and all."""
    if isinstance(value, dict) and isinstance(right, dict):
        for name in sorted(value.keys() ^ right.keys()):
            raise RecordError(f"{path}.{name}", "this name is missing or unknown")
        for name in right:
            _require_same(value[name], right[name], f"{path}.{name}")
    elif isinstance(value, list) and isinstance(right, list) and len(value) == len(right):
        for n, (each, other) in enumerate(zip(value, right, strict=True)):
            _require_same(each, other, f"{path}[{n}]")
    elif value != right:
        raise RecordError(path, f"{json.dumps(right)} is needed")


def _check_slots(slots: Sequence[DrawSlot]) -> None:
    _require_different([slot.id for slot in slots], ".rules.slots")
    for n, slot in enumerate(slots):
        path, meetings = f".rules.slots[{n}]", slot.meetings
        _require_different([each.group for each in slot.groups], f"{path}.groups")
        if not (
            meetings
            and all(each.start < each.end for each in meetings)
            and all(before.end <= after.start for before, after in pairwise(meetings))
        ):
            raise RecordError(f"{path}.meetings", "a slot has meetings, in order, which end later")


def _check_entries(entries: Sequence[_Entry]) -> None:
    users = [member.pseudonym for each in entries for member in each.members]
    _require_different(users, ".entries")
    for n, each in enumerate(entries):
        path, names = f".entries[{n}]", [member.pseudonym for member in each.members]
        _require_different(each.wishes, f"{path}.wishes")
        if not names or names != sorted(names):
            raise RecordError(f"{path}.members", "an entry has members, by pseudonym")
        if len(each.outcomes) != len(each.wishes):
            raise RecordError(f"{path}.outcomes", "each wish has an outcome")
        for member in each.members:
            _require_different(member.groups, f"{path}.members")
            _require_different(member.blocked, f"{path}.members")
            if not set(each.wishes).issuperset(member.blocked):
                raise RecordError(f"{path}.members", "a blocked slot is not wished for")


def _require_different(values: Sequence[object], path: str) -> None:
    if len(set(values)) < len(values):
        raise RecordError(path, "a value occurs twice")


def parse_outcome(outcome: object, slot_id: SlotId) -> WishOutcome:
    """Return the outcome of a wish that `outcome_to_json` wrote."""
    return _to_outcome(convert(outcome, _Outcome), slot_id)


def verify(document: object) -> list[str]:
    """Return what is wrong with a record after recomputing all of it; nothing if it is right.

    Raises:
        RecordError: the document is no record of this format.
    """
    record = from_document(document)
    basis = record.basis
    problems = [
        f"The leaf of the entry {entry.leaf} is not the hash of its members and wishes."
        for entry in basis.entries
        if entry.members and entry.leaf != leaf_of(entry.members, entry.wishes)
    ]
    if any(before.leaf >= after.leaf for before, after in pairwise(basis.entries)):
        problems.append("The entries are not sorted by leaf, or a leaf occurs twice.")
    if record.root != root_of(basis):
        problems.append("The root is not the hash of the rules and the leaves.")
    problems += _wrong_announcement(record)
    if record.seed is None:
        return problems
    right = draw_places(basis, record.root, record.seed)
    claimed = {each.entry.leaf: each for each in record.drawn}
    granted = {
        (each.entry.leaf, member.pseudonym, slot_id)
        for each in right
        for member in each.entry.members
        for slot_id in each.granted
    }
    lost = [(each.leaf, each.pseudonym, each.slot_id) for each in record.not_booked]
    if len(set(lost)) < len(lost) or not granted.issuperset(lost):
        problems.append("A place in notBooked was not given, or occurs twice.")
    return [*problems, *_wrong_results(right, claimed)]


def _wrong_announcement(record: DrawRecord) -> Iterator[str]:
    """Yield what is wrong with the source of the seed, and with the acts."""
    announced, acts = record.basis.announced, record.basis.acts
    last = next((act for act in reversed(acts) if act.wishes_until), None)
    if last is None or (announced.source, announced.at) != (last.seed_source, last.seed_at):
        yield "The announced source is not that of the last act that sets it."
    if (announced.commitment is None) is not (announced.source is not None):
        yield "Either a source or a commitment is announced."
    if not acts or acts[-1].state != "closed":
        yield "The last act of the rules does not close the wishes."
    elif announced.at is not None and acts[-1].at >= announced.at:
        yield "The wishes were closed after the announced moment of the seed."
    if record.acts is not None and record.acts[: len(acts)] != acts:
        yield "The acts are not those of the rules and later ones."
    if record.seed is None or record.acts is None:
        return
    fixed = commitment_of(record.basis.draw_id, record.seed)
    if announced.commitment not in (None, fixed):
        yield "The seed is not that of the commitment."
    drawn_at = next((act.at for act in record.acts if act.state == "drawn"), None)
    if drawn_at is None or (announced.at is not None and drawn_at < announced.at):
        yield "The seed was fixed before its announced moment."


def _wrong_results(right: Iterable[DrawnEntry], claimed: Mapping[str, DrawnEntry]) -> Iterator[str]:
    for each in right:
        other, leaf = claimed[each.entry.leaf], each.entry.leaf
        if other.lot != each.lot:
            yield f"The lot of the entry {leaf} is {each.lot}."
        if other.number != each.number:
            yield f"The lottery number of the entry {leaf} is {each.number}, not {other.number}."
        for rank, (is_, says) in enumerate(zip(each.outcomes, other.outcomes, strict=True), 1):
            if is_ != says:
                right_one, wrong_one = outcome_to_json(is_), outcome_to_json(says)
                yield f"Wish {rank} of the entry {leaf} has {right_one}, not {wrong_one}."
