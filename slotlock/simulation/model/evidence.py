"""The evidence at the end of a simulation: the responses, and the state of the server."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from slotlock.simulation.model.attempts import (
    BookingAttempt,
    Response,
    SimulatedSlot,
    SimulatedUser,
)


@dataclass(frozen=True, slots=True)
class SlotOnServer:
    """A slot on the server; the roster has the booking id and the user id of each taken place."""

    capacity: int
    remaining: int
    roster: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ServerState:
    """The slots by id, and for a sample of users and attempts what the server returns.

    `own_bookings` holds the live booking ids of a user, `retried` the response to a repeated
    request.
    """

    slots: Mapping[str, SlotOnServer]
    own_bookings: Sequence[tuple[SimulatedUser, frozenset[str]]] = field(default_factory=list)
    retried: Sequence[tuple[BookingAttempt, Response | None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The attempts, the last live number of places left by slot id, and the server's state."""

    slots: Sequence[SimulatedSlot]
    attempts: Sequence[BookingAttempt]
    live_remaining: Mapping[str, int]
    server_state: ServerState

    def slots_with_state(self) -> Iterator[tuple[SimulatedSlot, SlotOnServer]]:
        """Yield each slot with its state on the server."""
        return ((slot, self.server_state.slots[slot.id]) for slot in self.slots)
