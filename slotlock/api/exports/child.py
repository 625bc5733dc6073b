"""The process that builds one file: `python -m slotlock.api.exports.child slot ID csv NOW`.

It reads MongoDB's address from its first line of input and writes the file to its output. When the
input ends, whoever wanted the file is gone, and so is this process, with all that it kept on disk.
"""

import asyncio
import os
import resource
import signal
import sys
import tempfile
import threading
from dataclasses import dataclass
from datetime import datetime
from types import FrameType
from typing import BinaryIO, NoReturn

from slotlock.api.exports.csv_file import CsvFile
from slotlock.api.exports.workbook import MAX_SHEETS, RosterWorkbook
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.reports.roster import build_roster
from slotlock.infrastructure.mongo.client import connect, is_unavailable
from slotlock.infrastructure.mongo.slots.rosters import RosterSnapshot, open_roster_snapshot

NICENESS = 5  # bookings come first
# Connections, the output, what Python has open.
RESERVED_FILES = 64


@dataclass(frozen=True, slots=True)
class ExportJob:
    """The roster of a slot or a campaign, in which form, and as of when its holds are looked at."""

    kind: str
    id: str
    file_format: str
    now: datetime


async def write_export(url: str, job: ExportJob, target: BinaryIO) -> None:
    """Write the file."""
    client, database = connect(url)
    try:
        campaign = job.kind == "campaign"
        wanted = CampaignId(job.id) if campaign else SlotId(job.id)
        async with open_roster_snapshot(database, wanted, is_campaign=campaign) as rosters:
            with tempfile.TemporaryDirectory(prefix="slotlock-export-") as scratch:
                file = await _open_writer(rosters, job.file_format, target, scratch)
                async for page in rosters.pages():
                    for slot in page.slots:
                        file.add(build_roster(slot, page.users, job.now))
                file.close()
    finally:
        await client.close()


async def _open_writer(
    rosters: RosterSnapshot, file_format: str, target: BinaryIO, temp_dir: str
) -> CsvFile | RosterWorkbook:
    if file_format == "csv":
        return CsvFile(target)
    sheet_a_slot = await rosters.count() <= min(
        MAX_SHEETS, _raise_open_file_limit() - RESERVED_FILES
    )
    return RosterWorkbook(target, temp_dir, sheet_per_slot=sheet_a_slot)


def _raise_open_file_limit() -> int:
    """How many files this process may have open, after asking for as many as will be needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_SHEETS + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft


def _read_mongo_url() -> str:
    line = b""
    while not line.endswith(b"\n"):
        read = os.read(0, 1)
        if not read:
            raise SystemExit(1)
        line += read
    return line.decode().rstrip("\n")


def _exit_on_eof() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _on_sigterm(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def main(kind: str, id_: str, file_format: str, now: str) -> int:
    """Build the file; 0, or the code of a failure that may pass when MongoDB is away."""
    url = _read_mongo_url()
    signal.signal(signal.SIGTERM, _on_sigterm)
    threading.Thread(target=_exit_on_eof, daemon=True).start()
    os.nice(NICENESS)
    try:
        with open(1, "wb", closefd=False) as target:
            asyncio.run(
                write_export(
                    url, ExportJob(kind, id_, file_format, datetime.fromisoformat(now)), target
                )
            )
    except Exception as error:
        if is_unavailable(error):
            return os.EX_TEMPFAIL
        raise
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
