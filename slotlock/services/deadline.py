"""How long a caller is willing to wait."""

from time import monotonic
from typing import Self

from slotlock.domain.shared.values import value_object


@value_object
class Deadline:
    """An instant of the monotonic clock, in seconds."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline so many seconds from now."""
        return cls(monotonic() + seconds)

    @property
    def remaining_s(self) -> float:
        """The seconds that are left; 0 once it has passed."""
        return max(self.at - monotonic(), 0.0)
