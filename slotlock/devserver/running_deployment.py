"""The deployment that `slotlock dev` runs, for other commands in the same data directory.

    running.json: {address, mongo_url, redis_url}

`slotlock dev` holds a lock on the file while it runs. The lock ends with the process, however the
process ends, so that a file without a lock is that of an earlier run.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from slotlock.devserver.binaries import data_dir_in_use

if sys.platform != "win32":
    import fcntl


@dataclass(frozen=True, slots=True)
class RunningDeployment:
    """The address of the app, and those of its servers."""

    address: str
    mongo_url: str
    redis_url: str


def _path(data_dir: Path) -> Path:
    return data_dir / "running.json"


@contextmanager
def record_running(data_dir: Path, deployment: RunningDeployment) -> Iterator[None]:
    """Let other commands find the deployment until the end of the block.

    Raises:
        ServerStartError: Another deployment runs with this data directory.
    """
    path = _path(data_dir)
    path.touch(mode=0o600)  # the addresses may contain passwords
    with path.open("r+") as file:
        if sys.platform != "win32":
            _lock(file.fileno(), data_dir)
        file.truncate()
        json.dump(asdict(deployment), file)
        file.flush()
        try:
            yield
        finally:
            os.ftruncate(file.fileno(), 0)


def _lock(descriptor: int, data_dir: Path) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            # A command that looks for a deployment has the lock for a moment, and finds none.
            if running := find_running(data_dir):
                raise data_dir_in_use(data_dir, running.address) from error
        else:
            return


def find_running(data_dir: Path) -> RunningDeployment | None:
    """Return the deployment that runs with this data directory."""
    with suppress(OSError, ValueError, TypeError), _path(data_dir).open() as file:
        if sys.platform != "win32" and not _is_locked(file.fileno()):
            return None
        return RunningDeployment(**json.load(file))
    return None


def _is_locked(descriptor: int) -> bool:
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
