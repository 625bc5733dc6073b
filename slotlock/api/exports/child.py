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
from slotlock.api.exports.workbook import MOST_SHEETS, RosterWorkbook
from slotlock.domain.bookings import SlotId
from slotlock.domain.rosters import roster_of
from slotlock.domain.terms import CampaignId
from slotlock.stores import mongo
from slotlock.stores.rosters import Rosters, rosters_now

NICENESS = 5  # bookings come first
# Connections, the output, what Python has open.
OTHER_FILES = 64


@dataclass(frozen=True, slots=True)
class Job:
    """The roster of a slot or a campaign, in which form, and as of when its holds are looked at."""

    kind: str
    id: str
    form: str
    now: datetime


async def build(url: str, job: Job, target: BinaryIO) -> None:
    """Write the file."""
    client, database = mongo.connect(url)
    try:
        campaign = job.kind == "campaign"
        wanted = CampaignId(job.id) if campaign else SlotId(job.id)
        async with rosters_now(database, wanted, campaign=campaign) as rosters:
            with tempfile.TemporaryDirectory(prefix="slotlock-export-") as scratch:
                file = await _file(rosters, job.form, target, scratch)
                async for page in rosters.pages():
                    for slot in page.slots:
                        file.add(roster_of(slot, page.people, job.now))
                file.close()
    finally:
        await client.close()


async def _file(
    rosters: Rosters, form: str, target: BinaryIO, scratch: str
) -> CsvFile | RosterWorkbook:
    if form == "csv":
        return CsvFile(target)
    sheet_a_slot = await rosters.count() <= min(MOST_SHEETS, _files_to_have() - OTHER_FILES)
    return RosterWorkbook(target, scratch, sheet_a_slot=sheet_a_slot)


def _files_to_have() -> int:
    """How many files this process may have open, after asking for as many as will be needed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_SHEETS + OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft


def _first_line() -> str:
    line = b""
    while not line.endswith(b"\n"):
        read = os.read(0, 1)
        if not read:
            raise SystemExit(1)
        line += read
    return line.decode().rstrip("\n")


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def main(kind: str, of: str, form: str, now: str) -> int:
    """Build the file; 0, or the code of a failure that may pass when MongoDB is away."""
    url = _first_line()
    signal.signal(signal.SIGTERM, _stop)
    threading.Thread(target=_end_with_input, daemon=True).start()
    os.nice(NICENESS)
    try:
        with open(1, "wb", closefd=False) as target:
            asyncio.run(build(url, Job(kind, of, form, datetime.fromisoformat(now)), target))
    except Exception as error:
        if mongo.is_away(error):
            return os.EX_TEMPFAIL
        raise
    return os.EX_OK


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
