"""Idempotency keys and wait limits are validated by every booking mutation."""

from typing import Any

import httpx
import pytest

from tests.support.apps.processes import AppProcess
from tests.support.clients.booking_client import (
    BOOK_SEVERAL,
    BOOK_WITH_OPTIONS,
    CANCEL_WITH_OPTIONS,
    CONFIRM_BOOKING,
    EXTEND_HOLD,
    MOVE_BOOKING,
    BookingClient,
    create_booking_clients,
)

BAD_KEYS = ["", "k" * 256, "a\nb", "a\x00b", "\x7f", "a\u2028b"]
BAD_WAITS = [-1, 20_001, 2**31 - 1]
WAITING = "mutation($id: ID!, $wait: Int!) { %s(slotId: $id, waitMs: $wait) { __typename } }"
EXTEND_SOON = """mutation($booking: ID!, $wait: Int!) {
  extendHold(bookingId: $booking, waitMs: $wait) { __typename }
}"""

Two = tuple[BookingClient, BookingClient]


@pytest.fixture
def clients(app: AppProcess, http: httpx.AsyncClient) -> Two:
    """Return clients for Ada and an organizer."""
    (ada,), organizer = create_booking_clients(http, 1, app)
    return ada, organizer


def operations_with_key(
    slot_id: str, booking_id: str, key: str
) -> list[tuple[str, dict[str, Any]]]:
    """Return every operation that takes a key, with this key."""
    on_it = {"booking": booking_id, "key": key}
    return [
        (BOOK_WITH_OPTIONS, {"input": {"slotId": slot_id, "idempotencyKey": key}}),
        (BOOK_SEVERAL, {"input": {"claims": [{"slotId": slot_id}], "idempotencyKey": key}}),
        (
            MOVE_BOOKING,
            {"input": {"bookingId": booking_id, "slotId": slot_id, "idempotencyKey": key}},
        ),
        (CONFIRM_BOOKING, on_it),
        (EXTEND_HOLD, on_it),
        (CANCEL_WITH_OPTIONS, on_it),
    ]


def operations_with_wait(
    slot_id: str, booking_id: str, wait: int
) -> list[tuple[str, dict[str, Any]]]:
    """Return every operation that waits, with this timeout."""
    on_it = {"booking": booking_id, "wait": wait}
    return [
        (BOOK_WITH_OPTIONS, {"input": {"slotId": slot_id, "waitMs": wait}}),
        (BOOK_SEVERAL, {"input": {"claims": [{"slotId": slot_id}], "waitMs": wait}}),
        (MOVE_BOOKING, {"input": {"bookingId": booking_id, "slotId": slot_id, "waitMs": wait}}),
        (CONFIRM_BOOKING, on_it),
        (EXTEND_SOON, on_it),
        (CANCEL_WITH_OPTIONS, on_it),
        (WAITING % "joinWaitlist", {"id": slot_id, "wait": wait}),
        (WAITING % "leaveWaitlist", {"id": slot_id, "wait": wait}),
    ]


async def test_an_idempotency_key_is_one_line_of_1_to_255_characters(clients: Two) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot(capacity=5)
    hold = await ada.hold(slot_id)
    for bad in BAD_KEYS:
        for query, variables in (
            *operations_with_key(slot_id, hold["id"], bad),
            *operations_with_key("x", "x", bad),
        ):
            assert await ada.error_code(query, **variables) == "BAD_USER_INPUT"
    assert await ada.fetch_booking(hold["id"]) == hold
    assert (await ada.confirm(hold["id"], key="ключ ☕" * 42))["__typename"] == "BookingConfirmed"


async def test_wait_ms_accepts_0_to_20000(clients: Two) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot(capacity=5)
    hold = await ada.hold(slot_id)
    for bad in BAD_WAITS:
        for query, variables in (
            *operations_with_wait(slot_id, hold["id"], bad),
            *operations_with_wait("x", "x", bad),
        ):
            assert await ada.error_code(query, **variables) == "BAD_USER_INPUT"
    assert await ada.fetch_booking(hold["id"]) == hold
    for good in (0, 20_000):
        assert (await ada.confirm(hold["id"], wait=good))["__typename"] == "BookingConfirmed"


async def test_every_mutation_requires_a_token(clients: Two) -> None:
    ada, organizer = clients
    slot_id = await organizer.add_slot(capacity=5)
    hold = await ada.hold(slot_id)
    nobody = BookingClient(ada.http, ada.url)
    for query, variables in (
        *operations_with_key(slot_id, hold["id"], "k"),
        *operations_with_wait(slot_id, hold["id"], 0),
    ):
        assert await nobody.error_code(query, **variables) == "UNAUTHENTICATED"
    assert await ada.fetch_booking(hold["id"]) == hold
