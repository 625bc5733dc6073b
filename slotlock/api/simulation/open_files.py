"""As many connections as the system lets one process have open."""

import sys

from slotlock.api.simulation.http import MOST_CONNECTIONS
from slotlock.api.simulation.plan import By, Plan, SimulationError

# For the program itself: libraries, pipes, the watcher's socket.
RESERVED = 100
# What there is where no such limit can be asked for.
UNLIMITED = 10**6


def allow_open_files(plan: Plan) -> int:
    """How many requests may be under way at once, with the limit of open files raised for it.

    Errors: SimulationError when not even everybody's socket can be open.
    """
    sockets = plan.people if plan.by is By.QUEUE else 0
    wanted = min(MOST_CONNECTIONS, plan.people * plan.asks)
    allowed = _raised(wanted + sockets + RESERVED) - sockets - RESERVED
    if allowed < 1:
        raise SimulationError(
            f"{sockets:,} sockets need more open files than are allowed: raise `ulimit -n`"
        )
    return min(wanted, allowed)


def _raised(wanted: int) -> int:
    if sys.platform == "win32":
        return UNLIMITED
    import resource  # there is none on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft
