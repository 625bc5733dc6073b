"""The clock of one process can be wrong, and nothing else changes."""

import os
import struct
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.faults.topology.apps import CLOCK_FOLDER

PRINT_TIME = """
from datetime import UTC, datetime
import bson
now = datetime.now(UTC)
assert type(bson.decode(bson.encode({"at": now}))["at"]) is datetime
print(now.isoformat())
"""


def _time_in_process(clock_file: Path | None) -> datetime:
    environment = {**os.environ, "PYTHONPATH": str(CLOCK_FOLDER)}
    if clock_file is not None:
        environment["SKEWED_CLOCK_FILE"] = str(clock_file)
    completed = subprocess.run(
        [sys.executable, "-c", PRINT_TIME],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return datetime.fromisoformat(completed.stdout.strip())


def test_a_process_with_an_offset_is_ahead_by_it(tmp_path: Path) -> None:
    clock_file = tmp_path / "clock"
    clock_file.write_bytes(struct.pack("d", 3600.0))

    assert _time_in_process(clock_file) >= datetime.now(UTC) + timedelta(minutes=50)


def test_a_process_without_a_file_has_the_true_time() -> None:
    assert _time_in_process(None) < datetime.now(UTC) + timedelta(minutes=10)
