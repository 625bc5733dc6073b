"""The recorded versions of each slot, in their order, and the documents at the end."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from pathlib import Path

from bench.faults.checker.report import Report
from bench.faults.history import CLOCK_OFFSET, MAILS_UNTIL, RUN, SLOT_VERSIONS, Json, read_lines


@dataclass(frozen=True, slots=True)
class LiveBooking:
    """A live booking in one version; `held_until` is None for a confirmed one, else seconds."""

    user_id: str
    held_until: float | None
    created_by: str | None
    creation: str
    created_at: str
    moved_from: str | None = None


@dataclass(frozen=True, slots=True)
class SlotVersion:
    """One version of a slot; `waitlist` are the entries with their users, the first served first.

    `read_at` is when the recorder had it, after the majority. `written_at` is a time before which
    it did not exist, 0 if that is not known. `changed_at` is when its writer says it decided.
    """

    number: int
    read_at: float
    written_at: float
    capacity: int
    remaining: int
    status: str
    waitlist_capacity: int
    bookings: dict[str, LiveBooking]
    waitlist: tuple[tuple[str, str], ...]
    changed_at: float
    document: Json
    clock_offset_s: float

    @property
    def ids(self) -> set[str]:
        """The ids of the live bookings and waitlist entries."""
        return self.bookings.keys() | {id_ for id_, _ in self.waitlist}

    @property
    def starts_at(self) -> float:
        """When the slot starts."""
        return to_seconds(self.document["start"], self.clock_offset_s)

    @property
    def free(self) -> int:
        """The number of places without a live booking."""
        return self.capacity - len(self.bookings)


@dataclass(slots=True)
class SlotVersions:
    """All versions of all slots, and by id what ended, outcomes of keys, mails, and last reads."""

    slots: dict[str, list[SlotVersion]] = field(default_factory=dict)
    ended_bookings: dict[str, Json] = field(default_factory=dict)
    ended_entries: dict[str, Json] = field(default_factory=dict)
    records: dict[str, Json] = field(default_factory=dict)
    outbox: dict[str, Json] = field(default_factory=dict)
    final_at: dict[str, float] = field(default_factory=dict)
    clock_offset_s: float = 0.0
    mails_until: float = inf

    @property
    def users_by_booking(self) -> dict[str, str]:
        """The user of each booking, live or ended."""
        ended = {id_: str(each["user"]) for id_, each in self.ended_bookings.items()}
        return ended | {
            id_: booking.user_id
            for of_slot in self.slots.values()
            for version in of_slot
            for id_, booking in version.bookings.items()
        }

    def is_mail_due(self, at: str) -> bool:
        """Return whether a mail about a change at this time had to be sent before the end."""
        return to_seconds(at, self.clock_offset_s) < self.mails_until


def read_versions(directory: Path, report: Report) -> SlotVersions:
    """Read the versions; report those that contradict each other."""
    found, result = defaultdict[str, list[SlotVersion]](list), SlotVersions()
    final = result.final_at
    run = json.loads((directory / RUN).read_text())
    clock_offset_s = float(run[CLOCK_OFFSET])
    result.mails_until = run.get(MAILS_UNTIL, inf)
    for line in read_lines(directory / SLOT_VERSIONS):
        document, collection = line["document"], line["collection"]
        if collection == "ended_bookings":
            result.ended_bookings[str(line["id"])] = document
        elif collection == "ended_waitlist_entries":
            result.ended_entries[str(line["id"])] = document
        elif collection == "idempotency_records":
            result.records[str(line["id"])] = document["outcome"]
        elif collection == "outbox":
            result.outbox[str(line["id"])] = document
        elif collection == "slots" and document is None:
            # Nobody deletes slots, and MongoDB keeps the images of all versions.
            report.add("version without a document", f"slot {line['id']}", versions=[line])
        elif collection == "slots":
            written_at = line.get("written_at", 0.0)
            version = to_version(document, line["read_at"], written_at, clock_offset_s)
            is_final = line["kind"] == "final"
            _append(report, str(line["id"]), found[str(line["id"])], version, is_final=is_final)
            if is_final:
                final[str(line["id"])] = line["read_at"]
    result.slots = dict(found)
    result.clock_offset_s = clock_offset_s
    for slot_id in found.keys() - final if final else ():
        last = found[slot_id][-1].document
        report.add("slot vanished", f"slot {slot_id} is not there at the end", versions=[last])
    report.counts["versions"] = sum(map(len, found.values()))
    return result


def _append(
    report: Report,
    slot_id: str,
    versions: list[SlotVersion],
    version: SlotVersion,
    *,
    is_final: bool,
) -> None:
    last = versions[-1] if versions else None
    known = last.number if last else 0
    if last is None or version.number > known:
        # The stream begins before the first slot, and continues where it was interrupted.
        if is_final or version.number > known + 1:
            description = f"slot {slot_id}: {version.number} after {known}"
            evidence = [each.document for each in (last, version) if each]
            report.add("version not recorded", description, versions=evidence)
        versions.append(version)
        return
    evidence = [last.document, version.document]
    if version.number < last.number:
        report.add("version fell", f"slot {slot_id}: {version.number}", versions=evidence)
    elif _versioned(version.document) != _versioned(last.document):
        # Two writers wrote the same version: the condition on the version did not hold.
        description = f"slot {slot_id} has two versions {version.number}"
        report.add("version written twice", description, versions=evidence)
        versions.append(version)


def _versioned(document: Json) -> Json:
    # The sweeper corrects `nextDeadline` without a new version, as no client sees it.
    return {name: value for name, value in document.items() if name != "nextDeadline"}


def to_version(
    document: Json, read_at: float, written_at: float, clock_offset_s: float
) -> SlotVersion:
    """Return the version that a document describes."""
    return SlotVersion(
        document["version"],
        read_at,
        written_at,
        document["capacity"],
        document["remaining"],
        document["status"],
        document.get("waitlistCapacity", 100),
        {str(each["id"]): _to_booking(each, clock_offset_s) for each in document["bookings"]},
        tuple((str(each["id"]), str(each["user"])) for each in document["waitlist"]),
        to_seconds(document["changedAt"], clock_offset_s),
        document,
        clock_offset_s,
    )


def to_seconds(time: str, clock_offset_s: float) -> float:
    """Return a time of a document in seconds of the monotonic clock of the campaign."""
    return datetime.fromisoformat(time).timestamp() - clock_offset_s


def _to_booking(entry: Json, clock_offset_s: float) -> LiveBooking:
    user, history = str(entry["user"]), entry.get("history")
    if not history:
        return LiveBooking(user, None, user, "booked", entry["at"])
    first, last = history[0], history[-1]
    held = last["status"] == "held" and last.get("heldUntil")
    moved = entry.get("movedFrom")
    return LiveBooking(
        user,
        to_seconds(held, clock_offset_s) if held else None,
        first["by"],
        first["action"],
        first["at"],
        moved["id"] if moved else None,
    )
