"""The public record of a draw as a JSON document, and the recomputation of all that it claims.

docs/reference/draw-record.md specifies the document.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from typing import TypeVar

from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId, GroupLimit
from slotlock.domain.draws.basis import (
    FORMAT,
    DrawBasis,
    DrawEntry,
    DrawId,
    DrawMember,
    DrawMethod,
    DrawSlot,
    Json,
    entry_to_json,
    leaf_of,
    root_of,
    rules_to_json,
    time_text,
)
from slotlock.domain.draws.drawing import DrawnEntry, WishOutcome, WishResult, draw_places
from slotlock.domain.schedule.meetings import Meeting
from slotlock.domain.shared.value_object import value_object

Value = TypeVar("Value")
Member = TypeVar("Member", bound=StrEnum)

_ID = re.compile(r"[0-9A-Za-z_-]{1,64}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
# A text with half of a surrogate pair has no form in UTF-8.
_SURROGATE = re.compile("[\ud800-\udfff]")


@value_object
class Seed:
    """The public randomness of a draw, and where it is from.

    The server made it itself if `by_server`, which nobody outside can check.
    """

    text: str
    source: str
    by_server: bool = False


@value_object
class DrawRecord:
    """What a record claims: the basis, its root, and once it is drawn the seed and the result."""

    basis: DrawBasis
    root: str
    seed: Seed | None = None
    drawn: tuple[DrawnEntry, ...] = ()


class RecordError(ValueError):
    """The document is no record of this format: the message says where, and why."""


def to_document(record: DrawRecord) -> Json:
    """Return the public document of a record: before the draw, it has only the leaves."""
    basis, seed = record.basis, record.seed
    document: Json = {"rules": rules_to_json(basis), "root": record.root}
    if seed is None:
        return {**document, "leaves": [entry.leaf for entry in basis.entries]}
    document["seed"] = {"text": seed.text, "source": seed.source, "byServer": seed.by_server}
    by_leaf = sorted(record.drawn, key=lambda each: each.entry.leaf)
    return {**document, "entries": [_drawn_to_json(each) for each in by_leaf]}


def outcome_to_json(outcome: WishOutcome) -> Json:
    """Return the outcome of a wish with those of its reasons that belong to its result."""
    match outcome.result:
        case WishResult.GRANTED:
            reason: Json = {"round": outcome.round}
        case WishResult.FULL:
            reason = {"lastNumber": outcome.last_number}
        case WishResult.TIME_CONFLICT | WishResult.LIMIT:
            reason = {"with": outcome.conflict}
        case WishResult.GROUP_FULL:
            reason = {"group": outcome.group}
        case _:
            reason = {}
    return {"result": outcome.result.value, **reason}


def verify(document: object) -> list[str]:
    """Return what is wrong with a record after recomputing all of it; nothing if it is right.

    Raises:
        RecordError: the document is no record of this format.
    """
    record = from_document(document)
    basis = record.basis
    _require_names(document, _shown(record), "record", is_top=True)
    problems = [
        f"The leaf of the entry {entry.leaf} is not the hash of its members and wishes."
        for entry in basis.entries
        if entry.members and entry.leaf != leaf_of(entry.members, entry.wishes)
    ]
    if any(before.leaf >= after.leaf for before, after in pairwise(basis.entries)):
        problems.append("The entries are not sorted by leaf, or a leaf occurs twice.")
    if record.root != root_of(basis):
        problems.append("The root is not the hash of the rules and the leaves.")
    if record.seed is None:
        return problems
    right = draw_places(basis, record.root, record.seed.text)
    claimed = {each.entry.leaf: each for each in record.drawn}
    return [*problems, *_wrong_results(right, claimed)]


def _shown(record: DrawRecord) -> Json:
    """Return the document of a record with its entries as they were read."""
    entries = [_drawn_to_json(each) for each in record.drawn]
    return {**to_document(record), **({"entries": entries} if record.seed else {})}


def _require_names(value: object, known: object, path: str, *, is_top: bool = False) -> None:
    """Require the names of this format in each object; at the top there may be others.

    Raises:
        RecordError: a name is missing, or has no meaning and is in no hash.
    """
    if isinstance(value, dict) and isinstance(known, dict):
        for name in sorted(known.keys() ^ value.keys()):
            _require(is_top and name in value, f"{path}.{name}", "this name is missing or unknown")
        for name, below in known.items():
            _require_names(value[name], below, f"{path}.{name}")
    elif isinstance(value, list) and isinstance(known, list):
        for n, (each, below) in enumerate(zip(value, known, strict=True)):
            _require_names(each, below, f"{path}[{n}]")


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


def from_document(document: object) -> DrawRecord:
    """Return the record of a document, whose hashes and results may still be wrong.

    Raises:
        RecordError: the document is no record of this format.
    """
    reader = _Reader(document, "record")
    rules = reader.object("rules")
    rules.require(rules.text("format") == FORMAT, f"the only known format is {FORMAT}")
    seed = reader.object("seed") if reader.has("seed") else None
    rows = reader.objects("entries") if seed else ()
    basis = _basis_of(rules, rows)
    if seed is None:
        leaves = reader.hashes("leaves")
        basis = replace(basis, entries=tuple(DrawEntry(leaf, (), ()) for leaf in leaves))
    root = reader.hash("root")
    if seed is None:
        return DrawRecord(basis, root)
    drawn = (_drawn_of(*each) for each in zip(rows, basis.entries, strict=True))
    made = Seed(seed.text("text"), seed.text("source"), seed.flag("byServer"))
    return DrawRecord(basis, root, made, tuple(drawn))


def _drawn_to_json(each: DrawnEntry) -> Json:
    entry = each.entry
    return {
        "leaf": entry.leaf,
        **entry_to_json(entry.members, entry.wishes),
        "lot": each.lot,
        "number": each.number,
        "outcomes": [outcome_to_json(outcome) for outcome in each.outcomes],
    }


def parse_basis(rules: object, slots: Sequence[object], entries: Sequence[object]) -> DrawBasis:
    """Return a basis from its rules without the slots, its slots, and its entries with leaves.

    Raises:
        RecordError: one of them has another form.
    """
    reader = _Reader({"rules": {**dict(rules), "slots": list(slots)}}, "stored")  # type: ignore[call-overload]
    rows = [_Reader(each, "stored") for each in entries]
    return _basis_of(reader.object("rules"), rows)


class _Reader:
    """Reads the members of a JSON object, each of which must have its type."""

    def __init__(self, value: object, path: str) -> None:
        _require(isinstance(value, dict), path, "an object is needed")
        self._object: Json = value  # type: ignore[assignment]
        self._path = path

    def has(self, name: str) -> bool:
        return self._object.get(name) is not None

    def optional(self, name: str, read: Callable[[str], Value]) -> Value | None:
        return read(name) if self.has(name) else None

    def _get(self, name: str, type_: type[Value], what: str) -> Value:
        value = self._object.get(name)
        # A bool is an int in Python.
        _require(type(value) is type_, f"{self._path}.{name}", f"{what} is needed")
        return value  # type: ignore[return-value]

    def flag(self, name: str) -> bool:
        return self._get(name, bool, "true or false")

    def number(self, name: str) -> int:
        number = self._get(name, int, "a number")
        _require(0 <= number < 2**53, f"{self._path}.{name}", "a number from 0 is needed")
        return number

    def text(self, name: str) -> str:
        return self._text_of(self._get(name, str, "a text"), name)

    def _text_of(self, text: object, name: str) -> str:
        is_text = isinstance(text, str) and not _SURROGATE.search(text)
        _require(is_text, f"{self._path}.{name}", "a text is needed")
        return str(text)

    def _matching(self, name: str, text: object, form: re.Pattern[str]) -> str:
        is_right = isinstance(text, str) and form.fullmatch(text) is not None
        _require(is_right, f"{self._path}.{name}", f"a text like {form.pattern} is needed")
        return str(text)

    def id(self, name: str) -> str:
        return self._matching(name, self._object.get(name), _ID)

    def slot_id(self, name: str) -> SlotId:
        return SlotId(self.id(name))

    def hash(self, name: str) -> str:
        return self._matching(name, self._object.get(name), _HASH)

    def time(self, name: str) -> datetime:
        text = self.text(name)
        try:
            instant = datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
        except ValueError:
            instant = None
        is_exact = instant is not None and time_text(instant) == text
        _require(is_exact, f"{self._path}.{name}", "a time like 2030-05-17T14:00:00.000Z is needed")
        assert instant is not None  # noqa: S101
        return instant

    def _list(self, name: str) -> list[object]:
        return self._get(name, list, "a list")

    def ids(self, name: str) -> tuple[SlotId, ...]:
        ids = [self._matching(name, each, _ID) for each in self._list(name)]
        _require(len(set(ids)) == len(ids), f"{self._path}.{name}", "an id occurs twice")
        return tuple(map(SlotId, ids))

    def hashes(self, name: str) -> tuple[str, ...]:
        return tuple(self._matching(name, each, _HASH) for each in self._list(name))

    def texts(self, name: str) -> tuple[str, ...]:
        texts = tuple(self._text_of(each, name) for each in self._list(name))
        _require(len(set(texts)) == len(texts), f"{self._path}.{name}", "a text occurs twice")
        return texts

    def object(self, name: str) -> "_Reader":
        return _Reader(self._object.get(name), f"{self._path}.{name}")

    def objects(self, name: str) -> tuple["_Reader", ...]:
        path = f"{self._path}.{name}"
        return tuple(_Reader(each, f"{path}[{n}]") for n, each in enumerate(self._list(name)))

    def require(self, condition: bool, reason: str) -> None:
        _require(condition, self._path, reason)


def _require(condition: bool, path: str, reason: str) -> None:
    if not condition:
        raise RecordError(f"{path}: {reason}")


def _member_of(enum: type[Member], value: str, path: str) -> Member:
    _require(value in list(enum), path, f"{value} is not known")
    return enum(value)


def _limits_of(reader: _Reader) -> tuple[GroupLimit, ...]:
    rows = reader.objects("groupLimits")
    limits = tuple(GroupLimit(each.text("group"), each.number("limit")) for each in rows)
    reader.require(len({each.group for each in limits}) == len(limits), "a group occurs twice")
    return limits


def _basis_of(rules: _Reader, rows: Sequence[_Reader]) -> DrawBasis:
    slots = tuple(_slot_of(each) for each in rules.objects("slots"))
    slot_ids = {slot.id for slot in slots}
    rules.require(len(slot_ids) == len(slots), "a slot occurs twice")
    entries = tuple(map(_entry_of, rows))
    booked = {id_ for entry in entries for member in entry.members for id_ in member.booked}
    rules.require(booked <= slot_ids, "a booked slot is not among the slots")
    pseudonyms = [member.pseudonym for entry in entries for member in entry.members]
    rules.require(len(set(pseudonyms)) == len(pseudonyms), "a pseudonym occurs twice")
    return DrawBasis(
        DrawId(rules.id("draw")),
        CampaignId(rules.id("campaign")),
        _member_of(DrawMethod, rules.text("method"), "record.rules.method"),
        rules.optional("maxBookings", rules.number),
        _limits_of(rules),
        slots,
        entries,
    )


def _slot_of(reader: _Reader) -> DrawSlot:
    meetings = tuple(
        Meeting(each.time("start"), each.time("end")) for each in reader.objects("meetings")
    )
    reader.require(
        (bool(meetings) or not reader.flag("open"))
        and all(each.start < each.end for each in meetings)
        and all(before.end <= after.start for before, after in pairwise(meetings)),
        "an open slot has meetings, which are in order and end after they start",
    )
    rows = reader.objects("groupCounts")
    counts = tuple((each.text("group"), each.number("count")) for each in rows)
    reader.require(len(dict(counts)) == len(counts), "a group occurs twice")
    return DrawSlot(
        reader.slot_id("id"),
        reader.text("title"),
        reader.number("capacity"),
        reader.number("booked"),
        reader.flag("open"),
        reader.flag("inCampaign"),
        reader.flag("forbidOverlap"),
        reader.optional("choiceGroup", reader.text),
        _limits_of(reader),
        counts,
        meetings,
    )


def _entry_of(reader: _Reader) -> DrawEntry:
    members = tuple(
        DrawMember(
            each.hash("pseudonym"), each.flag("eligible"), each.texts("groups"), each.ids("booked")
        )
        for each in reader.objects("members")
    )
    reader.require(bool(members), "an entry has members")
    pseudonyms = [member.pseudonym for member in members]
    reader.require(pseudonyms == sorted(pseudonyms), "the members are sorted by pseudonym")
    return DrawEntry(reader.hash("leaf"), members, reader.ids("wishes"))


def _drawn_of(reader: _Reader, entry: DrawEntry) -> DrawnEntry:
    rows = reader.objects("outcomes")
    reader.require(len(rows) == len(entry.wishes), "each wish has an outcome")
    outcomes = tuple(_outcome_of(*each) for each in zip(rows, entry.wishes, strict=True))
    return DrawnEntry(entry, reader.hash("lot"), reader.number("number"), outcomes)


def parse_entry(entry: object) -> DrawEntry:
    """Return the entry that `entry_to_json` wrote, with its leaf."""
    return _entry_of(_Reader(entry, "stored"))


def parse_outcome(outcome: object, slot_id: SlotId) -> WishOutcome:
    """Return the outcome of a wish that `outcome_to_json` wrote."""
    return _outcome_of(_Reader(outcome, "stored"), slot_id)


def _outcome_of(reader: _Reader, slot_id: SlotId) -> WishOutcome:
    return WishOutcome(
        slot_id,
        _member_of(WishResult, reader.text("result"), "result"),
        reader.optional("round", reader.number),
        reader.optional("lastNumber", reader.number),
        reader.optional("with", reader.slot_id),
        reader.optional("group", reader.text),
    )
