"""The history of a campaign: files that a checker can read again at any time.

    history.jsonl        one operation a line, see `Operation`
    slot_versions.jsonl  every version of every slot, and the final documents
    fences.jsonl         every fencing token that Redis handed out: {number, node, key, fence, at}
    watched.jsonl        what subscribers received, see `Watcher`
    mails.jsonl          what the mail server took and refused, see `FaultMailServer`
    faults.jsonl         {kind, target, started_at, ended_at, healthy_at}
    problems.jsonl       what the campaign itself saw: {kind, description}
    run.json             {seed, minutes, settings, control, clock_offset_s}

All times are in seconds of the monotonic clock of the one process that drives the campaign. With
`clock_offset_s` added, they are Unix times of its host, which the members of MongoDB share.
"""

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import orjson

Json = dict[str, Any]

HISTORY = "history.jsonl"
SLOT_VERSIONS = "slot_versions.jsonl"
FENCES = "fences.jsonl"
WATCHED = "watched.jsonl"
MAILS = "mails.jsonl"
FAULTS = "faults.jsonl"
PROBLEMS = "problems.jsonl"
RUN = "run.json"
CLOCK_OFFSET = "clock_offset_s"
# The time until which all changes had led to mails when the processes were stopped.
MAILS_UNTIL = "mails_until"
# The names of the clients that measure when bookings are possible begin with this word.
PROBE = "probe"
# The error of a request while a server is unavailable: an internal one that asks for a repetition.
UNAVAILABLE = "UNAVAILABLE"
# The names of operations that several modules know.
CREATE_SLOT, REFRESH, BOOK_ALL, REUSE, TEAM = "createSlot", "refresh", "bookAll", "reuse", "team"
GUARDIANS = "guardians"
PUBLISH, UNPUBLISH = "publish", "unpublish"
# No request: a subscriber has the last state, or a key has no final response.
CONVERGED, UNANSWERED = "converged", "unanswered"
# Responses that say that something was done, now or by an earlier request with the same key.
ACCEPTED = {
    "Booked",
    "AllBooked",
    "BookingMoved",
    "BookingConfirmed",
    "HoldExtended",
    "BookingCancelled",
    "WaitlistJoined",
    "WaitlistLeft",
}
# The fault that ends holds early.
HOLDS_END = "holds end early"
# What a subscriber and a query show of a slot.
SHOWN_STATE = ("version", "remaining", "capacity", "status")


@dataclass(slots=True)
class Operation:
    """One request and its response.

    `finished_at` and `outcome` are None without a response; `error` is the code of an error.
    """

    id: int
    client: str
    operation: str
    user_id: str
    input: Json
    started_at: float
    finished_at: float | None = None
    outcome: Json | None = None
    error: str | None = None


class HistoryWriter:
    """Writes a history to a directory."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._operations: TextIO = (directory / HISTORY).open("w")
        self._watched: TextIO = (directory / WATCHED).open("w")
        self._faults: TextIO = (directory / FAULTS).open("w")
        self._ids = itertools.count(1)

    def next_id(self) -> int:
        """Return an id that no other operation has."""
        return next(self._ids)

    def write(self, operation: Operation) -> None:
        """Add an operation that is over: with a response, an error, or without either."""
        self._operations.write(orjson.dumps(operation).decode() + "\n")

    def write_watched(self, line: Json) -> None:
        """Add something that a subscriber received."""
        self._watched.write(orjson.dumps(line).decode() + "\n")

    def write_fault(
        self, kind: str, target: str, started_at: float, ended_at: float, healthy_at: float
    ) -> None:
        """Add a fault that is over, with the time at which all servers were healthy again."""
        times = {"started_at": started_at, "ended_at": ended_at, "healthy_at": healthy_at}
        self._faults.write(json.dumps({"kind": kind, "target": target, **times}) + "\n")

    def write_problems(self, problems: Iterable[tuple[str, str]]) -> None:
        """Write the kinds and descriptions of what the campaign itself saw at its end."""
        lines = [{"kind": kind, "description": description} for kind, description in problems]
        (self.directory / PROBLEMS).write_text("".join(f"{json.dumps(each)}\n" for each in lines))

    def write_run(self, run: Json) -> None:
        """Write the seed and the settings of the run."""
        (self.directory / RUN).write_text(json.dumps(run, indent=1) + "\n")

    def close(self) -> None:
        """Close the files."""
        self._operations.close()
        self._watched.close()
        self._faults.close()


def raw_id(global_id: str) -> str:
    """Return the last database id, in hex, that an id of the API contains."""
    return global_id[-24:]


def read_lines(path: Path) -> Iterator[Json]:
    """Yield the objects of a file with one a line; nothing if the file does not exist."""
    if path.exists():
        with path.open("rb") as file:
            for line in file:
                yield orjson.loads(line)


def read_operations(directory: Path) -> list[Operation]:
    """Return the operations of a history, by their start."""
    operations = [Operation(**line) for line in read_lines(directory / HISTORY)]
    operations.sort(key=lambda operation: (operation.started_at, operation.id))
    return operations
