"""An act as a test plans it, before anybody knows the ids of what will come of it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

# Far enough from today that MongoDB forgets no answer while a test runs.
MORNING = datetime(2040, 1, 2, 8, tzinfo=UTC)

Answer = tuple[object, ...]


class LogEntry(NamedTuple):
    """One line in the record of a booking."""

    at: datetime
    by: str | None
    deed: str
    to: str
    until: datetime | None = None
    over: tuple[str, ...] = ()


@dataclass(frozen=True)
class Act:
    """What somebody asks for. `token` names what may come of it; `booking` names a booking or team.

    `number` is a capacity, or a start in minutes from the morning on.
    """

    verb: str
    token: str
    by: str
    organises: bool = False
    slot: str = ""
    person: str = ""
    booking: str = ""
    to: str = ""
    claims: tuple[tuple[str, str], ...] = ()
    hold: bool = False
    key: str | None = None
    wait_s: float = 0.0
    number: int = 0

    @property
    def asked(self) -> object:
        """What a key that came with it stands for from then on."""
        return (self.verb, self.slot, self.person, self.booking, self.to, self.claims, self.hold)
