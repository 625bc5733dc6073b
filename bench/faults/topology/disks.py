"""Small disks for MongoDB's members, so that one of them can run full."""

import ctypes
import os
import subprocess
from contextlib import suppress
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000  # linux/sched.h
BALLAST = "ballast"
MIB = 2**20


def enter_private_mounts() -> str | None:
    """Let this process mount disks that nobody else sees and that end with it.

    Call it before the process has threads. Returns None, or the reason why it is impossible.
    """
    user, group = os.getuid(), os.getgid()
    flags = CLONE_NEWNS if user == 0 else CLONE_NEWNS | CLONE_NEWUSER
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        return f"no mount namespace: {os.strerror(ctypes.get_errno())}"
    try:
        if flags & CLONE_NEWUSER:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    except OSError as error:
        return f"no user namespace: {error.strerror}"
    return _run("mount", "--make-rprivate", "/")


def mount_disk(folder: Path, size_mib: int) -> str | None:
    """Mount an empty disk of this size. Returns None, or the reason why it is impossible."""
    folder.mkdir(parents=True, exist_ok=True)
    return _run("mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "tmpfs", str(folder))


def unmount_disk(folder: Path) -> None:
    """Unmount a disk, also one that a dying process still uses."""
    _run("umount", "--lazy", str(folder))


def _run(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    return None if done.returncode == 0 else done.stderr.strip() or f"{command[0]} failed"


def fill_disk(folder: Path) -> None:
    """Write a file that takes all free space of the disk, also what others free meanwhile."""
    with (folder / BALLAST).open("ab", buffering=0) as ballast, suppress(OSError):
        while True:  # until there is no space
            ballast.write(bytes(MIB))


def clear_disk(folder: Path) -> None:
    """Delete that file."""
    (folder / BALLAST).unlink(missing_ok=True)
