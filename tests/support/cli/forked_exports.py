"""Processes that build rosters, forked by the fork server: to start one takes 0.3 s of imports.

An app sends two files: a socket, which is the input of the process and returns its exit code, and
its output.
"""

import asyncio
import importlib
import os
import signal
import socket
from typing import BinaryIO

from slotlock.api.exports import export_process
from slotlock.api.exports.export_builder import COMMAND, ExportBuilder

# The setting of apps that start these processes as they do for an operator.
STARTED_EXPORTS = "VARIANT_STARTED_EXPORTS"
MAX_REQUEST_BYTES = 4096

# The ends of the fork server and of the apps that it forks.
requests, apps_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
start_child = ExportBuilder._run_child


def fork_instead_of_starting() -> None:
    """Let the apps that this process forks ask it for the processes of their exports."""
    for name in ("csv_file", "sign_in_sheets", "workbook"):
        importlib.import_module(f"slotlock.api.exports.{name}")
    ExportBuilder._run_child = _run_child  # type: ignore[method-assign, assignment]


async def _run_child(
    builder: ExportBuilder, command: tuple[str, ...], line: bytes, output: BinaryIO
) -> int:
    if command != COMMAND or STARTED_EXPORTS in os.environ:
        return await start_child(builder, command, line, output)
    connection, for_child = socket.socketpair()
    with for_child:
        socket.send_fds(apps_end, [b"export"], [for_child.fileno(), output.fileno()])
    reader, writer = await asyncio.open_connection(sock=connection)
    try:
        writer.write(line + b"\n")
        return int(await reader.read())
    finally:
        writer.close()


def fork_export() -> None:
    """Fork the process of the next request."""
    _, files, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 2)
    if os.fork() == 0:
        code = 1
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, file in enumerate(files):
                os.dup2(file, number)
            code = export_process.main()
        finally:
            os.write(files[0], b"%d" % code)
            os._exit(0)
    for file in files:
        os.close(file)
