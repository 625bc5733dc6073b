"""Measures the export of a large roster: `python -m bench.exports` (make bench-exports).

The campaign has 200 slots with 500 bookings each, of 20,000 users, on an embedded MongoDB.
The process that a server would start builds each file format.
The output has its duration and its maximum memory.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from bson import ObjectId
from pymongo import MongoClient

from bench.comparison.targets.slots import Document
from bench.machine import machine_summary
from slotlock.devserver.embedded import embedded_servers
from slotlock.domain.booking.booking import (
    Booking,
    BookingAction,
    BookingId,
    BookingLimit,
    BookingStatus,
    HistoryEntry,
    SlotId,
)
from slotlock.domain.booking.slot import Slot, SlotKind, SlotStatus
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignId, CampaignTerms
from slotlock.domain.users.user import Role, UserId
from slotlock.infrastructure.mongo.slots import booking_documents, documents
from slotlock.infrastructure.mongo.users.documents import to_new_document

SLOTS, BOOKINGS, USERS = 200, 500, 20_000
CAMPAIGN_ID = CampaignId("c" * 24)
NOW = datetime(2031, 5, 1, 12, tzinfo=UTC)
# The kernel's maximum for the process itself; the number of wait() includes that of its parent.
MEASURING_SCRIPT = """
import atexit, re, runpy, sys
@atexit.register
def print_maximum_memory():
    print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1], file=sys.stderr)
runpy.run_module("slotlock.api.exports.child", run_name="__main__", alter_sys=True)
"""


def generate_users() -> Iterator[Document]:
    """Yield all users, with names and addresses of realistic length."""
    for number in range(USERS):
        name, email = f"Ada Number {number} Lovelace", f"ada.lovelace.{number}@school.example"
        user = to_new_document(name, email, Role.MEMBER, "hash", NOW)
        yield {**user, "_id": ObjectId(f"{number:024x}"), "groups": ["class:5a", "choir"]}


def generate_slots() -> Iterator[Document]:
    """Yield the slots with their rosters; every fifth booking has a longer history."""
    terms = CampaignTerms(CAMPAIGN_ID, 1, True, NOW, NOW + timedelta(days=30))
    for number in range(SLOTS):
        start = NOW + timedelta(days=number // 8, hours=number % 8)
        slot = Slot(
            id=SlotId(f"{number:024x}"),
            title=f"Swimming for beginners {number}",
            start=start,
            end=start + timedelta(minutes=45),
            time_zone="Europe/Berlin",
            capacity=BOOKINGS,
            location="Indoor pool, lane 3",
            kind=SlotKind.COURSE,
            status=SlotStatus.PUBLISHED,
            terms=terms,
        )
        entries = [
            booking_documents.booking_to_subdocument(_booking(slot, index))
            for index in range(BOOKINGS)
        ]
        state = SlotState(slot, version=BOOKINGS, changed_at=NOW, booked_count=BOOKINGS)
        yield {**documents.to_document(state), "bookings": entries}


def _booking(slot: Slot, index: int) -> Booking:
    number = int(slot.id, 16) * BOOKINGS + index
    user_id = UserId(f"{number % USERS:024x}")
    by, limits = (UserId("0" * 24), (BookingLimit.CLOSED,)) if index % 5 == 0 else (user_id, ())
    log: tuple[HistoryEntry, ...] = (
        HistoryEntry(
            NOW, by, BookingAction.BOOKED, BookingStatus.CONFIRMED, overridden_limits=limits
        ),
    )
    if index % 5 == 1:
        until = NOW + timedelta(minutes=5)
        log = (HistoryEntry(NOW, by, BookingAction.HELD, BookingStatus.HELD, until), log[0])
    return Booking(BookingId(f"{number:024x}"), slot.id, user_id, log)


def build(url: str, file_format: str, file: BinaryIO) -> tuple[float, float]:
    """Build one file and return the seconds and the megabytes of memory."""
    command = (
        sys.executable,
        "-c",
        MEASURING_SCRIPT,
        "campaign",
        CAMPAIGN_ID,
        file_format,
        NOW.isoformat(),
    )
    started_at = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=file, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        process.stdin.write(url.encode() + b"\n")
        process.stdin.flush()
        output = process.stderr.read().decode()
    duration_s = time.perf_counter() - started_at
    if process.returncode != 0:
        raise SystemExit(output)
    return duration_s, int(output.split()[-1]) / 1000


def run(file_formats: Sequence[str] = ("csv", "xlsx")) -> None:
    """Fill a database and print a line for each file format."""
    with tempfile.TemporaryDirectory() as folder, embedded_servers(Path(folder)) as servers:
        url = servers.mongo_url.replace("/?", "/bench_exports?", 1)
        with closing(MongoClient[Document](url)) as client:
            database = client.get_default_database()
            database["users"].insert_many(generate_users())
            database["slots"].insert_many(generate_slots())
            database["slots"].create_indexes([index.to_model() for index in documents.SLOT_INDEXES])
        print(
            f"{SLOTS * BOOKINGS:,} bookings in {SLOTS} slots of {USERS:,} users; "
            f"{machine_summary()}"
        )
        for file_format in file_formats:
            with tempfile.TemporaryFile() as file:
                seconds, megabytes = build(url, file_format, file)
                length = file.seek(0, os.SEEK_END) / 1e6
            print(
                f"{file_format:5} {seconds:5.1f} s {megabytes:6.0f} MB of memory, "
                f"{length:5.1f} MB file"
            )


if __name__ == "__main__":
    run()
