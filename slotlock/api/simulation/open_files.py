"""As many connections as the system lets one process have open."""

import sys

from slotlock.api.simulation.http import MAX_CONNECTIONS
from slotlock.api.simulation.plan import BookingMode, SimulationConfig, SimulationError

# For the program itself: libraries, pipes, the watcher's socket.
RESERVED_FILES = 100
# What there is where no such limit can be asked for.
UNLIMITED = 10**6


def raise_open_file_limit(config: SimulationConfig) -> int:
    """How many requests may be under way at once, with the limit of open files raised for it.

    Errors: SimulationError when not even everybody's socket can be open.
    """
    sockets = config.users if config.mode is BookingMode.QUEUE else 0
    wanted = min(MAX_CONNECTIONS, config.users * config.attempts)
    allowed = _raise_limit(wanted + sockets + RESERVED_FILES) - sockets - RESERVED_FILES
    if allowed < 1:
        raise SimulationError(
            f"{sockets:,} sockets need more open files than are allowed: raise `ulimit -n`"
        )
    return min(wanted, allowed)


def _raise_limit(needed: int) -> int:
    if sys.platform == "win32":
        return UNLIMITED
    import resource  # there is none on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft
