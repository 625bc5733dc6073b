"""Guards of the live availability of slots."""

from slotlock.domain.booking.availability import Availability
from slotlock.services.live.availability import AvailabilityHub


def _publish_nothing(self: AvailabilityHub, state: Availability) -> int:
    return 0


def drop_availability_updates() -> None:
    """Send subscribers the first state and no later one."""
    AvailabilityHub.publish = _publish_nothing  # type: ignore[method-assign]


GUARDS = {"availability-updates": drop_availability_updates}
