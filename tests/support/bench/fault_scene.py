"""Histories of fault campaigns that are written by hand."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import orjson

from bench.faults.checker.check import check_directory
from bench.faults.checker.report import Report
from bench.faults.history import CLOCK_OFFSET, HistoryWriter, Json, Operation

SLOT = "5" * 24
ANN, BEN, CLEO = "a" * 24, "b" * 24, "c" * 24
AT = "2030-01-01T00:00:00+00:00"
CLOCK_OFFSET_S = 1.8e9


def booking_id(number: int) -> str:
    """Return the id of a booking in hex."""
    return f"{number:024x}"


def shown(number: int, slot: str = SLOT) -> Json:
    """Return a booking as a response shows it."""
    return {"id": f"booking_{slot}{booking_id(number)}"}


def live(number: int, user: str) -> Json:
    """Return a booking as the document of its slot contains it."""
    return {"id": booking_id(number), "user": user, "at": AT}


def time_of(seconds: float) -> str:
    """Return a time of the scene as documents contain it."""
    return datetime.fromtimestamp(seconds + CLOCK_OFFSET_S, UTC).isoformat()


def held(number: int, user: str, until: float) -> Json:
    """Return a booking that is held until a time of the scene."""
    ends = time_of(until)
    entry = {"at": AT, "by": user, "action": "held", "status": "held", "heldUntil": ends}
    return {"id": booking_id(number), "user": user, "history": [entry]}


def offered(number: int, user: str) -> Json:
    """Return a booking that the waiting list made."""
    entry = {"at": AT, "by": None, "action": "promoted", "status": "confirmed"}
    return {"id": booking_id(number), "user": user, "history": [entry]}


def waiting(number: int, user: str) -> Json:
    """Return an entry of a waiting list."""
    return {"id": booking_id(number), "user": user, "since": AT}


@dataclass
class Scene:
    """A history that is written by hand; each version and operation takes a moment."""

    directory: Path
    history: HistoryWriter = field(init=False)
    lines: list[Json] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    now: float = 100.0

    def __post_init__(self) -> None:
        self.history = HistoryWriter(self.directory)

    def version(
        self,
        *bookings: Json,
        waitlist: tuple[Json, ...] = (),
        slot: str = SLOT,
        capacity: int = 1,
        number: int | None = None,
        **fields: object,
    ) -> None:
        """Add a version of a slot."""
        number = number or self.numbers.get(slot, 0) + 1
        self.numbers[slot] = number
        self.now += 0.4
        document = {
            "_id": slot,
            "version": number,
            "capacity": capacity,
            "remaining": capacity - len(bookings),
            "status": "published",
            "bookings": bookings,
            "waitlist": waitlist,
            "changedAt": time_of(self.now - 0.4),
            **fields,
        }
        self._line("slots", slot, "update", document)

    def ended(self, number: int, user: str, action: str) -> None:
        """Add a booking that has ended."""
        document = {"user": user, "history": [{"at": AT, "by": user, "action": action}]}
        self._line("ended_bookings", booking_id(number), "final", document)

    def _line(self, collection: str, key: str, kind: str, document: Json) -> None:
        line = {"collection": collection, "id": key, "kind": kind, "document": document}
        times: Json = {"read_at": self.now, "written_at": self.now - 0.3}
        if kind != "final":
            times["cluster_time"] = [len(self.lines), 1]
        self.lines.append({**line, **times})

    def act(
        self,
        operation: str,
        user: str,
        outcome: Json | None,
        since: float | None = None,
        error: str | None = None,
        **given: object,
    ) -> None:
        """Add an operation that ends now, by default after it started a second ago."""
        started_at = self.now - 1 if since is None else since
        self.now += 0.4
        finished_at = self.now if outcome else None
        self.history.write(
            Operation(
                self.history.next_id(),
                user,
                operation,
                user,
                {"slotId": f"slot_{SLOT}", **given},
                started_at,
                finished_at,
                outcome,
                error,
            )
        )
        self.now += 2

    def booked(self, number: int, user: str, **given: object) -> None:
        """Add a booking that was accepted."""
        self.act("book", user, {"__typename": "Booked", "booking": shown(number)}, **given)  # type: ignore[arg-type]

    def refused(self, user: str, name: str, operation: str = "book", **given: object) -> None:
        """Add a command that was refused."""
        self.act(operation, user, {"__typename": name}, **given)  # type: ignore[arg-type]

    def check(self) -> Report:
        """Check the history."""
        versions = [line for line in self.lines if line["collection"] == "slots"]
        for slot, document in {line["id"]: line["document"] for line in versions}.items():
            self._line("slots", slot, "final", document)
        self.history.write_run({CLOCK_OFFSET: CLOCK_OFFSET_S})
        self.history.close()
        with (self.directory / "slot_versions.jsonl").open("wb") as file:
            for line in self.lines:
                file.write(orjson.dumps(line) + b"\n")
        return check_directory(self.directory)

    def kinds(self) -> set[str]:
        """Return the kinds of the violations."""
        return set(self.check().kinds())
