"""The booking attempts of all users, with the times of their responses."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from slotlock.simulation.model.plan import CONNECTION_DROPPED, SERVER_ERROR, SOCKET_BROKEN

BOOKED = "Booked"
LOST, FAILED = "LOST", "FAILED"
# A client retries after these outcomes; the delay applies to responses without `retryAfterMs`.
RETRY_DELAYS_MS = {"Locked": 100, "QueueFull": 100, "NotYetOpen": 20, LOST: 0}
RETRY_REASONS = (*RETRY_DELAYS_MS, CONNECTION_DROPPED, SERVER_ERROR, SOCKET_BROKEN)

Response = Mapping[str, Any]


@dataclass(slots=True)
class SimulatedUser:
    """A user with an account and a session."""

    name: str
    email: str
    user_id: str = ""
    token: str = ""
    refresh_token: str = ""


@dataclass(frozen=True, slots=True)
class SimulatedSlot:
    """A slot of the simulated campaign."""

    id: str
    title: str


@dataclass(slots=True)
class BookingAttempt:
    """One user's attempt to book one slot; times are seconds since the opening."""

    user: SimulatedUser
    slot: SimulatedSlot
    idempotency_key: str
    sent_at: float | None = None
    first_response_at: float | None = None
    final_response_at: float | None = None
    outcome: str | None = None
    booking_id: str | None = None
    ticket_id: str | None = None
    last_response: str = "nothing"
    # Final states of one ticket that arrived after its first final state.
    extra_final_responses: int = 0


@dataclass(slots=True)
class AttemptLog:
    """All attempts, their outcomes and the reasons of their retries."""

    attempts: list[BookingAttempt]
    retries: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    sent_count: int = 0
    last_final_response_at: float = 0.0
    # The last time when any attempt came nearer to its final response.
    last_progress_at: float = 0.0

    def record_sent(self, attempt: BookingAttempt, at: float) -> None:
        """Record that an attempt was sent for the first time."""
        attempt.sent_at = at
        self.sent_count += 1

    def record_no_response(self, kind: str) -> None:
        """Count a retry after a request without a response."""
        self.retries[kind] += 1

    def record_progress(self, attempt: BookingAttempt, at: float) -> None:
        """Record that an attempt has a ticket, or a better position in the queue."""
        if attempt.first_response_at is None:
            attempt.first_response_at = at
        self.last_progress_at = at

    def record_response(self, attempt: BookingAttempt, response: Response, at: float) -> int | None:
        """Record a response and return the milliseconds until the retry, or None if it is final."""
        name = response["__typename"]
        attempt.last_response = name
        if attempt.first_response_at is None:
            attempt.first_response_at = at
        if name in RETRY_DELAYS_MS:
            self.retries[name] += 1
            return int(response.get("retryAfterMs", RETRY_DELAYS_MS[name]))
        attempt.outcome = name
        attempt.booking_id = response["booking"]["id"] if name == BOOKED else None
        attempt.final_response_at = at
        self.last_final_response_at = at
        self.last_progress_at = at
        self.outcomes[name] += 1
        return None

    @property
    def answered_count(self) -> int:
        """Return how many attempts have their final response."""
        return self.outcomes.total()

    @property
    def booked_count(self) -> int:
        """Return how many attempts were booked."""
        return self.outcomes[BOOKED]


class Clock:
    """A clock that shows seconds since the opening, negative before it."""

    def __init__(self) -> None:
        self._opens_at = time.perf_counter()

    def open_at(self, at: datetime) -> None:
        """Set the opening."""
        self._opens_at = time.perf_counter() + (at - datetime.now(UTC)).total_seconds()

    def now(self) -> float:
        """Return the seconds since the opening."""
        return time.perf_counter() - self._opens_at

    async def wait_for_opening(self) -> None:
        """Sleep until the opening."""
        await asyncio.sleep(max(-self.now(), 0.0))
