"""How long a caller is willing to wait."""

import asyncio
from typing import Self

from slotlock.domain.shared.values import value_object


@value_object
class Deadline:
    """An instant of the event loop's clock, in seconds."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline so many seconds from now."""
        return cls(asyncio.get_running_loop().time() + seconds)

    @property
    def remaining_s(self) -> float:
        """The seconds that are left; 0 once it has passed."""
        return max(self.at - asyncio.get_running_loop().time(), 0.0)
