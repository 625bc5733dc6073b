"""Guards of what is told live, switched off one by one."""

from slotlock.domain.booking.availability import Availability
from slotlock.services.live.availability import AvailabilityHub


def _publish_nothing(self: AvailabilityHub, state: Availability) -> int:
    return 0


def drop_availability_updates() -> None:
    """Whoever watches is told the first state, and nothing newer, announced or read again."""
    AvailabilityHub.publish = _publish_nothing  # type: ignore[method-assign]


GUARDS = {"availability-updates": drop_availability_updates}
