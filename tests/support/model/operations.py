"""Operations as a test plans them, before the ids of their results exist."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

# Far in the future, so that MongoDB deletes no idempotency record while a test runs.
MORNING = datetime(2040, 1, 2, 8, tzinfo=UTC)

NormalizedOutcome = tuple[object, ...]


class NormalizedEntry(NamedTuple):
    """An entry in the history of a booking."""

    at: datetime
    by: str | None
    action: str
    status: str
    held_until: datetime | None = None
    overridden: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedOperation:
    """An operation that a caller requests.

    `token` names the booking, waitlist entry or team that it may create. `booking` is the token of
    an existing booking or team. `number` is a capacity, or a start in minutes after `MORNING`.
    """

    kind: str
    token: str
    caller_id: str
    as_organizer: bool = False
    slot_id: str = ""
    user_id: str = ""
    booking: str = ""
    target_slot_id: str = ""
    claims: tuple[tuple[str, str], ...] = ()
    hold: bool = False
    key: str | None = None
    wait_s: float = 0.0
    number: int = 0

    @property
    def request(self) -> object:
        """The content of the request, to which an idempotency key belongs from its first use."""
        return (
            self.kind,
            self.slot_id,
            self.user_id,
            self.booking,
            self.target_slot_id,
            self.claims,
            self.hold,
        )
