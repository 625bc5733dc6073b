"""Guards of what is told live, switched off one by one."""

from slotlock.desk.availability import AvailabilityBoard
from slotlock.domain.availability import Availability


def _in_vain(self: AvailabilityBoard, state: Availability) -> int:
    return 0


def no_news() -> None:
    """Whoever watches is told the first state, and nothing newer, announced or read again."""
    AvailabilityBoard.tell = _in_vain  # type: ignore[method-assign]


GUARDS = {"news": no_news}
