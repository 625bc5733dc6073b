"""Skews the clock of this process by the seconds in the file that SKEWED_CLOCK_FILE names.

Python imports this module at its start, because its folder is on PYTHONPATH. The file holds one
double; the process maps it into memory, so that a change of it steps the clock at once. Timers use
the monotonic clock, which stays as it is, as on a host whose clock is set.
"""

import ctypes
import datetime
import gc
import mmap
import os
import struct
import time

OFFSET = struct.Struct("d")


def _skew(path: str) -> None:
    with open(path, "rb") as file:
        memory = mmap.mmap(file.fileno(), OFFSET.size, prot=mmap.PROT_READ)
    true_time, true_time_ns = time.time, time.time_ns
    true_datetime = datetime.datetime
    from_timestamp = true_datetime.fromtimestamp

    def skewed_time() -> float:
        offset: float = OFFSET.unpack_from(memory)[0]
        return true_time() + offset

    def skewed_time_ns() -> int:
        offset: float = OFFSET.unpack_from(memory)[0]
        return true_time_ns() + int(offset * 1e9)

    def now(_cls: type[datetime.datetime], tz: datetime.tzinfo | None = None) -> datetime.datetime:
        return from_timestamp(skewed_time(), tz)

    def utcnow(_cls: type[datetime.datetime]) -> datetime.datetime:
        return from_timestamp(skewed_time(), datetime.UTC).replace(tzinfo=None)

    time.time, time.time_ns = skewed_time, skewed_time_ns
    # The type is immutable from Python, and must stay the same: C extensions create its instances.
    attributes = gc.get_referents(true_datetime.__dict__)[0]
    attributes["now"], attributes["utcnow"] = classmethod(now), classmethod(utcnow)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(true_datetime))


if "SKEWED_CLOCK_FILE" in os.environ:
    _skew(os.environ["SKEWED_CLOCK_FILE"])
