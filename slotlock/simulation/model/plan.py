"""The configuration of a simulation, and the errors that can end it."""

from dataclasses import dataclass
from enum import StrEnum

# A larger simulation would print more steps than anyone reads.
MAX_VERBOSE_ATTEMPTS = 40
# The reasons of a NoResponseError, as the results name them.
CONNECTION_DROPPED = "dropped connections"
SERVER_ERROR = "server errors"
SOCKET_BROKEN = "broken sockets"


class SimulationError(Exception):
    """The simulation cannot be completed; the text is one line with the reason."""


class MissingPackagesError(Exception):
    """The packages of the extra `simulate` are not installed."""


class NoResponseError(Exception):
    """No response arrived, so the client does not know whether the server did the work."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class BookingMode(StrEnum):
    """How users request their bookings."""

    LOCK = "lock"
    WAIT = "wait"
    QUEUE = "queue"

    @property
    def wait_ms(self) -> int:
        """Return how long the server may wait for the lock of the slot."""
        return 20_000 if self is BookingMode.WAIT else 0


@dataclass(frozen=True, slots=True)
class Organizer:
    """The account that creates the campaign; `source` says where its password comes from."""

    email: str
    password: str
    source: str


@dataclass(frozen=True, slots=True)
class SimulationTarget:
    """The server to simulate against, as the settings name it, and its organizer."""

    url: str
    organizer: Organizer


@dataclass(frozen=True, slots=True)
class SimulationConfig:
    """The size of a simulation; `places` counts per slot, `attempts` per user.

    A rehearsal of a `campaign` has its slots and places instead.
    """

    url: str
    users: int
    slots: int
    places: int
    attempts: int
    mode: BookingMode
    seed: int
    campaign: str | None = None

    @property
    def size(self) -> str:
        """Return the size in words."""
        slots = f"slots: {self.slots:,}, places in each: {self.places:,}"
        return f"users: {self.users:,}, {f'a copy of {self.campaign}' if self.campaign else slots}"

    @property
    def is_verbose(self) -> bool:
        """Return whether the simulation is small enough to print each step."""
        return self.users * self.attempts <= MAX_VERBOSE_ATTEMPTS
