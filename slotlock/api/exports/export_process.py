"""The process that builds one file.

It reads the address of MongoDB and the job from the first line of its input, in JSON, and writes
the file to its output. It exits when its input ends: then the server or the request is gone.
"""

import asyncio
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
from datetime import datetime
from types import FrameType
from typing import TYPE_CHECKING, BinaryIO, NoReturn

import msgspec

from slotlock.api.exports.columns import TooManyRowsError
from slotlock.api.exports.export_builder import ExportJob
from slotlock.api.exports.sheet_texts import DEFAULT_LANGUAGE
from slotlock.domain.booking.booking import SlotId
from slotlock.domain.booking.slot_state import SlotState
from slotlock.domain.campaigns.terms import CampaignId
from slotlock.domain.reports.export_formats import ExportGrouping
from slotlock.domain.reports.roster import build_roster
from slotlock.domain.shared.sorting import sort_key
from slotlock.infrastructure.mongo.client import is_unavailable, open_database
from slotlock.infrastructure.mongo.schedule.periods import read_periods
from slotlock.infrastructure.mongo.slots.reads.rosters import RosterSnapshot, open_roster_snapshot

if TYPE_CHECKING:
    from slotlock.api.exports.csv_file import CsvFile
    from slotlock.api.exports.sign_in_sheets import SignInSheets
    from slotlock.api.exports.workbook import GroupedWorkbook, RosterWorkbook

OF_USERS = (ExportGrouping.USER, ExportGrouping.GROUP)
NICENESS = 5  # bookings take precedence
# Files for connections, the output and Python itself.
RESERVED_FILES = 64


async def write_export(url: str, job: ExportJob, target: BinaryIO, temp_dir: str) -> bool:
    """Write the file of a job to the target; return whether it shows all characters."""
    async with open_database(url) as database:
        is_campaign = job.kind == "campaign"
        target_id = CampaignId(job.id) if is_campaign else SlotId(job.id)
        async with open_roster_snapshot(database, target_id, is_campaign=is_campaign) as rosters:
            periods = await read_periods(database)
            writer = await _open_writer(rosters, job, target, temp_dir)
            async for page in rosters.pages():
                for slot in sorted(page.slots, key=_order):
                    writer.add(build_roster(slot, page.users, job.now, periods))
            if job.grouping in OF_USERS:
                from slotlock.api.exports.workbook import GroupedWorkbook

                assert isinstance(writer, GroupedWorkbook)  # noqa: S101  (only these have them)
                writer.add_users(await rosters.find_users(writer.slots_by_user))
            writer.close()
        return not writer.has_missing_glyphs


def _order(state: SlotState) -> tuple[datetime, str]:
    return state.slot.start, sort_key(state.slot.title)


async def _open_writer(
    rosters: RosterSnapshot, job: ExportJob, target: BinaryIO, temp_dir: str
) -> "CsvFile | GroupedWorkbook | RosterWorkbook | SignInSheets":
    # To import what no file of this format needs would double the time of a short one.
    if job.file_format == "csv":
        from slotlock.api.exports.csv_file import CsvFile

        return CsvFile(target, job)
    if job.file_format == "pdf":
        from slotlock.api.exports.sign_in_sheets import ResourceSheets, SignInSheets

        language = job.language or DEFAULT_LANGUAGE
        if job.grouping is ExportGrouping.RESOURCE:
            return ResourceSheets(target, language=language)
        return SignInSheets(target, only_published=job.kind == "campaign", language=language)
    from slotlock.api.exports.workbook import (
        MAX_GROUPS,
        MAX_SHEETS,
        GroupedWorkbook,
        RosterWorkbook,
    )

    max_sheets = min(MAX_SHEETS, _raise_open_file_limit(MAX_SHEETS) - RESERVED_FILES)
    if job.grouping is not ExportGrouping.SLOT:
        most = min(MAX_GROUPS + 1, max_sheets) if job.grouping in OF_USERS else max_sheets
        return GroupedWorkbook(target, temp_dir, job, most)
    sheet_per_slot = await rosters.count() <= max_sheets
    return RosterWorkbook(target, temp_dir, job, sheet_per_slot=sheet_per_slot)


def _raise_open_file_limit(sheets: int) -> int:
    """Raise the limit of open files as far as allowed and needed; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = sheets + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return needed if soft == resource.RLIM_INFINITY else soft


def _read_line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            raise SystemExit(1)
        line += byte
    return line


def _exit_on_eof() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _exit_on_sigterm(temp_dir: str) -> None:
    """End on SIGTERM at once: an exception could be raised in a destructor, which ignores it."""

    def remove_files_and_exit(number: int, frame: FrameType | None) -> NoReturn:
        shutil.rmtree(temp_dir, ignore_errors=True)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, remove_files_and_exit)


def main() -> int:
    """Build the file and return an exit code.

    It is 0, EX_CONFIG if fonts are missing, EX_TEMPFAIL without MongoDB, or EX_DATAERR for too many
    rows.
    """
    url, job = msgspec.json.decode(_read_line(), type=tuple[str, ExportJob])
    os.nice(NICENESS)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="slotlock-export-") as temp_dir,
            open(1, "wb", closefd=False) as target,
        ):
            _exit_on_sigterm(temp_dir)
            threading.Thread(target=_exit_on_eof, daemon=True).start()
            shows_all = asyncio.run(write_export(url, job, target, temp_dir))
    except TooManyRowsError:
        return os.EX_DATAERR
    except Exception as error:
        if is_unavailable(error):
            return os.EX_TEMPFAIL
        raise
    return os.EX_OK if shows_all else os.EX_CONFIG


if __name__ == "__main__":
    sys.exit(main())
