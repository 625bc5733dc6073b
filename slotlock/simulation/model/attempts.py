"""What everybody asked and was told, with the times: what the end is held against."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from slotlock.simulation.client.http import CONNECTION_DROPPED, SERVER_ERROR
from slotlock.simulation.client.websocket import SOCKET_BROKEN

BOOKED = "Booked"
LOST, FAILED = "LOST", "FAILED"
# Told to ask again, after so many ms unless the answer says how many.
RETRY_DELAYS_MS = {"Locked": 100, "QueueFull": 100, "NotYetOpen": 20, LOST: 0}
RETRY_REASONS = (*RETRY_DELAYS_MS, CONNECTION_DROPPED, SERVER_ERROR, SOCKET_BROKEN)

Response = Mapping[str, Any]


@dataclass(slots=True)
class SimulatedUser:
    """Somebody in the crowd."""

    name: str
    email: str
    user_id: str = ""
    token: str = ""
    refresh_token: str = ""


@dataclass(frozen=True, slots=True)
class SimulatedSlot:
    """Something they ask for."""

    id: str
    title: str


@dataclass(slots=True)
class BookingAttempt:
    """One person's wish for one slot; times are seconds since the opening."""

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
    # Final states of one ticket that were heard after the first.
    extra_final_responses: int = 0


@dataclass(slots=True)
class AttemptLog:
    """All the asks, and why some were sent again."""

    attempts: list[BookingAttempt]
    retries: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    sent_count: int = 0
    last_final_response_at: float = 0.0
    # When anybody was last told something that brings them nearer to their final answer.
    last_progress_at: float = 0.0

    def record_sent(self, attempt: BookingAttempt, at: float) -> None:
        """Somebody asked for the first time."""
        attempt.sent_at = at
        self.sent_count += 1

    def record_no_response(self, kind: str) -> None:
        """No answer came; it is asked again."""
        self.retries[kind] += 1

    def record_progress(self, attempt: BookingAttempt, at: float) -> None:
        """Somebody stands in line, or has a better place there."""
        if attempt.first_response_at is None:
            attempt.first_response_at = at
        self.last_progress_at = at

    def record_response(self, attempt: BookingAttempt, response: Response, at: float) -> int | None:
        """Somebody was told something; after how many ms they ask again, None if it is final."""
        name = attempt.last_response = response["__typename"]
        if attempt.first_response_at is None:
            attempt.first_response_at = at
        if name in RETRY_DELAYS_MS:
            self.retries[name] += 1
            return int(response.get("retryAfterMs", RETRY_DELAYS_MS[name]))
        (
            attempt.outcome,
            attempt.final_response_at,
            self.last_final_response_at,
            self.last_progress_at,
        ) = name, at, at, at
        attempt.booking_id = response["booking"]["id"] if name == BOOKED else None
        self.outcomes[name] += 1
        return None

    @property
    def answered_count(self) -> int:
        """How many asks have their final answer."""
        return self.outcomes.total()

    @property
    def booked_count(self) -> int:
        """How many of them got a place."""
        return self.outcomes[BOOKED]


class Clock:
    """Negative before the opening, which is now until it is set."""

    def __init__(self) -> None:
        self._opens_at = time.perf_counter()

    def open_at(self, at: datetime) -> None:
        """Count from this instant."""
        self._opens_at = time.perf_counter() + (at - datetime.now(UTC)).total_seconds()

    def now(self) -> float:
        """Seconds since the opening."""
        return time.perf_counter() - self._opens_at

    async def wait_for_opening(self) -> None:
        """Wait for it."""
        await asyncio.sleep(max(-self.now(), 0.0))
