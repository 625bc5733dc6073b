"""One file at a time, each built in a process of its own.

A process, because writing a workbook is seconds of Python: a thread would take them from bookings,
which share its lock, and its memory would stay with the server. The file has no name, so that it is
gone with whoever holds it open, however they end.
"""

import asyncio
import os
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

COMMAND = (sys.executable, "-m", "slotlock.api.exports.child")
# How long one waits for others' files before being asked to come again.
WAIT_TIMEOUT_S = 20.0
RETRY_AFTER_S = 10
# MongoDB keeps the moment that is read for so long.
BUILD_TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class ExportFile:
    """The whole file, at its beginning."""

    file: BinaryIO
    size: int


@dataclass(frozen=True, slots=True)
class ExportBusy:
    """Others' files are built first; asking again is worth it."""

    retry_after_s: int


@dataclass(frozen=True, slots=True)
class ExportFailed:
    """MongoDB was away, or did not get done in time."""


class ExportBuilder:
    """Builds files of rosters, one after the other."""

    def __init__(self, mongo_url: str, now: Callable[[], datetime]) -> None:
        self._mongo_url = mongo_url
        self._now = now
        self._lock = asyncio.Lock()

    async def build(
        self, kind: str, id_: str, file_format: str
    ) -> ExportFile | ExportBusy | ExportFailed:
        """The roster of a `slot` or a `campaign` that exists, as `csv` or `xlsx`."""
        try:
            async with asyncio.timeout(WAIT_TIMEOUT_S):
                await self._lock.acquire()
        except TimeoutError:
            return ExportBusy(RETRY_AFTER_S)
        try:
            async with asyncio.timeout(BUILD_TIMEOUT_S):
                return await self._build(kind, id_, file_format)
        except TimeoutError:
            return ExportFailed()
        finally:
            self._lock.release()

    async def _build(self, kind: str, id_: str, file_format: str) -> ExportFile | ExportFailed:
        file: BinaryIO = tempfile.TemporaryFile(prefix="slotlock-export-")  # noqa: SIM115
        try:
            done = await self._run_child((kind, id_, file_format, self._now().isoformat()), file)
        except BaseException:
            file.close()
            raise
        if not done:
            file.close()
            return ExportFailed()
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        return ExportFile(file, size)

    async def _run_child(self, arguments: tuple[str, ...], output: BinaryIO) -> bool:
        """Whether the file was written; else MongoDB was away."""
        process = await asyncio.create_subprocess_exec(
            *COMMAND, *arguments, stdin=PIPE, stdout=output
        )
        try:
            assert process.stdin is not None  # noqa: S101  (it is a pipe)
            # By a pipe, since arguments and environments of processes can be read by others.
            process.stdin.write(self._mongo_url.encode() + b"\n")
            code = await process.wait()
        finally:
            await _terminate(process)
        if code not in (os.EX_OK, os.EX_TEMPFAIL):
            raise RuntimeError(f"building an export ended with {code}")
        return code == os.EX_OK


async def _terminate(process: Process) -> None:
    """Whoever wanted the file left, or it is there: no process of it is left behind."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        await asyncio.shield(process.wait())
    if process.stdin is not None:
        process.stdin.close()
