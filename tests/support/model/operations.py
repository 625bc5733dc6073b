"""An act as a test plans it, before anybody knows the ids of what will come of it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

# Far enough from today that MongoDB forgets no answer while a test runs.
MORNING = datetime(2040, 1, 2, 8, tzinfo=UTC)

NormalizedOutcome = tuple[object, ...]


class NormalizedEntry(NamedTuple):
    """One line in the record of a booking."""

    at: datetime
    by: str | None
    action: str
    status: str
    held_until: datetime | None = None
    overridden: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedOperation:
    """What somebody asks for. `token` names what may come of it; `booking` names a booking or team.

    `number` is a capacity, or a start in minutes from the morning on.
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
        """What a key that came with it stands for from then on."""
        return (
            self.kind,
            self.slot_id,
            self.user_id,
            self.booking,
            self.target_slot_id,
            self.claims,
            self.hold,
        )
