"""Points in an operation at which a process pauses until the test resumes it.

VARIANT_PAUSE_AT names the point. VARIANT_PAUSE_KEY is the prefix of two Redis lists: the process
pushes to `<key>:paused` when it reaches the point and waits for an element in `<key>:resume`.
"""

import os
import sys
from typing import Any

from redis.asyncio import Redis

RESUME_TIMEOUT_S = 60
_reached_points: set[str] = set()


def selected_point() -> str:
    """Return the point at which this process is to pause, or an empty string."""
    return os.environ.get("VARIANT_PAUSE_AT", "")


async def pause_if_selected(point: str) -> bool:
    """Pause at the selected point the first time it is reached. Returns whether it paused."""
    if point != selected_point() or point in _reached_points:
        return False
    _reached_points.add(point)
    pause_key = os.environ["VARIANT_PAUSE_KEY"]
    redis = Redis.from_url(os.environ["SLOTLOCK_REDIS_URL"], socket_timeout=None)
    await redis.lpush(f"{pause_key}:paused", point)
    await redis.blpop([f"{pause_key}:resume"], RESUME_TIMEOUT_S)
    await redis.aclose()
    return True


def rearm(point: str) -> None:
    """Let the process pause at this point again the next time it is reached."""
    _reached_points.discard(point)


def replace_everywhere(original: Any, replacement: Any) -> None:
    """Replace a function or constant in every module of slotlock that imported it."""
    found = 0
    for module_name, module in list(sys.modules.items()):
        if module_name.split(".")[0] == "slotlock":
            for name, value in list(vars(module).items()):
                if value is original:
                    setattr(module, name, replacement)
                    found += 1
    assert found, original
