"""Histories of fault campaigns that are written by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import orjson

from bench.faults.checker.check import check_directory
from bench.faults.checker.effects import key_hash, parse_ticket_key
from bench.faults.checker.promises.keys import record_id
from bench.faults.checker.promises.mails import to_message_id
from bench.faults.checker.report import Report
from bench.faults.history import (
    ACCEPTED,
    CLOCK_OFFSET,
    MAILS,
    HistoryWriter,
    Json,
    Operation,
    raw_id,
)

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
    return {"id": booking_id(number), "user": user, "waitedSince": AT, "history": [entry]}


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
    records: set[str] = field(default_factory=set)
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
            "start": time_of(1e6),
            "end": time_of(1e6 + 3600),
            **fields,
        }
        self._line("slots", slot, "update", document)

    def ended(
        self,
        number: int,
        user: str,
        action: str,
        moved_to: int | None = None,
        before: Sequence[Json] = (),
    ) -> None:
        """Add a booking that has ended; `before` is its history, by default its creation."""
        is_hold = action == "expired"
        began, status = ("held", "held") if is_hold else ("booked", "confirmed")
        created = {"at": AT, "by": user, "action": began, "status": status}
        ended = {**created, "action": action, "status": "expired" if is_hold else "cancelled"}
        document: Json = {"slot": SLOT, "user": user, "history": [*(before or [created]), ended]}
        if is_hold:
            ended["heldUntil"] = AT
        if moved_to is not None:
            document["movedTo"] = {"id": booking_id(moved_to)}
        self._line("ended_bookings", booking_id(number), "final", document)

    def left(self, number: int, user: str, at: float, by: str | None = None) -> None:
        """Add an entry of the waiting list that ended without a booking at this time."""
        document = {"slot": SLOT, "user": user, "at": time_of(at), "by": by}
        self._line("ended_waitlist_entries", booking_id(number), "final", document)

    def entry(self, id_: str, state: str = "sent", **fields: str) -> None:
        """Add an entry of the outbox, as it is at the end."""
        self._line(
            "outbox", id_, "final", {"state": state, "at": AT, "recipient": "a@b.test", **fields}
        )

    def mail(self, entry_id: str, response: str | None = "250 taken") -> None:
        """Let the mail server take the mail of an entry, or refuse it."""
        line = {"recipient": "a@b.test", "id": to_message_id(entry_id), "response": response}
        with (self.directory / MAILS).open("ab") as file:
            file.write(orjson.dumps({**line, "at": self.now}) + b"\n")
        self.now += 100

    def stored(self, user: str, hashed_key: str, outcome: Json) -> None:
        """Add the stored outcome of a key, unless it has one."""
        key, booking = record_id(user, hashed_key), outcome.get("booking")
        if key not in self.records:
            self.records.add(key)
            document: Json = {"outcome": {"_type": outcome["__typename"]}}
            if booking:
                document["outcome"]["booking"] = {"id": raw_id(booking["id"])}
            self._line("idempotency_records", key, "final", document)

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
        client: str | None = None,
        **given: object,
    ) -> None:
        """Add an operation that ends now, by default after it started a second ago."""
        started_at = self.now - 1 if since is None else since
        self.now += 0.4
        finished_at = self.now if outcome else None
        key, shown_outcome = given.get("idempotencyKey"), outcome and outcome.get("outcome")
        if key and outcome and outcome["__typename"] in ACCEPTED:
            self.stored(user, key_hash(str(key)), outcome)
        if outcome and shown_outcome:
            self.stored(*parse_ticket_key(outcome["id"]), shown_outcome)
        self.history.write(
            Operation(
                self.history.next_id(),
                client or user,
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

    def cancelled(self, number: int, user: str, since: float | None = None) -> None:
        """Add a booking that its user has cancelled."""
        self.ended(number, user, "cancelled")
        outcome = {"__typename": "BookingCancelled", "booking": shown(number)}
        self.act("cancel", user, outcome, since, bookingId=shown(number)["id"])

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
