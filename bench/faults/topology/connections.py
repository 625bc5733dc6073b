"""Finds which process opened a connection to this host, without any privilege.

All processes of a campaign share the address 127.0.0.1, and MongoDB advertises one address a
member to everybody. The proxy therefore asks /proc for the process at the other end.
"""

import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

TCP_TABLE = Path("/proc/net/tcp")
LOCAL_ADDRESS, REMOTE_ADDRESS, INODE = 1, 2, 9  # columns of the table


def _to_table_address(host: str, port: int) -> str:
    (number,) = struct.unpack("=I", bytes(int(part) for part in host.split(".")))
    return f"{number:08X}:{port:04X}"


def find_connected_process(
    client: tuple[str, int], server: tuple[str, int], pids: Iterable[int]
) -> int | None:
    """Return which of these processes has the client's end of an IPv4 connection, or None."""
    local, remote = _to_table_address(*client), _to_table_address(*server)
    for line in TCP_TABLE.read_text().splitlines()[1:]:
        columns = line.split()
        if columns[LOCAL_ADDRESS] == local and columns[REMOTE_ADDRESS] == remote:
            return _find_owner(f"socket:[{columns[INODE]}]", pids)
    return None


def _find_owner(socket_name: str, pids: Iterable[int]) -> int | None:
    for pid in pids:
        folder = f"/proc/{pid}/fd"
        with suppress(OSError):
            for descriptor in os.listdir(folder):
                with suppress(OSError):
                    if os.readlink(f"{folder}/{descriptor}") == socket_name:
                        return pid
    return None
