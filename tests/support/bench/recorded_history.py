"""A short real campaign without a violation, as a fixture for tests of the checker.

`python -m tests.support.bench.recorded_history DIRECTORY` replaces it by the history of another
one, of which it keeps what the checker reads: few users, slots and fields. Record one with

    python -m bench.faults --minutes 2.5 --users 12 --redis alone --only "loses all" "worker frozen"
"""

import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bench.faults.history import (
    CREATE_SLOT,
    FAULTS,
    FENCES,
    HISTORY,
    PROBE,
    RUN,
    SLOT_VERSIONS,
    WATCHED,
    Json,
    read_lines,
)

RECORDED = Path(__file__).parent / "recorded_history.json.gz"
RECORDED_SLOTS = 1
RECORDED_FIELDS = {
    *("__typename", "id", "status", "outcome", "booking", "entry", "slot", "version", "remaining"),
    *("_id", "user", "at", "by", "action", "history", "heldUntil", "movedFrom", "title", "start"),
    *("capacity", "waitlistCapacity", "holdMinutes", "cancelCutoffMinutes", "campaign"),
    *("bookings", "waitlist", "changedAt", "maxBookings", "opensAt", "closesAt", "published"),
    *("subscribed", "queried", "end", "_type", "waitedSince", "since", "movedTo", "choiceGroup"),
    *("forbidOverlap", "groupLimits", "group", "limit", "groups", "overriddenLimits", "bookings"),
    "madeAs",
}


@dataclass(slots=True)
class RecordedHistory:
    """The lines of each file of a history; see `bench.faults.history`."""

    operations: list[Json]
    versions: list[Json]
    fences: list[Json]
    faults: list[Json]
    watched: list[Json]
    run: Json

    @classmethod
    def load(cls) -> "RecordedHistory":
        """Return the fixture."""
        return cls(**orjson.loads(gzip.decompress(RECORDED.read_bytes())))

    def write(self, directory: Path) -> None:
        """Write the files of the history."""
        (directory / RUN).write_bytes(orjson.dumps(self.run))
        for name, lines in (
            (HISTORY, self.operations),
            (SLOT_VERSIONS, self.versions),
            (FENCES, self.fences),
            (FAULTS, self.faults),
            (WATCHED, self.watched),
        ):
            (directory / name).write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in lines))


def trimmed(directory: Path) -> RecordedHistory:
    """Return a history with what the checker reads, without most clients and slots of one kind."""
    versions = list(read_lines(directory / SLOT_VERSIONS))
    operations = [each for each in read_lines(directory / HISTORY) if _is_recorded(each)]
    dropped = _dropped_slots(operations)
    dropped |= {line["id"] for line in versions if line["collection"] == "slots"} - {
        slot for each in operations for slot in _slots(each)
    }
    return RecordedHistory(
        [_recorded_operation(each) for each in operations if not dropped & _slots(each)],
        [
            {**line, "document": _recorded_fields(line["document"])}
            for line in versions
            if line["id"] not in dropped and line["document"].get("slot") not in dropped
        ],
        numbered(
            line
            for line in read_lines(directory / FENCES)
            if not any(slot in line["key"] for slot in dropped) and "idempotency" not in line["key"]
        ),
        list(read_lines(directory / FAULTS)),
        [line for line in read_lines(directory / WATCHED) if line.get("slot") not in dropped],
        json.loads((directory / RUN).read_text()),
    )


def numbered(grants: Iterable[Json]) -> list[Json]:
    """Return grants with numbers, as if there were no others."""
    return [{**grant, "number": number} for number, grant in enumerate(grants, 1)]


def _is_recorded(operation: Json) -> bool:
    """Return whether to record an operation; of what many clients do alike, a part is enough."""
    if operation["operation"] in ("read", "converged", "viewer"):
        return bool(operation["id"] % 8 == 0)
    return operation["client"] not in {"creator 1", *(f"signed in {n}" for n in range(1, 10))}


def _dropped_slots(operations: Sequence[Json]) -> set[str]:
    """Return most slots of the probes and of the quiet users."""
    dropped = set[str]()
    for prefix in (PROBE, "quiet"):
        slots = Counter(
            slot
            for each in operations
            if each["client"].startswith(prefix)
            for slot in _slots(each)
        )
        dropped |= {slot for slot, _ in slots.most_common()[RECORDED_SLOTS:]}
    return dropped


def _slots(operation: Json) -> set[str]:
    """Return the slots of an operation."""
    given, created = operation["input"], (operation["outcome"] or {}).get("id", "")
    ids = [given.get(name) or "" for name in ("bookingId", "booking", "slotId", "slot")]
    ids += [claim["slotId"] for claim in given.get("claims", ())]
    ids += [created] if operation["operation"] == CREATE_SLOT else []
    # The id of a booking contains its slot.
    return {id_.partition("_")[2][:24] for id_ in ids if "_" in id_}


def _recorded_operation(operation: Json) -> Json:
    given = dict(operation["input"])
    if len(given.get("token", "")) > 12:
        given["token"] = given["token"][-12:]
    return {**operation, "input": given, "outcome": _recorded_fields(operation["outcome"])}


def _recorded_fields(value: Any) -> Any:
    if isinstance(value, dict):
        recorded = {
            name: _recorded_fields(each) for name, each in value.items() if name in RECORDED_FIELDS
        }
        # Of a booking that a response shows, the id and the user are enough.
        is_shown = "id" in recorded and str(recorded["id"]).startswith("booking_")
        names = ("id", "user") if is_shown else recorded
        return {name: recorded[name] for name in names if name in recorded}
    return [_recorded_fields(each) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    with gzip.GzipFile(RECORDED, "wb", 9, mtime=0) as file:
        recorded = trimmed(Path(sys.argv[1]))
        file.write(orjson.dumps(recorded))
