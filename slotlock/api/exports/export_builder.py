"""Builds export files one at a time, each in a process of its own.

Writing a workbook takes seconds of Python. A thread would take that time from bookings, because
both need the interpreter lock, and the server would keep its memory. The file has no name, so it
disappears with the last process that has it open.
"""

import asyncio
import logging
import os
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from datetime import datetime
from typing import BinaryIO

import msgspec

from slotlock.domain.reports.export_formats import CsvSeparator, ExportGrouping, ExportLanguage
from slotlock.domain.shared.value_object import value_object

COMMAND = (sys.executable, "-m", "slotlock.api.exports.export_process")
LETTERS_COMMAND = (sys.executable, "-m", "slotlock.api.exports.letters")
# The file is complete, also without some fonts.
COMPLETE_CODES = (os.EX_OK, os.EX_CONFIG)
# MongoDB was unavailable, or there are too many rows.
EXPECTED_CODES = (*COMPLETE_CODES, os.EX_TEMPFAIL, os.EX_DATAERR)
# A request waits this long for other exports before it gets ExportBusy.
WAIT_TIMEOUT_S = 20.0
RETRY_AFTER_S = 10
# MongoDB keeps the snapshot that the child reads for this long.
BUILD_TIMEOUT_S = 300.0


@value_object
class ExportJob:
    """The roster to write: of an existing `slot` or `campaign`, as `csv`, `xlsx` or `pdf`.

    Holds expire by `now`. The separator is that of a CSV file. Without a language, a table has the
    names and codes of the API, and a PDF is English. The file of a leader has no addresses.
    """

    kind: str
    id: str
    file_format: str
    now: datetime
    separator: CsvSeparator = CsvSeparator.COMMA
    language: ExportLanguage | None = None
    grouping: ExportGrouping = ExportGrouping.SLOT
    for_leader: bool = False


@value_object
class ExportFile:
    """A complete file, positioned at its start.

    With missing glyphs, boxes stand for some characters of a PDF, because no font has them.
    """

    file: BinaryIO
    size: int
    has_missing_glyphs: bool = False


@value_object
class ExportBusy:
    """Other exports took too long; the client should retry."""

    retry_after_s: int


@value_object
class ExportFailed:
    """MongoDB was unavailable, or the export took longer than BUILD_TIMEOUT_S."""


@value_object
class ExportTooLarge:
    """The file would have too many rows for its format."""


log = logging.getLogger(__name__)

Export = ExportFile | ExportBusy | ExportFailed | ExportTooLarge


class ExportBuilder:
    """Builds files of rosters and of letters, one at a time."""

    def __init__(self, mongo_url: str) -> None:
        self._mongo_url = mongo_url
        self._lock = asyncio.Lock()

    async def build(self, job: ExportJob) -> Export:
        """Build the file of a roster."""
        # Other users can read the arguments and environment of a process, but not its pipe.
        line = msgspec.json.encode((self._mongo_url, job))
        return await self._build_alone(COMMAND, line, f"sign-in sheets of {job.kind}_{job.id}")

    async def build_letters(self, letters: bytes) -> Export:
        """Build the PDF of letters, which a line of JSON describes (`letters.py`)."""
        return await self._build_alone(LETTERS_COMMAND, letters, "letters")

    async def _build_alone(self, command: tuple[str, ...], line: bytes, subject: str) -> Export:
        try:
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                await self._lock.acquire()
        except TimeoutError:
            return ExportBusy(RETRY_AFTER_S)
        try:
            async with asyncio.timeout(BUILD_TIMEOUT_S):
                return await self._build(command, line, subject)
        except TimeoutError:
            return ExportFailed()
        finally:
            self._lock.release()

    async def _build(self, command: tuple[str, ...], line: bytes, subject: str) -> Export:
        file: BinaryIO = tempfile.TemporaryFile(prefix="slotlock-export-")  # noqa: SIM115
        try:
            code = await self._run_child(command, line, file)
        except BaseException:
            file.close()
            raise
        if code == os.EX_CONFIG:
            log.warning("no font has some characters of the %s", subject)
        if code not in COMPLETE_CODES:
            file.close()
            return ExportTooLarge() if code == os.EX_DATAERR else ExportFailed()
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        return ExportFile(file, size, has_missing_glyphs=code == os.EX_CONFIG)

    async def _run_child(self, command: tuple[str, ...], line: bytes, output: BinaryIO) -> int:
        """Return the exit code of the child, which is one of `EXPECTED_CODES`."""
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=output)
        try:
            assert process.stdin is not None  # noqa: S101  (it is a pipe)
            process.stdin.write(line + b"\n")
            code = await process.wait()
        finally:
            await _terminate(process)
        if code not in EXPECTED_CODES:
            raise RuntimeError(f"the process that builds an export ended with {code}")
        return code


async def _terminate(process: Process) -> None:
    """End the child if it still runs, and close its input."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        await asyncio.shield(process.wait())
    if process.stdin is not None:
        process.stdin.close()
